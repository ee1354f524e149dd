/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_layouts.c - the part of the core that is about how parameters are
 * laid out: by rows, and what engines have in common in either layout.
 */
#include "cases/manifest_core.h"

/* Parameters sharded one by one, by rows: rows that do not divide, and ranks
 * without any, where a unit has several parameters, under every strategy. */
static int add_rows(const struct core *core)
{
    static const struct manifest_world flat[] = {{3, 0}, {4, 0}, {7, 0}};
    static const struct manifest_world mesh[] = {{6, 2}, {6, 3}, {8, 2}};
    struct run_case c;

    for (uint32_t s = 0; s < CASE_N_STRATEGIES; s++) {
        for (uint32_t w = 0; w < 3 && core->own; w++) {
            const struct manifest_world world =
                core_fits(s, &flat[w]) ? flat[w] : mesh[w];

            manifest_start("mlp", "odd", WORKLOAD_NATURAL, s, world, &c);
            c.layout = FSDP_LAYOUT_PER_PARAMETER;
            c.wrap = CASE_WRAP_WHOLE;
            c.fold = FSDP_FOLD_RING;
            c.optimizer = w; /* one each */
            manifest_numbers(&c);
            FSDP_TRY(manifest_add(core->list, &c));
            manifest_start("gpt", "odd", WORKLOAD_NATURAL, s, world, &c);
            c.layout = FSDP_LAYOUT_PER_PARAMETER;
            c.wrap = CASE_WRAP_BLOCK;
            FSDP_TRY(manifest_add(core->list, &c));
        }
    }
    return FSDP_OK;
}

/* The same where each parameter is a unit: the plainest case of the layout, in
 * every world, and as far ahead as engines run. */
static int add_plain_rows(const struct core *core)
{
    const struct manifest_world *world;
    struct run_case c;

    for (uint32_t i = 0; (world = core_world(core, i)) != NULL; i++) {
        if (world->replicas == 0) {
            core_start_seed(CASE_FULL_SHARD, *world, &c);
            c.layout = FSDP_LAYOUT_PER_PARAMETER;
            FSDP_TRY(manifest_add(core->list, &c));
        }
    }
    for (uint32_t a = 0; a < 3; a++) {
        manifest_start(
            "gpt", "tiny", WORKLOAD_NATURAL, CASE_FULL_SHARD,
            (struct manifest_world){core->own ? 3 : core->first.ranks, 0}, &c);
        c.layout = FSDP_LAYOUT_PER_PARAMETER;
        FSDP_TRY(manifest_add(core->list, &c)); /* the strict twin, once */
        core_run_ahead(&c, core_ahead[a]);
        FSDP_TRY(manifest_add(core->list, &c));
    }
    return FSDP_OK;
}

/* What engines outside of the suite have in common, few ranks and plain
 * models, in both layouts: each strategy, optimizer and way to accumulate, an
 * evaluation, a second life, and data on which nothing is rounded. */
static int add_common(const struct core *core, uint32_t layout, uint32_t ranks)
{
    static const struct {
        uint32_t strategy, optimizer, microbatches, first, scenario, exact;
    } row[] = {
        {CASE_FULL_SHARD, FSDP_OPTIMIZER_SGD, 1, 1, CASE_EVAL, 0},
        {CASE_FULL_SHARD, FSDP_OPTIMIZER_SGD, 1, 1, CASE_AGAIN, 0},
        {CASE_FULL_SHARD, FSDP_OPTIMIZER_MOMENTUM, 2, 0, CASE_TRAIN, 0},
        {CASE_FULL_SHARD, FSDP_OPTIMIZER_ADAMW, 2, 1, CASE_TRAIN, 0},
        {CASE_FULL_SHARD, FSDP_OPTIMIZER_SGD, 2, 0, CASE_TRAIN, 1},
        {CASE_SHARD_GRAD_OP, FSDP_OPTIMIZER_SGD, 1, 1, CASE_EVAL, 0},
        {CASE_SHARD_GRAD_OP, FSDP_OPTIMIZER_ADAMW, 1, 1, CASE_TRAIN, 0},
        {CASE_NO_SHARD, FSDP_OPTIMIZER_SGD, 2, 0, CASE_TRAIN, 0},
        {CASE_NO_SHARD, FSDP_OPTIMIZER_MOMENTUM, 1, 1, CASE_EVAL, 0},
        {CASE_NO_SHARD, FSDP_OPTIMIZER_SGD, 1, 1, CASE_TRAIN, 1},
        {CASE_HYBRID_SHARD, FSDP_OPTIMIZER_SGD, 2, 0, CASE_TRAIN, 0},
        {CASE_HYBRID_SHARD_ZERO2, FSDP_OPTIMIZER_ADAMW, 1, 1, CASE_EVAL, 0},
    };
    struct run_case c;

    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        const bool hybrid = row[i].strategy >= CASE_HYBRID_SHARD;
        const struct manifest_world world = {ranks, hybrid ? 2 : 0};

        if (hybrid && (ranks % 2 != 0 || ranks < 4)) {
            continue;
        }
        manifest_start(row[i].exact ? "linear" : "mlp",
                       row[i].exact ? "small" : "odd",
                       row[i].exact ? WORKLOAD_EXACT : WORKLOAD_NATURAL,
                       row[i].strategy, world, &c);
        c.layout = layout;
        c.optimizer = row[i].optimizer;
        c.scenario = row[i].scenario;
        c.microbatches = row[i].microbatches;
        c.sync[0] = row[i].first;
        c.sync[c.microbatches - 1] = 1;
        manifest_numbers(&c);
        FSDP_TRY(manifest_add(core->list, &c));
    }
    return FSDP_OK;
}

int core_add_both_layouts(const struct core *core)
{
    for (uint32_t ranks = 2; ranks <= 4 && core->own; ranks++) {
        FSDP_TRY(add_common(core, FSDP_LAYOUT_FLAT, ranks));
        FSDP_TRY(add_common(core, FSDP_LAYOUT_PER_PARAMETER, ranks));
    }
    return FSDP_OK;
}

int core_add_rows(const struct core *core)
{
    FSDP_TRY(add_rows(core));
    return add_plain_rows(core);
}
