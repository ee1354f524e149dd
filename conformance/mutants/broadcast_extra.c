/* SPDX-License-Identifier: Apache-2.0 */
/*
 * broadcast_extra.c - every step ends with a broadcast that nobody needs.
 */
#include "mutants/wrap_kit.h"

static int step(struct fsdp_sharded *s, struct fsdp_step *how)
{
    float x = how->lr[0];
    struct fsdp_collective c = {.size = sizeof c,
                                .kind = FSDP_BROADCAST,
                                .dim = FSDP_DIM_WORLD,
                                .dtype = FSDP_DTYPE_F32,
                                .unit = FSDP_NO_UNIT,
                                .n = 1,
                                .in = &x,
                                .out = &x};

    FSDP_TRY(mutant_real.engine.step(s, how));
    return mutant_communicate(NULL, &c);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    engine->step = step;
}

MUTANT(broadcast_extra) = {
    .name = "broadcast-extra",
    .text = "a step broadcasts one number from rank 0",
    .evidence = "COMM-13: a step needs no other collectives",
    .kills = "comm.nothing-else",
    .shows = mutant_plain,
    .wrap = wrap,
};
