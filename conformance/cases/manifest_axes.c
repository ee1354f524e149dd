/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_axes.c - the values of the manifest's axes, which of them exist
 * together and why, and how a pick becomes a case.
 */
#include "cases/manifest_axes.h"

#include "models/workload.h"

#include <stdlib.h>
#include <string.h>

#define N_OF(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

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

static const struct sync_value {
    uint32_t microbatches;
    uint32_t sync[CASE_MAX_MICROBATCHES];
} syncs[] = {
    {1, {1, 0, 0, 0}}, {2, {0, 1, 0, 0}}, {2, {1, 1, 0, 0}},
    {3, {0, 0, 1, 0}}, {3, {1, 0, 1, 0}},
};

/* Forward, backward, in flight: each is 0, 1 and 2 in one of them. The first
 * is the strict profile. */
static const uint32_t aheads[][3] = {
    {0, 0, 0}, {0, 1, 1}, {1, 0, 2}, {2, 2, 0}, {1, 2, 1}};

static void add_world(struct manifest_axes *axes, uint32_t ranks,
                      uint32_t replicas)
{
    if (axes->n[AXIS_WORLD] < MANIFEST_MAX_WORLDS) {
        axes->world[axes->n[AXIS_WORLD]++] =
            (struct manifest_world){ranks, replicas};
    }
}

/* Every mesh of two real dimensions. */
static void add_meshes(struct manifest_axes *axes, uint32_t ranks)
{
    for (uint32_t replicas = 2; replicas < ranks; replicas++) {
        if (ranks % replicas == 0) {
            add_world(axes, ranks, replicas);
        }
    }
}

static int add_asked_worlds(struct manifest_axes *axes, const uint32_t *ranks,
                            uint32_t n_ranks)
{
    bool asked[CASE_MAX_RANKS + 1] = {false};

    for (uint32_t i = 0; i < n_ranks; i++) {
        if (ranks[i] < 1 || ranks[i] > CASE_MAX_RANKS) {
            return FSDP_ERR_INVALID;
        }
        asked[ranks[i]] = true;
    }
    for (uint32_t k = 1; k <= CASE_MAX_RANKS; k++) {
        if (asked[k]) {
            add_world(axes, k, 0);
        }
    }
    for (uint32_t k = 1; k <= CASE_MAX_RANKS; k++) {
        if (asked[k]) {
            add_meshes(axes, k);
        }
    }
    return FSDP_OK;
}

int manifest_axes_make(const uint32_t *ranks, uint32_t n_ranks,
                       struct manifest_axes *out)
{
    /* One, powers of two and others, and more ranks than some units have
     * elements. Six ranks are the least that make two unequal extents. */
    static const uint32_t flat[] = {1, 2, 3, 4, 7, 8};
    static const uint32_t mesh[] = {4, 6, 8};

    memset(out, 0, sizeof(*out));
    out->n[AXIS_MODEL] = N_OF(models);
    out->n[AXIS_WRAP] = CASE_WRAP_HEAD + 1;
    out->n[AXIS_SCENARIO] = N_OF(scenarios);
    out->n[AXIS_STRATEGY] = CASE_N_STRATEGIES;
    out->n[AXIS_SYNC] = N_OF(syncs);
    out->n[AXIS_FOLD] = FSDP_FOLD_TREE + 1;
    out->n[AXIS_OPTIMIZER] = FSDP_OPTIMIZER_ADAMW + 1;
    out->n[AXIS_AHEAD] = N_OF(aheads);
    out->n[AXIS_KEEP_ROOT] = 2;
    out->n[AXIS_LAYOUT] = FSDP_LAYOUT_PER_PARAMETER + 1;
    if (n_ranks != 0) {
        return add_asked_worlds(out, ranks, n_ranks);
    }
    for (uint32_t i = 0; i < N_OF(flat); i++) {
        add_world(out, flat[i], 0);
    }
    for (uint32_t i = 0; i < N_OF(mesh); i++) {
        add_meshes(out, mesh[i]);
    }
    return FSDP_OK;
}

/* Rules for values of two axes; NULL stands for an axis without a value. */
static const struct model_value *model_of(const uint32_t pick[N_AXES])
{
    const uint32_t i = pick[AXIS_MODEL];

    return i != MANIFEST_OPEN ? &models[i] : NULL;
}

static const struct manifest_world *world_of(const struct manifest_axes *axes,
                                             const uint32_t pick[N_AXES])
{
    const uint32_t i = pick[AXIS_WORLD];

    return i != MANIFEST_OPEN ? &axes->world[i] : NULL;
}

static bool is_hybrid(uint32_t strategy)
{
    return strategy == CASE_HYBRID_SHARD || strategy == CASE_HYBRID_SHARD_ZERO2;
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
    if (exact && optimizer != MANIFEST_OPEN &&
        optimizer != FSDP_OPTIMIZER_SGD) {
        return "exact data stay exact under SGD alone: the others round";
    }
    if (exact && strcmp(model->workload, "mlp") == 0 &&
        scenario != MANIFEST_OPEN && scenarios[scenario] == CASE_EVAL) {
        return "exact data of mlp are exact before the first update alone";
    }
    return NULL;
}

static const char *excluded_large(const struct manifest_world *world,
                                  const uint32_t pick[N_AXES])
{
    const uint32_t scenario = pick[AXIS_SCENARIO];
    const uint32_t sync = pick[AXIS_SYNC];

    if (world != NULL &&
        !(world->ranks == 2 || (world->ranks == 4 && world->replicas != 0))) {
        return "a large model costs too much in many worlds";
    }
    if (scenario != MANIFEST_OPEN && scenarios[scenario] != CASE_TRAIN) {
        return "a large model costs too much in many scenarios";
    }
    if (sync != MANIFEST_OPEN && syncs[sync].microbatches != 1) {
        return "a large model costs too much with many microbatches";
    }
    return NULL;
}

static const char *excluded_world(const struct manifest_world *world,
                                  const uint32_t pick[N_AXES])
{
    const uint32_t strategy = pick[AXIS_STRATEGY];

    if (strategy != MANIFEST_OPEN &&
        is_hybrid(strategy) != (world->replicas != 0)) {
        return "hybrid strategies, and no others, have two dimensions";
    }
    if (pick[AXIS_FOLD] == FSDP_FOLD_TREE && CASE_GRAINS % world->ranks != 0) {
        return "a tree over 8 grains needs 1, 2, 4 or 8 ranks";
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

    if (strategy != MANIFEST_OPEN && strategy != CASE_FULL_SHARD &&
        strategy != CASE_HYBRID_SHARD) {
        return "this strategy keeps every unit, or has nothing to reshard";
    }
    if (wrap == MANIFEST_OPEN || wrap == CASE_WRAP_WHOLE ||
        wrap == CASE_WRAP_HEAD) {
        return NULL;
    }
    if (wrap != CASE_WRAP_BLOCK ||
        (model != NULL && strcmp(model->workload, "gpt") != 0)) {
        return "these wraps leave the root no parameter";
    }
    return NULL;
}

/* An option that reaches beyond the last unit is refused, and one that
 * changes nothing shows nothing. */
static const char *excluded_ahead(const struct model_value *model,
                                  const struct manifest_world *world,
                                  const uint32_t pick[N_AXES])
{
    const uint32_t wrap = pick[AXIS_WRAP];

    if (world != NULL && world->ranks == 1) {
        return "one rank has nothing to gather or to reduce ahead";
    }
    if (wrap == CASE_WRAP_WHOLE) {
        return "one unit has no other to gather ahead";
    }
    if (model != NULL && wrap == CASE_WRAP_PAIR &&
        strcmp(model->size, "empty") == 0) {
        return "two layers are one unit: there is no other";
    }
    if (model != NULL && model->is_large) {
        return "a large model costs too much in many schedules";
    }
    return NULL;
}

const char *manifest_excluded(const struct manifest_axes *axes,
                              const uint32_t pick[N_AXES])
{
    const struct model_value *const model = model_of(pick);
    const struct manifest_world *const world = world_of(axes, pick);
    const char *why = NULL;

    if (model != NULL) {
        why = excluded_model(model, pick);
    }
    if (why == NULL && model != NULL && model->is_large) {
        why = excluded_large(world, pick);
    }
    if (why == NULL && world != NULL) {
        why = excluded_world(world, pick);
    }
    if (why == NULL && pick[AXIS_AHEAD] != 0 &&
        pick[AXIS_AHEAD] != MANIFEST_OPEN) {
        why = excluded_ahead(model, world, pick);
    }
    if (why == NULL && pick[AXIS_KEEP_ROOT] == 1) {
        why = excluded_keep_root(model, pick);
    }
    return why;
}

void manifest_numbers(struct run_case *c)
{
    const bool exact = c->data == WORKLOAD_EXACT;
    uint32_t divisor = 1;

    while (divisor < c->ranks) {
        divisor *= 2;
    }
    c->lr = case_default_lr(c);
    /* A quotient by 3 is not exact, one by 4 is. */
    c->divide_factor = exact && divisor != c->ranks ? (float)divisor : 0.0f;
    if (exact && strcmp(c->workload, "mlp") == 0) {
        /* After one update its weights are no small integers. */
        c->steps = 1;
        c->recorded_steps = 1;
    }
    if (strcmp(c->workload, "gpt") == 0 && strcmp(c->size, "small") == 0) {
        c->recorded_steps = 1; /* a million numbers a step */
    }
}

void manifest_start(const char *workload, const char *size, uint32_t data,
                    uint32_t strategy, struct manifest_world world,
                    struct run_case *out)
{
    memset(out, 0, sizeof(*out));
    memcpy(out->workload, workload, strlen(workload));
    memcpy(out->size, size, strlen(size));
    out->data = data;
    out->seed = 1;
    out->strategy = strategy;
    out->ranks = world.ranks;
    out->replicas = strategy == CASE_NO_SHARD ? world.ranks
                    : is_hybrid(strategy)     ? world.replicas
                                              : 1;
    out->wrap = CASE_WRAP_LAYER;
    out->microbatches = 1;
    out->sync[0] = 1;
    out->steps = 4;
    out->recorded_steps = 2;
    manifest_numbers(out);
}

void manifest_case(const struct manifest_axes *axes,
                   const uint32_t pick[N_AXES], struct run_case *out)
{
    const struct model_value *const model = &models[pick[AXIS_MODEL]];
    const struct sync_value *const sync = &syncs[pick[AXIS_SYNC]];

    manifest_start(model->workload, model->size, model->data,
                   pick[AXIS_STRATEGY], axes->world[pick[AXIS_WORLD]], out);
    out->scenario = scenarios[pick[AXIS_SCENARIO]];
    out->wrap = pick[AXIS_WRAP];
    out->fold = pick[AXIS_FOLD];
    out->grains = out->fold == FSDP_FOLD_TREE ? CASE_GRAINS : 0;
    out->prefetch_forward = aheads[pick[AXIS_AHEAD]][0];
    out->prefetch_backward = aheads[pick[AXIS_AHEAD]][1];
    out->reduces_in_flight = aheads[pick[AXIS_AHEAD]][2];
    out->keep_root = pick[AXIS_KEEP_ROOT];
    out->layout = pick[AXIS_LAYOUT];
    out->microbatches = sync->microbatches;
    memcpy(out->sync, sync->sync, sizeof(out->sync));
    out->optimizer = pick[AXIS_OPTIMIZER];
    manifest_numbers(out);
    /* In every other case of each axis, as far as the axes go. */
    if (model->data != WORKLOAD_EXACT &&
        (out->wrap + out->strategy + out->optimizer) % 2 == 1) {
        out->weight_decay = 0.01f;
    }
}

static bool pick_model(const struct run_case *c, uint32_t *out)
{
    for (uint32_t i = 0; i < N_OF(models); i++) {
        if (strcmp(models[i].workload, c->workload) == 0 &&
            strcmp(models[i].size, c->size) == 0 && models[i].data == c->data) {
            *out = i;
            return true;
        }
    }
    return false;
}

static bool pick_world(const struct manifest_axes *axes,
                       const struct run_case *c, uint32_t *out)
{
    const uint32_t replicas = is_hybrid(c->strategy) ? c->replicas : 0;

    for (uint32_t i = 0; i < axes->n[AXIS_WORLD]; i++) {
        if (axes->world[i].ranks == c->ranks &&
            axes->world[i].replicas == replicas) {
            *out = i;
            return true;
        }
    }
    return false;
}

static bool pick_ahead(const struct run_case *c, uint32_t *out)
{
    for (uint32_t i = 0; i < N_OF(aheads); i++) {
        if (aheads[i][0] == c->prefetch_forward &&
            aheads[i][1] == c->prefetch_backward &&
            aheads[i][2] == c->reduces_in_flight) {
            *out = i;
            return true;
        }
    }
    return false;
}

bool manifest_pick(const struct manifest_axes *axes, const struct run_case *c,
                   uint32_t pick[N_AXES])
{
    bool found = false;

    if (!pick_model(c, &pick[AXIS_MODEL]) ||
        !pick_world(axes, c, &pick[AXIS_WORLD]) ||
        !pick_ahead(c, &pick[AXIS_AHEAD])) {
        return false;
    }
    for (uint32_t i = 0; i < N_OF(scenarios) && !found; i++) {
        pick[AXIS_SCENARIO] = i;
        found = scenarios[i] == c->scenario;
    }
    if (!found) {
        return false;
    }
    found = false;
    for (uint32_t i = 0; i < N_OF(syncs) && !found; i++) {
        pick[AXIS_SYNC] = i;
        found = memcmp(syncs[i].sync, c->sync, sizeof(c->sync)) == 0 &&
                syncs[i].microbatches == c->microbatches;
    }
    pick[AXIS_WRAP] = c->wrap;
    pick[AXIS_STRATEGY] = c->strategy;
    pick[AXIS_FOLD] = c->fold;
    pick[AXIS_OPTIMIZER] = c->optimizer;
    pick[AXIS_KEEP_ROOT] = c->keep_root;
    pick[AXIS_LAYOUT] = c->layout;
    return found;
}
