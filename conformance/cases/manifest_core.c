/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_core.c - the cases that the manifest has whatever its axes are:
 * those that a person looks at first, and those whose point is one number.
 */
#include "cases/case_graph.h"
#include "cases/manifest_axes.h"

#include <stdlib.h>
#include <string.h>

struct core {
    struct manifest_axes axes;
    bool own; /* the suite's own world sizes, not asked ones */
    struct manifest_world first; /* where one world is enough */
    struct case_list *list;
};

/* The steps of the loss curve in seed 003, code 16.5.1. */
enum {
    CURVE_STEPS = 40
};

static const struct manifest_world *core_world(const struct core *core,
                                               uint32_t i)
{
    return i < core->axes.n[AXIS_WORLD] ? &core->axes.world[i] : NULL;
}

static void start_seed(uint32_t strategy, struct manifest_world world,
                       struct run_case *c)
{
    manifest_start("mlp", "seed", WORKLOAD_NATURAL, strategy, world, c);
}

static bool fits(uint32_t strategy, const struct manifest_world *world)
{
    const bool hybrid =
        strategy == CASE_HYBRID_SHARD || strategy == CASE_HYBRID_SHARD_ZERO2;

    return hybrid == (world->replicas != 0);
}

/* Whether a world is small for a strategy, and so cheap; asked worlds all
 * are, as there may be no other. */
static bool is_small(const struct core *core,
                     const struct manifest_world *world, uint32_t ranks)
{
    return !core->own || world->ranks <= (world->replicas != 0 ? 6 : ranks);
}

/* Under every strategy the curve of one rank more, and more: where it parts
 * from the unsharded one is the first thing to know of an engine. */
static int add_curves(const struct core *core)
{
    const struct manifest_world *world;
    struct run_case c;

    for (uint32_t s = 0; s < CASE_N_STRATEGIES; s++) {
        for (uint32_t i = 0; (world = core_world(core, i)) != NULL; i++) {
            if (!fits(s, world) || !is_small(core, world, 4)) {
                continue;
            }
            start_seed(s, *world, &c);
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
            start_seed(CASE_FULL_SHARD, *world, &c);
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
        const uint32_t w = fits(s, &odd[0]) ? 0 : 1;

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
                fits(s, &flat[w]) ? flat[w] : mesh[w];

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
    static const uint32_t ahead[][3] = {{1, 1, 0}, {2, 1, 1}, {3, 3, 2}};
    const struct manifest_world *world;
    struct run_case c;

    for (uint32_t i = 0; (world = core_world(core, i)) != NULL; i++) {
        if (world->replicas == 0) {
            start_seed(CASE_FULL_SHARD, *world, &c);
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
        c.prefetch_forward = ahead[a][0];
        c.prefetch_backward = ahead[a][1];
        c.reduces_in_flight = ahead[a][2];
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

static int add_both_layouts(const struct core *core)
{
    for (uint32_t ranks = 2; ranks <= 4 && core->own; ranks++) {
        FSDP_TRY(add_common(core, FSDP_LAYOUT_FLAT, ranks));
        FSDP_TRY(add_common(core, FSDP_LAYOUT_PER_PARAMETER, ranks));
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
            if (world->ranks > 1 && fits(s, world) &&
                is_small(core, world, 3)) {
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
        start_seed(CASE_FULL_SHARD, core->first, &c);
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
            if (!fits(s, world) || !is_small(core, world, 3)) {
                continue;
            }
            for (uint32_t k = 0; k < 2; k++) {
                start_seed(s, *world, &c);
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
    static const uint32_t ahead[][3] = {{1, 1, 0}, {2, 1, 1}, {3, 3, 2}};
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
            c.prefetch_forward = ahead[a][0];
            c.prefetch_backward = ahead[a][1];
            c.reduces_in_flight = ahead[a][2];
            FSDP_TRY(manifest_add(core->list, &c));
        }
    }
    return FSDP_OK;
}

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
            if (!fits(s, world) || (hybrid && world->replicas != 2)) {
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
            } else if (is_small(core, world, 4)) {
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

int manifest_core(const uint32_t *ranks, uint32_t n_ranks,
                  struct case_list *list)
{
    static int (*const add[])(const struct core *) = {
        add_curves,      add_miniature,      add_trees,  add_ragged,
        add_blocks,      add_divide_factors, add_large,  add_exact_worlds,
        add_schedules,   add_answers,        add_rows,   add_plain_rows,
        add_checkpoints, add_resumed_rows,   add_graphs, add_both_layouts,
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
        c.prefetch_forward = ahead[a][0];
        c.prefetch_backward = ahead[a][1];
        c.reduces_in_flight = ahead[a][2];
        FSDP_TRY(manifest_add(list, &c));
    }
    return FSDP_OK;
}
