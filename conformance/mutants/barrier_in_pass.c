/* SPDX-License-Identifier: Apache-2.0 */
/*
 * barrier_in_pass.c - ranks wait for each other at the end of each pass.
 */
#include "mutants/wrap_kit.h"

static int at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    struct fsdp_collective c = {.size = sizeof c,
                                .kind = FSDP_BARRIER,
                                .dim = FSDP_DIM_WORLD,
                                .dtype = FSDP_DTYPE_F32,
                                .unit = FSDP_NO_UNIT};

    FSDP_TRY(mutant_real.engine.at(s, point, index));
    return point == FSDP_END ? mutant_communicate(NULL, &c) : FSDP_OK;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    engine->at = at;
}

MUTANT(barrier_in_pass) = {
    .name = "barrier-in-pass",
    .text = "a barrier at END",
    .evidence = "COMM-13: a step needs no barrier",
    .kills = "comm.nothing-else",
    .shows = mutant_plain,
    .wrap = wrap,
};
