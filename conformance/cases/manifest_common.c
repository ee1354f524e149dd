/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_common.c - a transformer as engines outside of the suite have it:
 * few ranks, both layouts, each leaf a unit of several parameters, so that it
 * is what a bucket and a flat parameter are too. They stand behind the
 * generated cases, which so do not depend on them.
 */
#include "cases/manifest_axes.h"

static int add_transformer(uint32_t layout, uint32_t ranks,
                           struct case_list *list)
{
    static const struct {
        uint32_t strategy, optimizer, microbatches, first, scenario;
    } row[] = {
        {CASE_FULL_SHARD, FSDP_OPTIMIZER_MOMENTUM, 2, 0, CASE_TRAIN},
        {CASE_FULL_SHARD, FSDP_OPTIMIZER_ADAMW, 1, 1, CASE_EVAL},
        {CASE_SHARD_GRAD_OP, FSDP_OPTIMIZER_SGD, 2, 1, CASE_TRAIN},
        {CASE_NO_SHARD, FSDP_OPTIMIZER_ADAMW, 2, 0, CASE_TRAIN},
        {CASE_HYBRID_SHARD, FSDP_OPTIMIZER_ADAMW, 2, 0, CASE_TRAIN},
    };
    struct run_case c;

    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        const bool hybrid = row[i].strategy == CASE_HYBRID_SHARD;
        const struct manifest_world world = {ranks, hybrid ? 2 : 0};

        if (hybrid && ranks != 4) {
            continue;
        }
        manifest_start("gpt", "odd", WORKLOAD_NATURAL, row[i].strategy, world,
                       &c);
        c.layout = layout;
        c.optimizer = row[i].optimizer;
        c.scenario = row[i].scenario;
        c.microbatches = row[i].microbatches;
        c.sync[0] = row[i].first;
        c.sync[c.microbatches - 1] = 1;
        manifest_numbers(&c);
        FSDP_TRY(manifest_add(list, &c));
    }
    return FSDP_OK;
}

int manifest_common(uint32_t n_ranks, struct case_list *list)
{
    for (uint32_t ranks = 2; n_ranks == 0 && ranks <= 4; ranks++) {
        FSDP_TRY(add_transformer(FSDP_LAYOUT_FLAT, ranks, list));
        FSDP_TRY(add_transformer(FSDP_LAYOUT_PER_PARAMETER, ranks, list));
    }
    return FSDP_OK;
}
