/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disagreement_ignored.c - ranks do not compare what they shard.
 */
#include "mutants/wrap_kit.h"

#include <string.h>

static int exchange(void *self, const void *mine, uint64_t bytes, void *all)
{
    (void)self;
    for (uint32_t r = 0; r < mutant_real.world; r++) {
        memcpy((char *)all + r * bytes, mine, bytes);
    }
    return FSDP_OK;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    env->exchange = exchange;
}

static bool shows(const struct run_case *c)
{
    return c->scenario == CASE_DISAGREE && c->ranks > 1;
}

MUTANT(disagreement_ignored) = {
    .name = "disagreement-ignored",
    .text = "ranks that are given other options are not told",
    .evidence = "X32: pytorch/pytorch#170667",
    .kills = "error.ranks-disagree "
             "error.units-disagree",
    .shows = shows,
    .wrap = wrap,
};
