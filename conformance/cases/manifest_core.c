/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_core.c - the cases that the manifest has whatever its axes are:
 * those that a person looks at first, and those whose point is one number.
 */
#include "cases/manifest_core.h"
#include "cases/case_graph.h"

#include <stdlib.h>
#include <string.h>

/* The steps of the loss curve in seed 003, code 16.5.1. */
enum {
    CURVE_STEPS = 40
};

const struct manifest_world *core_world(const struct core *core, uint32_t i)
{
    return i < core->axes.n[AXIS_WORLD] ? &core->axes.world[i] : NULL;
}

void core_start_seed(uint32_t strategy, struct manifest_world world,
                     struct run_case *c)
{
    manifest_start("mlp", "seed", WORKLOAD_NATURAL, strategy, world, c);
}

bool core_fits(uint32_t strategy, const struct manifest_world *world)
{
    const bool hybrid =
        strategy == CASE_HYBRID_SHARD || strategy == CASE_HYBRID_SHARD_ZERO2;

    return hybrid == (world->replicas != 0);
}

bool core_is_small(const struct core *core, const struct manifest_world *world,
                   uint32_t ranks)
{
    return !core->own || world->ranks <= (world->replicas != 0 ? 6 : ranks);
}

const uint32_t core_ahead[3][3] = {{1, 1, 0}, {2, 1, 1}, {3, 3, 2}};

void core_run_ahead(struct run_case *c, const uint32_t ahead[3])
{
    c->prefetch_forward = ahead[0];
    c->prefetch_backward = ahead[1];
    c->reduces_in_flight = ahead[2];
}

/* Under every strategy the curve of one rank more, and more: where it parts
 * from the unsharded one is the first thing to know of an engine. */
static int add_curves(const struct core *core)
{
    const struct manifest_world *world;
    struct run_case c;

    for (uint32_t s = 0; s < CASE_N_STRATEGIES; s++) {
        for (uint32_t i = 0; (world = core_world(core, i)) != NULL; i++) {
            if (!core_fits(s, world) || !core_is_small(core, world, 4)) {
                continue;
            }
            core_start_seed(s, *world, &c);
            c.steps = CURVE_STEPS;
            FSDP_TRY(manifest_add(core->list, &c));
        }
    }
    return FSDP_OK;
}

/* Seed 003: the miniature of section 5 and its wraps of exercise 16.5.2, and
 * replicated data, whose curve is the same in every world. */
static int add_miniature(const struct core *core)
{
    static const uint32_t wrap[] = {CASE_WRAP_LAYER, CASE_WRAP_WHOLE,
                                    CASE_WRAP_PAIR};
    const struct manifest_world *world;
    struct run_case c;

    for (uint32_t i = 0; (world = core_world(core, i)) != NULL; i++) {
        if (world->replicas != 0 || (core->own && world->ranks > 4)) {
            continue;
        }
        manifest_start("mlp", "seed", WORKLOAD_REPLICATED, CASE_FULL_SHARD,
                       *world, &c);
        c.steps = CURVE_STEPS;
        FSDP_TRY(manifest_add(core->list, &c));
        if (core->own && world->ranks != 4) {
            continue;
        }
        for (uint32_t w = 0; w < 3; w++) {
            core_start_seed(CASE_FULL_SHARD, *world, &c);
            c.wrap = wrap[w];
            c.steps = CURVE_STEPS;
            FSDP_TRY(manifest_add(core->list, &c));
        }
    }
    return FSDP_OK;
}

/* Eight grains give one curve in every world that divides them. */
static int add_trees(const struct core *core)
{
    static const char *const model[][2] = {{"mlp", "seed"}, {"gpt", "tiny"}};
    const struct manifest_world *world;
    struct run_case c;

    for (uint32_t i = 0; (world = core_world(core, i)) != NULL; i++) {
        if (world->replicas != 0 || CASE_GRAINS % world->ranks != 0) {
            continue;
        }
        for (uint32_t m = 0; m < 2; m++) {
            for (uint32_t o = 0; o <= FSDP_OPTIMIZER_ADAMW; o++) {
                manifest_start(model[m][0], model[m][1], WORKLOAD_NATURAL,
                               CASE_FULL_SHARD, *world, &c);
                c.fold = FSDP_FOLD_TREE;
                c.grains = CASE_GRAINS;
                c.optimizer = o;
                manifest_numbers(&c);
                FSDP_TRY(manifest_add(core->list, &c));
            }
        }
    }
    return FSDP_OK;
}

/* Where shards are padded, and where some ranks' are empty, under every
 * strategy: the optimizer must touch no more than what is there. */
static int add_ragged(const struct core *core)
{
    static const struct manifest_world odd[] = {{3, 0}, {6, 2}};
    static const struct manifest_world empty[] = {{7, 0}, {8, 2}};
    struct run_case c;

    for (uint32_t s = 0; s < CASE_N_STRATEGIES; s++) {
        const uint32_t w = core_fits(s, &odd[0]) ? 0 : 1;

        for (uint32_t o = 0; o <= FSDP_OPTIMIZER_ADAMW && core->own; o++) {
            manifest_start("mlp", "odd", WORKLOAD_NATURAL, s, odd[w], &c);
            c.optimizer = o;
            manifest_numbers(&c);
            FSDP_TRY(manifest_add(core->list, &c));
            manifest_start("mlp", "empty", WORKLOAD_NATURAL, s, empty[w], &c);
            c.optimizer = o;
            manifest_numbers(&c);
            FSDP_TRY(manifest_add(core->list, &c));
        }
    }
    return FSDP_OK;
}

static int add_block(const struct core *core, uint32_t strategy,
                     struct manifest_world world)
{
    struct run_case c;

    manifest_start("gpt", "odd", WORKLOAD_NATURAL, strategy, world, &c);
    c.wrap = CASE_WRAP_BLOCK;
    FSDP_TRY(manifest_add(core->list, &c));
    if (strategy == CASE_FULL_SHARD || strategy == CASE_HYBRID_SHARD) {
        c.keep_root = 1;
        FSDP_TRY(manifest_add(core->list, &c));
    }
    return FSDP_OK;
}

/* A transformer by its blocks, as it is trained in practice. Its root has
 * parameters of its own, and a window around those of all blocks. */
static int add_blocks(const struct core *core)
{
    const struct manifest_world *world;

    for (uint32_t s = 0; s < CASE_N_STRATEGIES; s++) {
        for (uint32_t i = 0; (world = core_world(core, i)) != NULL; i++) {
            if (world->ranks > 1 && core_fits(s, world) &&
                core_is_small(core, world, 3)) {
                FSDP_TRY(add_block(core, s, *world));
            }
        }
    }
    return FSDP_OK;
}

/* Gradients that are not divided by the world. */
static int add_divide_factors(const struct core *core)
{
    static const float factor[] = {1.0f, 3.0f, 0.7f};
    struct run_case c;

    for (uint32_t i = 0; i < 3; i++) {
        core_start_seed(CASE_FULL_SHARD, core->first, &c);
        c.divide_factor = factor[i];
        FSDP_TRY(manifest_add(core->list, &c));
    }
    return FSDP_OK;
}

/* A language model that learns, and a model that is large enough for the
 * memory of a process to tell. */
static int add_large(const struct core *core)
{
    struct run_case c;

    manifest_start("gpt", "small", WORKLOAD_NATURAL, CASE_FULL_SHARD,
                   core->first, &c);
    c.optimizer = FSDP_OPTIMIZER_ADAMW;
    c.wrap = CASE_WRAP_BLOCK;
    c.steps = 20;
    manifest_numbers(&c);
    FSDP_TRY(manifest_add(core->list, &c));

    manifest_start("linear", "large", WORKLOAD_EXACT, CASE_FULL_SHARD,
                   core->first, &c);
    c.steps = 2;
    c.recorded_steps = 0;
    return manifest_add(core->list, &c);
}

/* Scenarios that are about answers: under every strategy, in a world of one,
 * an even and an odd one. */
static int add_answers(const struct core *core)
{
    static const uint32_t scenario[] = {CASE_OPTIONS, CASE_DISAGREE};
    const struct manifest_world *world;
    struct run_case c;

    for (uint32_t s = 0; s < CASE_N_STRATEGIES; s++) {
        for (uint32_t i = 0; (world = core_world(core, i)) != NULL; i++) {
            if (!core_fits(s, world) || !core_is_small(core, world, 3)) {
                continue;
            }
            for (uint32_t k = 0; k < 2; k++) {
                core_start_seed(s, *world, &c);
                c.scenario = scenario[k];
                if (case_check(&c) == NULL) {
                    FSDP_TRY(manifest_add(core->list, &c));
                }
            }
        }
    }
    return FSDP_OK;
}

/* Exact data: the order of no sum matters, so every world has one curve. */
static int add_exact_worlds(const struct core *core)
{
    const struct manifest_world *world;
    struct run_case c;

    for (uint32_t i = 0; (world = core_world(core, i)) != NULL; i++) {
        if (world->replicas == 0) {
            manifest_start("linear", "small", WORKLOAD_EXACT, CASE_FULL_SHARD,
                           *world, &c);
            FSDP_TRY(manifest_add(core->list, &c));
        }
    }
    return FSDP_OK;
}

/* The same curve whatever is gathered together, and however far ahead: each
 * strict case has its twins. And one block more costs what it takes at rest. */
static int add_schedules(const struct core *core)
{
    static const uint32_t wrap[] = {CASE_WRAP_WHOLE, CASE_WRAP_LAYER,
                                    CASE_WRAP_PAIR, CASE_WRAP_BLOCK};
    const struct manifest_world world = {core->own ? 3 : core->first.ranks, 0};
    struct run_case c;

    for (uint32_t w = 0; w < 4; w++) {
        manifest_start("gpt", "tiny", WORKLOAD_NATURAL, CASE_FULL_SHARD, world,
                       &c);
        c.wrap = wrap[w];
        FSDP_TRY(manifest_add(core->list, &c));
        memcpy(c.size, "tall", sizeof "tall"); /* one block more */
        FSDP_TRY(manifest_add(core->list, &c));
        memcpy(c.size, "tiny", sizeof "tiny");
        for (uint32_t a = 0; a < 3 && wrap[w] == CASE_WRAP_LAYER; a++) {
            core_run_ahead(&c, core_ahead[a]);
            FSDP_TRY(manifest_add(core->list, &c));
        }
    }
    return FSDP_OK;
}

/* Models that no person would write: modules that are used twice, never, or
 * without a gradient, windows within windows, parameters without elements.
 * Between them these seeds have all of graph_feature (case_graph_test.c); each
 * is sharded in both layouts. */
static int add_graphs(const struct core *core)
{
    static const uint64_t seed[] = {4, 7, 8, 28, 68, 78, 80, 143};
    struct run_case c;

    for (uint32_t i = 0; core->own && i < sizeof seed / sizeof seed[0]; i++) {
        case_graph_draw(seed[i], &c);
        c.layout = FSDP_LAYOUT_FLAT;
        FSDP_TRY(manifest_add(core->list, &c));
        c.layout = FSDP_LAYOUT_PER_PARAMETER;
        FSDP_TRY(manifest_add(core->list, &c));
    }
    return FSDP_OK;
}

int manifest_core(const uint32_t *ranks, uint32_t n_ranks,
                  struct case_list *list)
{
    static int (*const add[])(const struct core *) = {
        add_curves,    add_miniature,
        add_trees,     add_ragged,
        add_blocks,    add_divide_factors,
        add_large,     add_exact_worlds,
        add_schedules, add_answers,
        core_add_rows, core_add_checkpoints,
        add_graphs,    core_add_both_layouts,
    };
    struct core core = {.own = n_ranks == 0, .list = list};

    FSDP_TRY(manifest_axes_make(ranks, n_ranks, &core.axes));
    core.first = core.own ? (struct manifest_world){2, 0} : core.axes.world[0];
    for (size_t i = 0; i < sizeof add / sizeof add[0]; i++) {
        FSDP_TRY(add[i](&core));
    }
    return FSDP_OK;
}

/* Reductions in two dimensions, one behind the other, several in a step and in
 * flight: the most that waits have to order. */
int manifest_ahead(uint32_t n_ranks, struct case_list *list)
{
    static const uint32_t ahead[][3] = {{0, 0, 0}, {1, 1, 1}, {2, 2, 2}};
    const struct manifest_world world = {4, 2};
    struct run_case c;

    for (uint32_t a = 0; n_ranks == 0 && a < 3; a++) {
        manifest_start("gpt", "tiny", WORKLOAD_NATURAL, CASE_HYBRID_SHARD,
                       world, &c);
        c.microbatches = 2;
        c.sync[1] = 1;
        core_run_ahead(&c, ahead[a]);
        FSDP_TRY(manifest_add(list, &c));
    }
    return FSDP_OK;
}
