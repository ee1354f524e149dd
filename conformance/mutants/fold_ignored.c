/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold_ignored.c - the fold that was asked for is not used.
 */
#include "mutants/wrap_kit.h"

static void change(struct fsdp_options *o)
{
    o->fold = FSDP_FOLD_RANK;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_options(engine, change);
}

static bool shows(const struct run_case *c)
{
    return mutant_mlp(c) && c->scenario == CASE_TRAIN && c->ranks > 2 &&
           c->strategy == CASE_FULL_SHARD && c->fold != FSDP_FOLD_RANK;
}

MUTANT(fold_ignored) = {
    .name = "fold-ignored",
    .text = "gradients are folded by rank whatever the option says",
    .evidence = "the order of a sum is part of the specification",
    .kills = "comm.fold-declared reduce.fold",
    .shows = shows,
    .wrap = wrap,
};
