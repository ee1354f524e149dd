/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_resumed.c - the part of the core that saves, and loads what it
 * saved.
 */
#include "cases/manifest_core.h"

static int add_resumed(const struct core *core, const char *size,
                       uint32_t strategy, struct manifest_world world,
                       uint32_t scenario, uint32_t optimizer, uint32_t wrap)
{
    struct run_case c;

    manifest_start("mlp", size, WORKLOAD_NATURAL, strategy, world, &c);
    c.scenario = scenario;
    c.optimizer = optimizer;
    c.wrap = wrap;
    if (scenario == CASE_GROW || scenario == CASE_SHRINK) {
        c.fold = FSDP_FOLD_TREE;
        c.grains = CASE_GRAINS;
    }
    c.recorded_steps = c.steps;
    manifest_numbers(&c);
    return case_check(&c) == NULL ? manifest_add(core->list, &c) : FSDP_OK;
}

/* Checkpoints under every strategy, in every form: uneven shards and empty
 * ones, one writer and many; and saved by half or twice as many ranks. */
static int add_checkpoints(const struct core *core)
{
    const uint32_t adamw = FSDP_OPTIMIZER_ADAMW;
    const uint32_t momentum = FSDP_OPTIMIZER_MOMENTUM;
    const struct manifest_world *world;

    for (uint32_t s = 0; s < CASE_N_STRATEGIES; s++) {
        for (uint32_t i = 0; (world = core_world(core, i)) != NULL; i++) {
            bool hybrid = world->replicas != 0;
            bool odd = world->ranks == (hybrid ? 6 : 3);
            bool empty = world->ranks == (hybrid ? 8 : 7);
            if (!core_fits(s, world) || (hybrid && world->replicas != 2)) {
                continue;
            }
            if (odd) {
                FSDP_TRY(add_resumed(core, "odd", s, *world, CASE_RESUME, adamw,
                                     CASE_WRAP_LAYER));
                FSDP_TRY(add_resumed(core, "odd", s, *world, CASE_RESUME_FULL,
                                     adamw, CASE_WRAP_LAYER));
            } else if (empty) {
                FSDP_TRY(add_resumed(core, "empty", s, *world, CASE_RESUME,
                                     momentum, CASE_WRAP_LAYER));
            } else if (core_is_small(core, world, 4)) {
                FSDP_TRY(add_resumed(core, "seed", s, *world, CASE_RESUME_FULL,
                                     momentum, CASE_WRAP_WHOLE));
                FSDP_TRY(add_resumed(core, "odd", s, *world, CASE_RESUME_LOCAL,
                                     adamw, CASE_WRAP_PAIR));
            }
            FSDP_TRY(add_resumed(core, "odd", s, *world, CASE_GROW, adamw,
                                 CASE_WRAP_LAYER));
            FSDP_TRY(add_resumed(core, "odd", s, *world, CASE_SHRINK, adamw,
                                 CASE_WRAP_WHOLE));
        }
    }
    return FSDP_OK;
}

/* The same of parameters sharded by rows; a world of four is made of two, and
 * of eight, some of which own nothing. */
static int add_resumed_rows(const struct core *core)
{
    static const uint32_t scenario[] = {CASE_RESUME, CASE_RESUME_FULL,
                                        CASE_RESUME_LOCAL, CASE_GROW,
                                        CASE_SHRINK};
    static const struct manifest_world worlds[] = {{4, 0}, {6, 2}};
    struct run_case c;

    for (uint32_t w = 0; w < 2 && core->own; w++) {
        for (uint32_t i = 0; i < 5; i++) {
            bool tree = scenario[i] == CASE_GROW || scenario[i] == CASE_SHRINK;

            manifest_start("mlp", "odd", WORKLOAD_NATURAL,
                           worlds[w].replicas != 0 ? CASE_HYBRID_SHARD
                                                   : CASE_FULL_SHARD,
                           worlds[w], &c);
            c.layout = FSDP_LAYOUT_PER_PARAMETER;
            c.scenario = scenario[i];
            c.optimizer = FSDP_OPTIMIZER_ADAMW;
            c.wrap = CASE_WRAP_PAIR;
            c.fold = tree ? FSDP_FOLD_TREE : FSDP_FOLD_RANK;
            c.grains = tree ? CASE_GRAINS : 0;
            c.recorded_steps = c.steps;
            manifest_numbers(&c);
            if (case_check(&c) == NULL) {
                FSDP_TRY(manifest_add(core->list, &c));
            }
        }
    }
    return FSDP_OK;
}

int core_add_checkpoints(const struct core *core)
{
    FSDP_TRY(add_checkpoints(core));
    return add_resumed_rows(core);
}
