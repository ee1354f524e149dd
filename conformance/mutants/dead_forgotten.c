/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dead_forgotten.c - storage is freed while it is said to hold a value.
 */
#include "mutants/wrap_kit.h"

static _Thread_local void *gradient;

static void live(void *self, struct fsdp_stream *stream, uint32_t kind,
                 uint32_t unit, void *p, uint64_t bytes)
{
    if (kind == FSDP_GRAD_FULL) {
        gradient = p;
    }
    mutant_real.device->live(self, stream, kind, unit, p, bytes);
}

static void dead(void *self, struct fsdp_stream *stream, void *p)
{
    if (p != gradient) {
        mutant_real.device->dead(self, stream, p);
    }
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    gradient = NULL;
    mutant_device(env)->live = live;
    mutant_device(env)->dead = dead;
}

MUTANT(dead_forgotten) = {
    .name = "dead-forgotten",
    .text = "dead is not called for unsharded gradients",
    .evidence = "X48: a counter that is wrong for ever after",
    .kills = "memory.ranges-valid",
    .shows = mutant_plain,
    .wrap = wrap,
};
