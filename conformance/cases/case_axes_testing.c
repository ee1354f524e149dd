/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_axes_testing.c - the values of the axes, which of them exist together
 * and why, and the id of a case that has them.
 */
#include "cases/case_axes_testing.h"

#include <stdio.h>
#include <string.h>

#define N_OF(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

const char *const axis_name[N_AXES] = {
    "model", "world",     "wrap",      "scenario", "strategy", "sync",
    "fold",  "optimizer", "keep-root", "ahead",    "layout"};

static const struct model_value {
    const char *workload, *size;
    uint32_t data;
    bool is_large; /* costs more than all others together */
} models[] = {
    {"mlp", "seed", WORKLOAD_NATURAL, false},
    {"mlp", "seed", WORKLOAD_REPLICATED, false},
    {"mlp", "odd", WORKLOAD_NATURAL, false},
    {"mlp", "empty", WORKLOAD_NATURAL, false},
    {"mlp", "wide", WORKLOAD_NATURAL, false},
    {"mlp", "seed", WORKLOAD_EXACT, false},
    {"linear", "small", WORKLOAD_EXACT, false},
    {"linear", "tiny", WORKLOAD_EXACT, false},
    {"linear", "small", WORKLOAD_NATURAL, false},
    {"gpt", "odd", WORKLOAD_NATURAL, false},
    {"gpt", "tiny", WORKLOAD_NATURAL, false},
    {"gpt", "small", WORKLOAD_NATURAL, true},
};

static const uint32_t scenarios[] = {CASE_TRAIN,  CASE_EVAL,   CASE_CANCEL,
                                     CASE_MISUSE, CASE_SUMMON, CASE_AGAIN};

/* One letter for each microbatch; s: its gradients are reduced. */
static const char *const syncs[] = {"s", "ns", "ss", "nns", "sns"};

/* Prefetch forward, prefetch backward, reduces in flight: over the rows each
 * takes 0, 1 and 2. The first row is the strict profile. */
static const uint32_t aheads[][3] = {
    {0, 0, 0}, {0, 1, 1}, {1, 0, 2}, {2, 2, 0}, {1, 2, 1}};

static bool is_hybrid(uint32_t strategy)
{
    return strategy == CASE_HYBRID_SHARD || strategy == CASE_HYBRID_SHARD_ZERO2;
}

/* The value that case c has on an axis, spelled as in ids. */
static void word_of(const struct run_case *c, uint32_t axis,
                    char word[AXIS_WORD_BYTES])
{
    const char *const name[N_AXES] = {
        [AXIS_WRAP] = case_wrap_name(c->wrap),
        [AXIS_SCENARIO] = case_scenario_name(c->scenario),
        [AXIS_STRATEGY] = case_strategy_name(c->strategy),
        [AXIS_FOLD] = case_fold_name(c->fold),
        [AXIS_OPTIMIZER] = case_optimizer_name(c->optimizer),
        [AXIS_KEEP_ROOT] = c->keep_root ? "keep-root" : "not",
        [AXIS_LAYOUT] = case_layout_name(c->layout)};

    memset(word, 0, AXIS_WORD_BYTES);
    if (axis == AXIS_MODEL) {
        snprintf(word, AXIS_WORD_BYTES, "%s.%s.%s", c->workload, c->size,
                 case_data_name(c->data));
    } else if (axis == AXIS_WORLD && is_hybrid(c->strategy)) {
        snprintf(word, AXIS_WORD_BYTES, "k%ur%u", c->ranks, c->replicas);
    } else if (axis == AXIS_WORLD) {
        snprintf(word, AXIS_WORD_BYTES, "k%u", c->ranks);
    } else if (axis == AXIS_SYNC) {
        case_sync_text(c, word);
    } else if (axis == AXIS_AHEAD) {
        snprintf(word, AXIS_WORD_BYTES, "pf%u.pb%u.rif%u", c->prefetch_forward,
                 c->prefetch_backward, c->reduces_in_flight);
    } else {
        snprintf(word, AXIS_WORD_BYTES, "%s", name[axis]);
    }
}

/* Adds the value that c has on an axis. */
static void add_value(struct case_axes *axes, uint32_t axis,
                      const struct run_case *c)
{
    word_of(c, axis, axes->word[axis][axes->n[axis]++]);
}

/* Adds the values 0 to n - 1 of an axis, which are those of a field of c. */
static void add_values(struct case_axes *axes, uint32_t axis, uint32_t n,
                       const struct run_case *c, uint32_t *field)
{
    for (*field = 0; *field < n; (*field)++) {
        add_value(axes, axis, c);
    }
    *field = 0;
}

static void add_world(struct case_axes *axes, uint32_t ranks, uint32_t replicas)
{
    struct run_case c = {.ranks = ranks, .replicas = replicas};

    c.strategy = replicas == 0 ? CASE_FULL_SHARD : CASE_HYBRID_SHARD;
    axes->world[axes->n[AXIS_WORLD]] = (struct axis_world){ranks, replicas};
    add_value(axes, AXIS_WORLD, &c);
}

/* Every mesh of two real dimensions. */
static void add_meshes(struct case_axes *axes, uint32_t ranks)
{
    for (uint32_t replicas = 2; replicas < ranks; replicas++) {
        if (ranks % replicas == 0) {
            add_world(axes, ranks, replicas);
        }
    }
}

static void add_models(struct case_axes *axes)
{
    for (uint32_t i = 0; i < N_OF(models); i++) {
        struct run_case c = {.data = models[i].data};

        memcpy(c.workload, models[i].workload, strlen(models[i].workload));
        memcpy(c.size, models[i].size, strlen(models[i].size));
        add_value(axes, AXIS_MODEL, &c);
    }
}

/* All axes but the worlds. */
static void axes_start(struct case_axes *axes)
{
    struct run_case c = {.ranks = 1};

    memset(axes, 0, sizeof(*axes));
    add_models(axes);
    add_values(axes, AXIS_WRAP, CASE_WRAP_HEAD + 1, &c, &c.wrap);
    add_values(axes, AXIS_STRATEGY, CASE_N_STRATEGIES, &c, &c.strategy);
    add_values(axes, AXIS_FOLD, FSDP_FOLD_TREE + 1, &c, &c.fold);
    add_values(axes, AXIS_OPTIMIZER, FSDP_OPTIMIZER_ADAMW + 1, &c,
               &c.optimizer);
    add_values(axes, AXIS_KEEP_ROOT, 2, &c, &c.keep_root);
    add_values(axes, AXIS_LAYOUT, FSDP_LAYOUT_PER_PARAMETER + 1, &c, &c.layout);
    for (uint32_t i = 0; i < N_OF(scenarios); i++) {
        c.scenario = scenarios[i];
        add_value(axes, AXIS_SCENARIO, &c);
    }
    for (uint32_t i = 0; i < N_OF(syncs); i++) {
        memcpy(axes->word[AXIS_SYNC][i], syncs[i], strlen(syncs[i]));
    }
    axes->n[AXIS_SYNC] = N_OF(syncs);
    for (uint32_t i = 0; i < N_OF(aheads); i++) {
        c.prefetch_forward = aheads[i][0];
        c.prefetch_backward = aheads[i][1];
        c.reduces_in_flight = aheads[i][2];
        add_value(axes, AXIS_AHEAD, &c);
    }
}

void axes_of_manifest(struct case_axes *out)
{
    /* World sizes: one rank, powers of two and other numbers, and more ranks
     * than some units have elements. Six ranks are the fewest that make a mesh
     * with two different extents. */
    static const uint32_t flat[] = {1, 2, 3, 4, 7, 8};
    static const uint32_t mesh[] = {4, 6, 8};

    axes_start(out);
    for (uint32_t i = 0; i < N_OF(flat); i++) {
        add_world(out, flat[i], 0);
    }
    for (uint32_t i = 0; i < N_OF(mesh); i++) {
        add_meshes(out, mesh[i]);
    }
}

void axes_of_world(uint32_t ranks, struct case_axes *out)
{
    axes_start(out);
    add_world(out, ranks, 0);
    add_meshes(out, ranks);
}

/* Rules for values of two axes; NULL stands for an axis without a value. */
static const struct model_value *model_of(const uint32_t pick[N_AXES])
{
    const uint32_t i = pick[AXIS_MODEL];

    return i != AXIS_OPEN ? &models[i] : NULL;
}

static const struct axis_world *world_of(const struct case_axes *axes,
                                         const uint32_t pick[N_AXES])
{
    const uint32_t i = pick[AXIS_WORLD];

    return i != AXIS_OPEN ? &axes->world[i] : NULL;
}

static const char *excluded_model(const struct model_value *model,
                                  const uint32_t pick[N_AXES])
{
    const uint32_t fold = pick[AXIS_FOLD];
    const uint32_t optimizer = pick[AXIS_OPTIMIZER];
    const uint32_t scenario = pick[AXIS_SCENARIO];
    const bool exact = model->data == WORKLOAD_EXACT;

    if (fold == FSDP_FOLD_TREE && model->data == WORKLOAD_REPLICATED) {
        return "grains are dealt to ranks, replicated data are not";
    }
    if (exact && optimizer != AXIS_OPEN && optimizer != FSDP_OPTIMIZER_SGD) {
        return "exact data stay exact under SGD alone: the others round";
    }
    if (exact && strcmp(model->workload, "mlp") == 0 && scenario != AXIS_OPEN &&
        scenarios[scenario] == CASE_EVAL) {
        return "exact data of mlp are exact before the first update alone";
    }
    return NULL;
}

static const char *excluded_large(const struct axis_world *world,
                                  const uint32_t pick[N_AXES])
{
    const uint32_t scenario = pick[AXIS_SCENARIO];
    const uint32_t sync = pick[AXIS_SYNC];

    if (world &&
        !(world->ranks == 2 || (world->ranks == 4 && world->replicas != 0))) {
        return "a large model costs too much in many worlds";
    }
    if (scenario != AXIS_OPEN && scenarios[scenario] != CASE_TRAIN) {
        return "a large model costs too much in many scenarios";
    }
    if (sync != AXIS_OPEN && strlen(syncs[sync]) != 1) {
        return "a large model costs too much with many microbatches";
    }
    return NULL;
}

static const char *excluded_world(const struct axis_world *world,
                                  const uint32_t pick[N_AXES])
{
    const uint32_t strategy = pick[AXIS_STRATEGY];

    if (strategy != AXIS_OPEN &&
        is_hybrid(strategy) != (world->replicas != 0)) {
        return "hybrid strategies, and no others, have two dimensions";
    }
    if (pick[AXIS_FOLD] == FSDP_FOLD_TREE && CASE_GRAINS % world->ranks != 0) {
        return "other axes meet a tree over 8 grains: 1, 2, 4 or 8 ranks";
    }
    if (pick[AXIS_KEEP_ROOT] == 1 && world->ranks == 1) {
        return "one rank has nothing to keep: it never reshards";
    }
    return NULL;
}

/* A kept root makes a difference where the root has a unit and the strategy
 * would reshard it. */
static const char *excluded_keep_root(const struct model_value *model,
                                      const uint32_t pick[N_AXES])
{
    const uint32_t strategy = pick[AXIS_STRATEGY];
    const uint32_t wrap = pick[AXIS_WRAP];

    if (strategy != AXIS_OPEN && strategy != CASE_FULL_SHARD &&
        strategy != CASE_HYBRID_SHARD) {
        return "this strategy keeps every unit, or has nothing to reshard";
    }
    if (wrap == AXIS_OPEN || wrap == CASE_WRAP_WHOLE ||
        wrap == CASE_WRAP_HEAD) {
        return NULL;
    }
    if (wrap != CASE_WRAP_BLOCK ||
        (model && strcmp(model->workload, "gpt") != 0)) {
        return "these wraps leave the root no parameter";
    }
    return NULL;
}

/* An option that reaches beyond the last unit is refused, and one that
 * changes nothing shows nothing. */
static const char *excluded_ahead(const struct model_value *model,
                                  const struct axis_world *world,
                                  const uint32_t pick[N_AXES])
{
    const uint32_t wrap = pick[AXIS_WRAP];

    if (world && world->ranks == 1) {
        return "one rank has nothing to gather or to reduce ahead";
    }
    if (wrap == CASE_WRAP_WHOLE) {
        return "one unit has no other to gather ahead";
    }
    if (model && wrap == CASE_WRAP_PAIR && strcmp(model->size, "empty") == 0) {
        return "two layers are one unit: there is no other";
    }
    if (model && model->is_large) {
        return "a large model costs too much in many schedules";
    }
    return NULL;
}

const char *axes_excluded(const struct case_axes *axes,
                          const uint32_t pick[N_AXES])
{
    const struct model_value *const model = model_of(pick);
    const struct axis_world *const world = world_of(axes, pick);
    const char *why = NULL;

    if (model) {
        why = excluded_model(model, pick);
    }
    if (!why && model && model->is_large) {
        why = excluded_large(world, pick);
    }
    if (!why && world) {
        why = excluded_world(world, pick);
    }
    if (!why && pick[AXIS_AHEAD] != 0 && pick[AXIS_AHEAD] != AXIS_OPEN) {
        why = excluded_ahead(model, world, pick);
    }
    if (!why && pick[AXIS_KEEP_ROOT] == 1) {
        why = excluded_keep_root(model, pick);
    }
    return why;
}

bool axes_pick(const struct case_axes *axes, const struct run_case *c,
               uint32_t pick[N_AXES])
{
    char word[AXIS_WORD_BYTES];

    if (c->precision != CASE_F32 || c->factors != CASE_USUAL_FACTORS ||
        c->offload != CASE_NOT_OFFLOADED) {
        return false; /* cases.txt crosses these by hand: they are no axes */
    }
    for (uint32_t a = 0; a < N_AXES; a++) {
        word_of(c, a, word);
        pick[a] = 0;
        while (pick[a] < axes->n[a] &&
               strcmp(axes->word[a][pick[a]], word) != 0) {
            pick[a]++;
        }
        if (pick[a] == axes->n[a]) {
            return false;
        }
    }
    return true;
}

static void add_number(char id[CASE_ID_BYTES], const char *what,
                       uint32_t number)
{
    const size_t n = strlen(id);

    if (number != 0) {
        snprintf(id + n, CASE_ID_BYTES - n, ".%s%u", what, number);
    }
}

void axes_id(const struct case_axes *axes, const uint32_t pick[N_AXES],
             char id[CASE_ID_BYTES])
{
    static const uint32_t front[] = {AXIS_MODEL,  AXIS_STRATEGY, AXIS_WORLD,
                                     AXIS_LAYOUT, AXIS_WRAP,     AXIS_FOLD,
                                     AXIS_SYNC,   AXIS_OPTIMIZER};
    const struct model_value *const model = &models[pick[AXIS_MODEL]];
    const uint32_t *const ahead = aheads[pick[AXIS_AHEAD]];
    const uint32_t ranks = axes->world[pick[AXIS_WORLD]].ranks;
    const bool exact = model->data == WORKLOAD_EXACT;
    uint32_t divisor = 1;
    size_t n = 0;

    while (divisor < ranks) {
        divisor *= 2;
    }
    for (uint32_t i = 0; i < N_OF(front); i++) {
        n += (size_t)snprintf(id + n, CASE_ID_BYTES - n, "%s%s",
                              i == 0 ? "" : ".",
                              axes->word[front[i]][pick[front[i]]]);
    }
    if (pick[AXIS_SCENARIO] != 0) {
        n += (size_t)snprintf(id + n, CASE_ID_BYTES - n, ".%s",
                              axes->word[AXIS_SCENARIO][pick[AXIS_SCENARIO]]);
    }
    if (pick[AXIS_KEEP_ROOT] == 1) {
        snprintf(id + n, CASE_ID_BYTES - n, ".keep-root");
    }
    /* Exact data need a divisor that is a power of two: by 3 quotients round,
     * by 4 they do not. */
    add_number(id, "div", exact && divisor != ranks ? divisor : 0);
    add_number(id, "pf", ahead[0]);
    add_number(id, "pb", ahead[1]);
    add_number(id, "rif", ahead[2]);
    /* Only one step: after an update the weights of mlp are no small
     * integers. */
    add_number(id, "steps", exact && strcmp(model->workload, "mlp") == 0);
    /* Only one recorded step: a large model has a million numbers in each. */
    add_number(id, "rec", model->is_large ? 1 : 0);
}
