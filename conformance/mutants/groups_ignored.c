/* SPDX-License-Identifier: Apache-2.0 */
/*
 * groups_ignored.c - what is flattened is stepped as one group: all have the
 * numbers of the first.
 */
#include "mutants/wrap_kit.h"

static int step(struct fsdp_sharded *s, struct fsdp_step *how)
{
    float lr[CASE_MAX_GROUPS];
    float decay[CASE_MAX_GROUPS];
    struct fsdp_step same = *how;
    int status;

    for (uint32_t g = 0; g < how->n_groups && g < CASE_MAX_GROUPS; g++) {
        lr[g] = how->lr[0];
        decay[g] = how->weight_decay[0];
    }
    same.lr = lr;
    same.weight_decay = decay;
    status = mutant_real.engine.step(s, &same);
    how->found_inf = same.found_inf;
    return status;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    engine->step = step;
}

static bool shows(const struct run_case *c)
{
    return c->scenario == CASE_GROUPS && c->ranks > 1 &&
           c->optimizer == FSDP_OPTIMIZER_SGD;
}

MUTANT(groups_ignored) = {
    .name = "groups-ignored",
    .text = "all parameters are stepped with the numbers of the first group",
    .evidence = "X51: pytorch#89136, one flat parameter has one group",
    .kills = "step.sgd",
    .shows = shows,
    .wrap = wrap,
};
