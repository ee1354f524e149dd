/* SPDX-License-Identifier: Apache-2.0 */
/*
 * groups_shifted.c - groups are found by another index than a parameter's.
 */
#include "mutants/wrap_kit.h"

#include <stdlib.h>

static int shard(const struct fsdp_env *env, const struct fsdp_model *model,
                 const struct fsdp_units *units,
                 const struct fsdp_options *options, struct fsdp_sharded **out)
{
    const uint32_t n = model->n_parameters;
    uint32_t *group = calloc(n + 1u, sizeof *group);
    struct fsdp_options other = *options;
    int status;

    *out = NULL;
    if (!group) {
        return FSDP_ERR_NOMEM;
    }
    for (uint32_t p = 0; p < n && options->n_groups > 0; p++) {
        group[p] = options->group_of_parameter[(p + 1) % n];
    }
    other.group_of_parameter = options->n_groups > 0 ? group : NULL;
    status = mutant_real.engine.shard(env, model, units, &other, out);
    free(group);
    return status;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    engine->shard = shard;
}

static bool shows(const struct run_case *c)
{
    return c->scenario == CASE_GROUPS && c->ranks > 1 &&
           c->optimizer == FSDP_OPTIMIZER_ADAMW;
}

MUTANT(groups_shifted) = {
    .name = "groups-shifted",
    .text = "each parameter has the group of the next one",
    .evidence = "X51: pytorch#89136, groups lost by flattening",
    .kills = "step.adamw",
    .shows = shows,
    .wrap = wrap,
};
