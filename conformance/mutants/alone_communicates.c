/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alone_communicates.c - a world of one rank communicates all the same.
 */
#include "mutants/wrap_kit.h"

static int at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    struct fsdp_collective c = {.size = sizeof c,
                                .kind = FSDP_ALL_GATHER,
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

static bool shows(const struct run_case *c)
{
    return mutant_train(c) && c->ranks == 1;
}

MUTANT(alone_communicates) = {
    .name = "alone-communicates",
    .text = "a rank that is alone takes part in a collective",
    .evidence = "X43: pytorch/pytorch#144045",
    .kills = "comm.silent-at-one",
    .shows = shows,
    .wrap = wrap,
};
