/* SPDX-License-Identifier: Apache-2.0 */
/*
 * second_shard.c - a rank keeps its shard twice during a pass.
 */
#include "mutants/wrap_kit.h"

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_ballast(env, engine, FSDP_PARAM_SHARD);
}

MUTANT(second_shard) = {
    .name = "second-shard",
    .text = "there is a second copy of all shards during a pass",
    .evidence = "weights that are kept for an average, or to go back to",
    .kills = "memory.peak-parameters",
    .shows = mutant_plain,
    .wrap = wrap,
};
