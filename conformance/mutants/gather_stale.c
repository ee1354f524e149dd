/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather_stale.c - an all-gather is answered from a cache of the first step.
 */
#include "mutants/wrap_kit.h"

static int run(void *self, struct fsdp_stream *stream,
               const struct fsdp_collective *c)
{
    (void)self;
    FSDP_TRY(mutant_communicate(stream, c));
    return c->kind == FSDP_ALL_GATHER ? mutant_stale(stream, c, false)
                                      : FSDP_OK;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_comm(env)->run = run;
}

MUTANT(gather_stale) = {
    .name = "gather-stale",
    .text = "some elements that are gathered are those of the first "
            "gather",
    .evidence = "X50: Megatron-FSDP v2, the test that the next forward uses "
                "updated weights",
    .kills = "gather.sees-updated-weights",
    .shows = mutant_plain,
    .wrap = wrap,
};
