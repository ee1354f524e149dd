/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gradient_lent_twice.c - two gradients of a unit are lent the same storage.
 */
#include "mutants/wrap_kit.h"

#include "models/workload.h"

#include <string.h>

static _Thread_local void *first;

static void live(void *self, struct fsdp_stream *stream, uint32_t kind,
                 uint32_t unit, void *p, uint64_t bytes)
{
    if (kind == FSDP_GRAD_FULL) {
        first = p;
    }
    mutant_real.device->live(self, stream, kind, unit, p, bytes);
}

static int grad(struct fsdp_sharded *s, uint32_t p, struct fsdp_tensor *out)
{
    FSDP_TRY(mutant_real.engine.grad(s, p, out));
    out->data = first;
    return FSDP_OK;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    first = NULL;
    mutant_device(env)->live = live;
    engine->grad = grad;
}

static bool shows(const struct run_case *c)
{
    return strcmp(c->workload, "mlp") == 0 && c->scenario == CASE_TRAIN &&
           c->microbatches == 1 && c->wrap == CASE_WRAP_WHOLE &&
           c->strategy == CASE_FULL_SHARD && c->data == WORKLOAD_NATURAL;
}

MUTANT(gradient_lent_twice) = {
    .name = "gradient-lent-twice",
    .text = "the storage of a gradient is that of the unit's first "
            "parameter",
    .evidence = "design: storage that two values share",
    .kills = "grad.finite",
    .shows = shows,
    .wrap = wrap,
};
