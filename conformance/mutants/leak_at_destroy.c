/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leak_at_destroy.c - one allocation is never given back.
 */
#include "mutants/wrap_kit.h"

static _Thread_local bool forget;

static void give_back(void *self, void *p)
{
    if (!(forget && p)) {
        mutant_real.device->free(self, p);
    }
    forget = forget && !p;
}

static void destroy(struct fsdp_sharded *s)
{
    forget = s != NULL;
    mutant_real.engine.destroy(s);
    forget = false;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    forget = false;
    mutant_device(env)->free = give_back;
    engine->destroy = destroy;
}

MUTANT(leak_at_destroy) = {
    .name = "leak-at-destroy",
    .text = "destroy forgets the first thing that it should free",
    .evidence = "X48: pytorch/pytorch#149100",
    .kills = "run.leaves-nothing",
    .shows = mutant_plain,
    .wrap = wrap,
};
