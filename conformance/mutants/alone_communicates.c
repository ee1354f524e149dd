/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alone_communicates.c - a world of one rank communicates all the same.
 */
#include "mutants/wrap_kit.h"

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_communicate_at_end(engine, FSDP_ALL_GATHER);
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
