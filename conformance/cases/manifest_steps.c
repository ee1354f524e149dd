/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_steps.c - steps as people make them. Gradients that are clipped:
 * where shards are even, padded and empty, alone and across replicas, in both
 * layouts, after each way to accumulate, and while reductions are in flight;
 * in every world by the same norm, as the tree's curve shows. And parameters
 * in groups.
 */
#include "cases/case_graph.h"
#include "cases/manifest_axes.h"

#include <string.h>

static int add_clips(struct case_list *list)
{
    static const struct {
        const char *size;
        uint32_t strategy;
        struct manifest_world world;
        uint32_t layout, fold, optimizer, first; /* 1: n s, 2: s s */
        uint32_t ahead;
    } row[] = {
        {"odd", CASE_FULL_SHARD, {1, 0}, 0, FSDP_FOLD_RANK, 0, 0, 0},
        {"odd", CASE_FULL_SHARD, {3, 0}, 0, FSDP_FOLD_RANK, 0, 0, 0},
        {"odd", CASE_FULL_SHARD, {3, 0}, 1, FSDP_FOLD_RANK, 0, 1, 0},
        {"odd", CASE_FULL_SHARD, {4, 0}, 1, FSDP_FOLD_RING, 2, 2, 0},
        {"empty", CASE_FULL_SHARD, {7, 0}, 0, FSDP_FOLD_RANK, 1, 1, 0},
        {"empty", CASE_FULL_SHARD, {7, 0}, 1, FSDP_FOLD_RANK, 2, 0, 0},
        {"odd", CASE_SHARD_GRAD_OP, {2, 0}, 0, FSDP_FOLD_RANK, 0, 2, 0},
        {"odd", CASE_NO_SHARD, {3, 0}, 0, FSDP_FOLD_RANK, 0, 1, 0},
        {"odd", CASE_HYBRID_SHARD, {4, 2}, 0, FSDP_FOLD_RANK, 0, 0, 0},
        {"odd", CASE_HYBRID_SHARD, {6, 2}, 1, FSDP_FOLD_RANK, 1, 1, 0},
        {"odd", CASE_HYBRID_SHARD_ZERO2, {6, 3}, 0, FSDP_FOLD_RING, 2, 2, 0},
        {"odd", CASE_FULL_SHARD, {3, 0}, 0, FSDP_FOLD_RANK, 0, 0, 1},
        {"odd", CASE_HYBRID_SHARD, {4, 2}, 0, FSDP_FOLD_RANK, 0, 0, 2},
        {"odd", CASE_FULL_SHARD, {1, 0}, 0, FSDP_FOLD_TREE, 0, 0, 0},
        {"odd", CASE_FULL_SHARD, {2, 0}, 0, FSDP_FOLD_TREE, 0, 0, 0},
        {"odd", CASE_FULL_SHARD, {4, 0}, 1, FSDP_FOLD_TREE, 0, 0, 0},
    };
    struct run_case c;

    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        manifest_start("mlp", row[i].size, WORKLOAD_NATURAL, row[i].strategy,
                       row[i].world, &c);
        c.scenario = CASE_CLIP;
        c.layout = row[i].layout;
        c.fold = row[i].fold;
        c.grains = c.fold == FSDP_FOLD_TREE ? CASE_GRAINS : 0;
        c.optimizer = row[i].optimizer;
        c.microbatches = row[i].first ? 2 : 1;
        c.sync[0] = row[i].first != 1;
        c.sync[c.microbatches - 1] = 1;
        c.prefetch_forward = c.prefetch_backward = row[i].ahead ? 1 : 0;
        c.reduces_in_flight = row[i].ahead;
        c.recorded_steps = c.steps; /* each has another norm */
        manifest_numbers(&c);
        FSDP_TRY(case_check(&c) ? FSDP_ERR_INTERNAL : manifest_add(list, &c));
    }
    return FSDP_OK;
}

/* Units that have no backward have no gradient to be clipped; and the second
 * model has parameters without dimensions. */
static int add_graphs(struct case_list *list)
{
    static const uint64_t seed[] = {8, 94};
    struct run_case c;

    for (uint32_t i = 0; i < 4; i++) {
        case_graph_draw(seed[i / 2], &c);
        c.scenario = CASE_CLIP;
        c.layout = i % 2;
        c.recorded_steps = c.steps;
        FSDP_TRY(case_check(&c) ? FSDP_ERR_INTERNAL : manifest_add(list, &c));
    }
    return FSDP_OK;
}

/* Each optimizer, in both layouts; a rank's shard has parts of both groups,
 * and of parameters that it shares with its neighbours. */
static int add_groups(struct case_list *list)
{
    static const struct {
        uint32_t strategy;
        struct manifest_world world;
        uint32_t wrap, layout, optimizer;
    } row[] = {
        {CASE_FULL_SHARD, {2, 0}, CASE_WRAP_WHOLE, 0, FSDP_OPTIMIZER_SGD},
        {CASE_FULL_SHARD, {3, 0}, CASE_WRAP_LAYER, 0, FSDP_OPTIMIZER_ADAMW},
        {CASE_FULL_SHARD, {3, 0}, CASE_WRAP_PAIR, 1, FSDP_OPTIMIZER_MOMENTUM},
        {CASE_HYBRID_SHARD, {4, 2}, CASE_WRAP_WHOLE, 1, FSDP_OPTIMIZER_ADAMW},
        {CASE_NO_SHARD, {2, 0}, CASE_WRAP_LAYER, 0, FSDP_OPTIMIZER_SGD},
    };
    struct run_case c;

    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        manifest_start("mlp", "odd", WORKLOAD_NATURAL, row[i].strategy,
                       row[i].world, &c);
        c.scenario = CASE_GROUPS;
        c.wrap = row[i].wrap;
        c.layout = row[i].layout;
        c.optimizer = row[i].optimizer;
        manifest_numbers(&c);
        c.weight_decay = 0.01f;
        FSDP_TRY(case_check(&c) ? FSDP_ERR_INTERNAL : manifest_add(list, &c));
    }
    return FSDP_OK;
}

int manifest_steps(uint32_t n_ranks, struct case_list *list)
{
    if (n_ranks != 0) {
        return FSDP_OK;
    }
    FSDP_TRY(add_clips(list));
    FSDP_TRY(add_graphs(list));
    return add_groups(list);
}
