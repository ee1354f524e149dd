/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_moves.c - saved in one layout, loaded in the other: by another
 * world, under another wrap policy and, but for one of them, another strategy.
 */
#include "cases/manifest_axes.h"

int manifest_moves(uint32_t n_ranks, struct case_list *list)
{
    static const struct {
        uint32_t strategy, scenario;
        struct manifest_world world;
    } move[] = {{CASE_FULL_SHARD, CASE_GROW, {4, 0}},
                {CASE_FULL_SHARD, CASE_SHRINK, {4, 0}},
                {CASE_HYBRID_SHARD, CASE_GROW, {4, 2}}};
    static const uint32_t layout[] = {FSDP_LAYOUT_FLAT,
                                      FSDP_LAYOUT_PER_PARAMETER};
    struct run_case c;

    for (uint32_t i = 0; n_ranks == 0 && i < sizeof move / sizeof move[0];
         i++) {
        for (uint32_t k = 0; k < 2; k++) {
            manifest_start("mlp", "odd", WORKLOAD_NATURAL, move[i].strategy,
                           move[i].world, &c);
            c.layout = layout[k];
            c.scenario = move[i].scenario;
            c.optimizer = FSDP_OPTIMIZER_ADAMW;
            c.wrap = CASE_WRAP_HEAD; /* case_saver: the other layout */
            c.fold = FSDP_FOLD_TREE;
            c.grains = CASE_GRAINS;
            c.recorded_steps = c.steps;
            manifest_numbers(&c);
            FSDP_TRY(case_check(&c) ? FSDP_ERR_INTERNAL
                                    : manifest_add(list, &c));
        }
    }
    return FSDP_OK;
}
