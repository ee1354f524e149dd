/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather_twice.c - every unit is gathered twice.
 */
#include "mutants/wrap_kit.h"

static int run(void *self, struct fsdp_stream *stream,
               const struct fsdp_collective *c)
{
    (void)self;
    if (c->kind == FSDP_ALL_GATHER) {
        FSDP_TRY(mutant_communicate(stream, c));
    }
    return mutant_communicate(stream, c);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_comm(env)->run = run;
}

MUTANT(gather_twice) = {
    .name = "gather-twice",
    .text = "each all-gather is issued a second time",
    .evidence = "X33: NVIDIA/Megatron-LM#6153",
    .kills = "comm.all-gather-count",
    .shows = mutant_plain,
    .wrap = wrap,
};
