/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alone_copies.c - a world of one rank unshards into a copy.
 */
#include "mutants/wrap_kit.h"

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_ballast(env, engine, FSDP_PARAM_FULL);
}

static bool shows(const struct run_case *c)
{
    return mutant_train(c) && c->ranks == 1;
}

MUTANT(alone_copies) = {
    .name = "alone-copies",
    .text = "with one shard there is a full copy of parameters during a "
            "pass",
    .evidence = "X03: pytorch/pytorch#195732",
    .kills = "memory.single-rank",
    .shows = shows,
    .wrap = wrap,
};
