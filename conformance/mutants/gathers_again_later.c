/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gathers_again_later.c - steps after the first gather more than the first.
 */
#include "mutants/wrap_kit.h"

static _Thread_local uint32_t steps;

static int step(struct fsdp_sharded *s, struct fsdp_step *how)
{
    steps++;
    return mutant_real.engine.step(s, how);
}

static int run(void *self, struct fsdp_stream *stream,
               const struct fsdp_collective *c)
{
    (void)self;
    if (c->kind == FSDP_ALL_GATHER && steps > 1) {
        FSDP_TRY(mutant_communicate(stream, c));
    }
    return mutant_communicate(stream, c);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    steps = 0;
    engine->step = step;
    mutant_comm(env)->run = run;
}

MUTANT(gathers_again_later) = {
    .name = "gathers-again-later",
    .text = "from the third step on, every unit is gathered twice",
    .evidence = "X33: NVIDIA/Megatron-LM#6309",
    .kills = "comm.all-gather-count",
    .shows = mutant_plain,
    .wrap = wrap,
};
