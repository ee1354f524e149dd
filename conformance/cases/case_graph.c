/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_graph.c - draws the random cases of workload "graph", and makes them
 * smaller.
 */
#include "cases/case_graph.h"
#include "cases/case_script.h"
#include "models/workload.h"

#include <fsdp/arith/philox.h>
#include <string.h>

enum {
    CASE_STREAM = 0x11000000, /* of random numbers; the graph has its own */
    MORE_STREAM = 0x11000001, /* for what generator 1 did not draw, */
    UNIT_STREAM = 0x11000002, /* for what generator 2 did not draw */
    SCRIPT_UNITS = 2,         /* how many units drawn scripts name, */
    SCRIPT_PARAMETERS = 3,    /* how many parameters, */
    SCRIPT_MICROBATCHES = 3,
};

struct chance {
    uint64_t seed, at;
    uint32_t stream;
};

/* 0 .. n - 1 */
static uint32_t below(struct chance *c, uint32_t n)
{
    const struct fsdp_philox_out b =
        fsdp_random_block(c->seed, c->stream, c->at / 4);

    return (uint32_t)(((uint64_t)b.word[c->at++ % 4] * n) >> 32);
}

static void draw_world(struct chance *d, struct run_case *c)
{
    static const uint32_t ranks[] = {1, 2, 2, 3, 3, 4};

    c->ranks = ranks[below(d, 6)];
    c->strategy = below(d, CASE_N_STRATEGIES);
    c->replicas = 1;
    if (c->strategy == CASE_HYBRID_SHARD ||
        c->strategy == CASE_HYBRID_SHARD_ZERO2) {
        c->ranks = 4;
        c->replicas = 2;
    } else if (c->strategy == CASE_NO_SHARD) {
        c->replicas = c->ranks;
    }
    c->fold = below(d, FSDP_FOLD_TREE + 1);
    if (c->fold == FSDP_FOLD_TREE && CASE_GRAINS % c->ranks != 0) {
        c->fold = FSDP_FOLD_RANK;
    }
    c->grains = c->fold == FSDP_FOLD_TREE ? CASE_GRAINS : 0;
}

static void draw_sync(struct chance *d, struct run_case *c)
{
    c->microbatches = 1 + below(d, 3);
    for (uint32_t b = 0; b < c->microbatches; b++) {
        c->sync[b] = b + 1 == c->microbatches || below(d, 2) == 1;
    }
}

bool case_graph_of(const struct run_case *c, struct graph *out)
{
    uint64_t bits;

    if (!case_is_graph(c) || !graph_size_bits(c->size, &bits)) {
        return false;
    }
    graph_draw(c->seed, bits, out);
    return true;
}

bool case_graph_has(const struct run_case *c, uint32_t features)
{
    struct graph g;

    return case_graph_of(c, &g) && (graph_features(&g) & features) == features;
}

static uint32_t units_of(const struct run_case *c)
{
    struct graph g;

    return case_graph_of(c, &g) ? g.n_units : 0;
}

static void at_most(uint32_t *x, uint32_t most)
{
    *x = *x < most ? *x : most;
}

/* Limits the options of running ahead to the number of units. */
static void fit_units(struct run_case *c)
{
    const uint32_t n = units_of(c);

    at_most(&c->prefetch_forward, n);
    at_most(&c->prefetch_backward, n);
    at_most(&c->reduces_in_flight, n);
}

static void draw_first(uint64_t seed, struct run_case *out)
{
    static const uint32_t scenario[] = {CASE_TRAIN,  CASE_TRAIN,  CASE_TRAIN,
                                        CASE_EVAL,   CASE_EVAL,   CASE_CANCEL,
                                        CASE_MISUSE, CASE_SUMMON, CASE_AGAIN};
    struct chance d = {.seed = seed, .stream = CASE_STREAM};
    const bool ties = seed % 4 == 3;
    bool ahead;

    memset(out, 0, sizeof(*out));
    memcpy(out->workload, CASE_GRAPH, sizeof(CASE_GRAPH));
    memcpy(out->size, ties ? "ties" : "random", ties ? 5 : 7);
    out->data = WORKLOAD_NATURAL;
    out->seed = seed;
    out->wrap = CASE_WRAP_DRAWN;
    draw_world(&d, out);
    draw_sync(&d, out);
    out->optimizer = below(&d, FSDP_OPTIMIZER_ADAMW + 1);
    out->lr = case_default_lr(out);
    out->weight_decay = below(&d, 3) == 0 ? 0.01f : 0.0f;
    out->divide_factor = below(&d, 8) == 0 ? 3.0f : 0.0f;
    out->keep_root = below(&d, 3) == 0;
    out->scenario = scenario[below(&d, 9)];
    out->steps = 2 + below(&d, 2);
    out->recorded_steps = 2;
    ahead = below(&d, 3) == 0;
    out->prefetch_forward = below(&d, 4) * ahead;
    out->prefetch_backward = below(&d, 4) * ahead;
    out->reduces_in_flight = below(&d, 3) * ahead;
    out->layout = below(&d, FSDP_LAYOUT_PER_PARAMETER + 1);
    fit_units(out);
}

/* ---- What came later: ties, frozen, recomputed, single units ------------- */

/* Whether c has all units, parameters and microbatches that drawn scripts name.
 * Ignored parameters do not count, as scripts cannot freeze them. */
static bool has_what_scripts_name(const struct run_case *c)
{
    struct graph g;
    uint32_t parameters = 0;

    if (!case_graph_of(c, &g)) {
        return false;
    }
    for (uint32_t m = 0; m < g.n_modules; m++) {
        for (uint32_t i = 0; i < g.module[m].n_parameters; i++) {
            if (parameters++ < SCRIPT_PARAMETERS &&
                g.module[m].parameter[i].unit == FSDP_NO_UNIT) {
                return false;
            }
        }
    }
    return g.n_units >= SCRIPT_UNITS && parameters >= SCRIPT_PARAMETERS &&
           c->microbatches >= SCRIPT_MICROBATCHES;
}

static void draw_script(struct chance *d, struct run_case *c)
{
    static const char *const name[] = {"kept-copies", "forward-knob",
                                       "by-hand",     "factors",
                                       "freeze",      "all-reduce-alone"};
    const struct case_script *s = case_script_find(name[below(d, 6)]);
    struct run_case plays = *c;

    while (plays.microbatches < SCRIPT_MICROBATCHES) {
        plays.sync[plays.microbatches++] = 1;
    }
    if (s && has_what_scripts_name(&plays)) {
        case_play_script(&plays, s);
        *c = plays;
    }
}

/* Sets or clears a bit of the graph's size. */
static void size_with(struct run_case *c, uint64_t bit, bool has)
{
    uint64_t bits;

    if (graph_size_bits(c->size, &bits)) {
        memset(c->size, 0, sizeof(c->size));
        graph_size_text(has ? bits | bit : bits & ~bit, c->size);
        fit_units(c);
    }
}

/* Takes all ties away if the head is tied, so that something is trained,
 * whatever is frozen. */
static void untie_head(struct run_case *c)
{
    struct graph g;

    if (case_graph_of(c, &g) &&
        g.module[g.n_modules - 1].parameter[0].tied >= 0) {
        size_with(c, (uint64_t)1 << GRAPH_TIES, false);
    }
}

static void draw_more(uint64_t seed, struct run_case *out)
{
    const struct workload *w = workload_find(out->workload);
    struct chance d = {.seed = seed, .stream = MORE_STREAM};
    const uint32_t axis = below(&d, 3);

    if (below(&d, 3) == 0) {
        size_with(out, (uint64_t)1 << GRAPH_TIES, true);
    }
    if (w && axis == 0) {
        out->frozen =
            workload_offer(w->freezes, below(&d, workload_offers(w->freezes)));
        untie_head(out);
    } else if (w && axis == 1) {
        out->recompute = workload_offer(
            w->recomputes, below(&d, workload_offers(w->recomputes)));
    }
    if (below(&d, 3) == 0) {
        draw_script(&d, out);
    }
}

/* Generator 3 draws units of parameters. If c plays a script, nothing is
 * changed unless all that scripts name is still there. */
static void draw_units(uint64_t seed, struct run_case *out)
{
    struct chance d = {.seed = seed, .stream = UNIT_STREAM};
    struct run_case c = *out;

    if (below(&d, 2) == 0) {
        size_with(&c, (uint64_t)1 << GRAPH_UNITS, true);
    }
    if (below(&d, 8) == 0) {
        c.wrap = CASE_WRAP_SCATTER;
    }
    if (below(&d, 2) == 0 && c.recompute != WORKLOAD_KEEPS) {
        c.recompute = WORKLOAD_RECOMPUTE_PAIR;
    }
    if (!case_is_script(&c) || has_what_scripts_name(&c)) {
        *out = c;
    }
}

void case_graph_draw_by(uint32_t generator, uint64_t seed, struct run_case *out)
{
    draw_first(seed, out);
    if (generator > 1) {
        draw_more(seed, out);
    }
    if (generator > 2) {
        draw_units(seed, out);
    }
}

void case_graph_draw(uint64_t seed, struct run_case *out)
{
    case_graph_draw_by(CASE_GRAPH_GENERATOR, seed, out);
}

/* ---- Smaller ----------------------------------------------------------- */

static bool set(uint32_t *x, uint32_t value)
{
    const bool changes = *x != value;

    *x = value;
    return changes;
}

static bool fewer_ranks(struct run_case *c, uint32_t ranks)
{
    if (c->ranks <= ranks || c->replicas != 1) {
        return false;
    }
    c->ranks = ranks;
    return true;
}

static bool one_microbatch_less(struct run_case *c)
{
    if (c->microbatches < 2) {
        return false;
    }
    /* Drops the first microbatch; the last is still reduced, as it must be. */
    memmove(c->sync, c->sync + 1,
            (CASE_MAX_MICROBATCHES - 1) * sizeof(*c->sync));
    c->sync[--c->microbatches] = 0;
    return true;
}

static bool full_shard(struct run_case *c)
{
    c->replicas = 1;
    return set(&c->strategy, CASE_FULL_SHARD);
}

static bool plain_fold(struct run_case *c)
{
    c->grains = 0;
    return set(&c->fold, FSDP_FOLD_RANK);
}

static bool plain_optimizer(struct run_case *c)
{
    const bool changes = set(&c->optimizer, FSDP_OPTIMIZER_SGD);

    c->lr = case_default_lr(c);
    return changes;
}

static bool fewer_steps(struct run_case *c)
{
    if (c->steps < 2) {
        return false;
    }
    c->steps--;
    at_most(&c->recorded_steps, c->steps);
    return true;
}

static bool plain_number(float *x)
{
    const bool changes = *x > 0.0f;

    *x = 0.0f;
    return changes;
}

static bool plain_scenario(struct run_case *c)
{
    if (case_is_script(c)) {
        memset(c->script, 0, sizeof(c->script));
        c->steps = c->recorded_steps = 2;
    }
    return set(&c->scenario, CASE_TRAIN);
}

enum {
    SIMPLER = 18
};

/* The i-th way to simplify the options; false: it changes nothing. */
static bool simplify(struct run_case *c, uint32_t i)
{
    switch (i) {
    case 0:
        return plain_scenario(c);
    case 1:
        return full_shard(c);
    case 2:
        return plain_fold(c);
    case 3:
        return fewer_ranks(c, 1);
    case 4:
        return fewer_ranks(c, 2);
    case 5:
        return fewer_ranks(c, 3);
    case 6:
        return one_microbatch_less(c);
    case 7:
        return plain_optimizer(c);
    case 8:
        return fewer_steps(c);
    case 9:
        return set(&c->keep_root, 0);
    case 10:
        return set(&c->prefetch_forward, 0);
    case 11:
        return set(&c->prefetch_backward, 0);
    case 12:
        return set(&c->reduces_in_flight, 0);
    case 13:
        return set(&c->layout, FSDP_LAYOUT_FLAT);
    case 14:
        return set(&c->frozen, WORKLOAD_TRAINS_ALL);
    case 15:
        return set(&c->recompute, WORKLOAD_KEEPS);
    case 16:
        return set(&c->wrap, CASE_WRAP_DRAWN);
    default:
        /* Both are simplified together: each alone says little. */
        return plain_number(&c->weight_decay) | plain_number(&c->divide_factor);
    }
}

/* Clears the i-th bit of the size that is set and drops anything; false: there
 * are fewer. */
static bool drop_bit(struct run_case *c, uint32_t i)
{
    const uint64_t more = (uint64_t)1 << GRAPH_TIES | (uint64_t)1
                                                          << GRAPH_UNITS;
    uint64_t bits;

    if (!graph_size_bits(c->size, &bits)) {
        return false;
    }
    for (uint64_t used = bits & (graph_used_bits(c->seed) | more); used != 0;
         used &= used - 1) {
        if (i-- == 0) {
            graph_size_text(bits & ~(used & -used), c->size);
            return true;
        }
    }
    return false;
}

/* Drops a part of what the size keeps: callers try halves, then quarters, then
 * eighths. */
static bool drop_many(struct run_case *c, uint32_t part, uint32_t of)
{
    uint64_t bits;
    uint64_t used;
    uint32_t n = 0;
    uint32_t i = 0;

    if (!graph_size_bits(c->size, &bits)) {
        return false;
    }
    used = bits & graph_used_bits(c->seed);
    for (uint64_t x = used; x != 0; x &= x - 1) {
        n++;
    }
    if (n < 2 * of) {
        return false;
    }
    for (uint64_t x = used; x != 0; x &= x - 1, i++) {
        if (i * of / n == part) {
            bits &= ~(x & -x);
        }
    }
    graph_size_text(bits, c->size);
    return true;
}

bool case_graph_smaller(const struct run_case *c, uint32_t *at,
                        struct run_case *out)
{
    static const uint32_t parts[][2] = {{0, 2}, {1, 2}, {0, 4}, {1, 4}, {2, 4},
                                        {3, 4}, {0, 8}, {1, 8}, {2, 8}, {3, 8},
                                        {4, 8}, {5, 8}, {6, 8}, {7, 8}};
    const uint32_t n_parts = sizeof(parts) / sizeof(parts[0]);

    for (; *at < n_parts + SIMPLER + GRAPH_UNITS + 1; (*at)++) {
        const uint32_t i = *at;
        bool changed;

        *out = *c;
        if (i < n_parts) {
            changed = drop_many(out, parts[i][0], parts[i][1]);
        } else if (i < n_parts + SIMPLER) {
            changed = simplify(out, i - n_parts);
        } else {
            changed = drop_bit(out, i - n_parts - SIMPLER);
        }
        fit_units(out);
        if (changed && !case_check(out) &&
            (!case_is_script(out) || has_what_scripts_name(out))) {
            (*at)++;
            return true;
        }
    }
    return false;
}
