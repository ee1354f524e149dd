/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unsharded_undeclared.c - unsharded parameters are stored, and never said
 * to be live.
 */
#include "mutants/wrap_kit.h"

static void live(void *self, struct fsdp_stream *stream, uint32_t kind,
                 uint32_t unit, void *p, uint64_t bytes)
{
    if (kind != FSDP_PARAM_FULL) {
        mutant_real.device->live(self, stream, kind, unit, p, bytes);
    }
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_device(env)->live = live;
}

MUTANT(unsharded_undeclared) = {
    .name = "unsharded-undeclared",
    .text = "live is not called for PARAM_FULL",
    .evidence = "pytorch/pytorch#147179: memory that no counter sees",
    .kills = "memory.peak-unsharded",
    .shows = mutant_plain,
    .wrap = wrap,
};
