/* SPDX-License-Identifier: Apache-2.0 */
/*
 * carried_values_requirements.c - compares what collectives have carried with
 * the shards and gradients that the record shows: an engine that keeps a whole
 * model, or exchanges gradients in a way of its own, can make as many
 * collectives as others do, and send nothing of use in them. Asked where ranks
 * are isolated: the process that carries has a hash of what each rank sent.
 */
#include "requirements/families.h"

#include "judge/compare/compare_checks.h"
#include "judge/replay/replay.h"
#include "requirements/carried.h"

#include <fsdp/arith/cast.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Whether the case only trains, and tensors are recorded. */
static bool is_followed(const struct expect *e)
{
    return compare_case_staged(e) && e->shards > 1 && !e->any_fold &&
           e->c->ranks <= WORLD_MAX_RANKS;
}

/* Whether what is gathered is known to be the shard: also in cases that make
 * wrong calls or cancel passes. */
static bool is_gathered(const struct expect *e)
{
    return compare_case_trains(e) && compare_recorded_steps(e) > 0 &&
           e->shards > 1 && !e->any_fold && e->c->ranks <= WORLD_MAX_RANKS;
}

static bool is_replicated(const struct expect *e)
{
    return compare_case_staged(e) && e->replicas > 1 && !e->any_fold &&
           e->c->ranks <= WORLD_MAX_RANKS;
}

/* ---- comm.carries-shards ------------------------------------------------- */

/* Whether the collective is behind the last step of the optimizer. */
static bool is_last(const struct carried *x)
{
    if (x->step >= x->e->c->steps) {
        return true;
    }
    for (uint32_t i = x->index + 1; i < x->q->n; i++) {
        if (x->q->c[i].kind == FSDP_ALL_GATHER &&
            x->q->c[i].unit == x->c->unit) {
            return false;
        }
    }
    return x->step + 1 == x->e->c->steps &&
           carried_is_evaluated(x->e, x->c->unit);
}

/* A pass gathers the shard that the step before it has left, and so does an
 * evaluation behind a step. */
static bool gathers_its_shard(const struct carried *x, void *context,
                              struct finding *f)
{
    const uint32_t recorded = compare_recorded_steps(x->e);
    const char *why = NULL;

    (void)context;
    if (!carried_is_gather(x)) {
        return true;
    }
    if (is_last(x)) {
        why = carried_is_shard(x, RECORD_FINAL, x->e->c->steps, NULL)
                  ? NULL
                  : "what the rank has sent is not its shard at the end";
    } else if (x->step < recorded) {
        why = carried_is_shard(x, RECORD_BEFORE, x->step, NULL) ||
                      carried_is_shard(x, RECORD_AFTER, x->step, NULL)
                  ? NULL
                  : "what the rank has sent is neither its shard before the "
                    "step nor the one behind it";
    } else if (x->step == recorded && !carried_is_evaluated(x->e, x->c->unit)) {
        why = carried_is_shard(x, RECORD_AFTER, recorded - 1, NULL)
                  ? NULL
                  : "what the rank has sent is not its shard behind the step "
                    "before";
    }
    return !why || finding_text(f, carried_place(x, "all-gather"), why);
}

static bool is_a_gather(const struct carried *x, void *context)
{
    (void)context;
    return x->step == 0 && carried_is_gather(x);
}

/* ---- What gradients add up to -------------------------------------------- */

/* What each rank has of an element's gradient when the microbatch is reduced:
 * the sum of that and the microbatches without sync before it. */
static void add_up(const struct replay_reduction *given, uint32_t microbatch,
                   uint64_t i, float pending[WORLD_MAX_RANKS])
{
    const struct run_case *const c = given->e->c;
    bool has = false;

    memset(pending, 0, c->ranks * sizeof(*pending));
    for (uint32_t b = 0; b <= microbatch; b++) {
        replay_accumulate(given, b, i, pending, &has);
        if (b < microbatch && c->sync[b] != 0) {
            memset(pending, 0, c->ranks * sizeof(*pending));
            has = false;
        }
    }
}

/* Fills `value` with n elements from place `from` on; `of` makes each from what
 * all ranks have of the element. */
static bool take_gradients(const struct carried *x, uint32_t microbatch,
                           uint64_t from, uint64_t n,
                           float (*of)(const struct carried *x, uint64_t place,
                                       float pending[WORLD_MAX_RANKS]),
                           float *value, struct finding *f)
{
    const struct expect *const e = x->e;

    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        struct replay_reduction given;
        const struct compare_part whole = {.rank = x->rank,
                                           .step = x->step,
                                           .parameter = p,
                                           .unit = x->c->unit,
                                           .n = fsdp_numel(e->model, p)};

        if (whole.n == 0 || e->unit_of_parameter[p] != x->c->unit ||
            expect_original(e, p) != p || !e->stepped[p]) {
            continue;
        }
        if (!replay_reduction_find(e, x->r, &whole, &given, f)) {
            return false;
        }
        for (uint64_t i = 0; i < whole.n; i++) {
            const uint64_t place = expect_place_of_gradient(e, p, i);
            float pending[WORLD_MAX_RANKS];

            if (place >= from && place - from < n) {
                add_up(&given, microbatch, i, pending);
                value[place - from] = of(x, place, pending);
            }
        }
    }
    return true;
}

/* The microbatch that this reduction belongs to: the number of reductions of
 * this kind and unit before it in the step tells. */
static bool is_reduced_in(const struct carried *x, uint32_t *out)
{
    uint32_t nth = 0;

    for (uint32_t i = 0; i < x->index; i++) {
        nth += x->q->c[i].kind == x->c->kind && x->q->c[i].unit == x->c->unit;
    }
    for (*out = 0; *out < x->e->c->microbatches; ++*out) {
        if (x->e->c->sync[*out] != 0 && nth-- == 0) {
            return true;
        }
    }
    return false;
}

/* Whether the rank sent what `of` says, for n elements from place `from` on. */
static bool gives(const struct carried *x, uint64_t from, uint64_t n,
                  float (*of)(const struct carried *x, uint64_t place,
                              float pending[WORLD_MAX_RANKS]),
                  const char *why, struct finding *f)
{
    const struct finding at = carried_place(
        x, x->c->kind == FSDP_ALL_REDUCE ? "all-reduce" : "reduce-scatter");
    float *const value = calloc(n + 1, sizeof(*value));
    uint32_t microbatch;
    bool good = value != NULL;

    if (!good) {
        return finding_missing(f, at, "no memory to compare it in");
    }
    if (is_reduced_in(x, &microbatch)) {
        good = take_gradients(x, microbatch, from, n, of, value, f) &&
               (carried_is(x, value) || finding_text(f, at, why));
    }
    free(value);
    return good;
}

/* ---- comm.carries-gradients ---------------------------------------------- */

static float own(const struct carried *x, uint64_t place,
                 float pending[WORLD_MAX_RANKS])
{
    const struct expect_unit *const u = &x->e->unit[x->c->unit];

    (void)place;
    return fsdp_round(u->dtype.accumulate, pending[x->rank] * u->factor.before);
}

static bool reduces_its_gradient(const struct carried *x, void *context,
                                 struct finding *f)
{
    (void)context;
    return x->step >= compare_recorded_steps(x->e) ||
           !carried_is_reduction(x) ||
           gives(x, 0, x->c->n * x->e->shards, own,
                 "what the rank has sent is not what its gradients add up to",
                 f);
}

static bool is_a_reduction(const struct carried *x, void *context)
{
    (void)context;
    return x->step == 0 && carried_is_reduction(x);
}

/* ---- comm.carries-partial-sums ------------------------------------------- */

/* The sum that the rank's replica makes of the element. */
static float partial(const struct carried *x, uint64_t place,
                     float pending[WORLD_MAX_RANKS])
{
    float of[WORLD_MAX_RANKS];

    expect_partials(x->e, x->c->unit, place, pending,
                    x->e->unit[x->c->unit].factor, of);
    return of[x->rank / x->e->shards];
}

static bool adds_up_its_replica(const struct carried *x, void *context,
                                struct finding *f)
{
    (void)context;
    return x->step >= compare_recorded_steps(x->e) || !carried_is_across(x) ||
           gives(x, x->shard * x->c->n, x->c->n, partial,
                 "what the rank has sent is not what the gradients of its "
                 "replica add up to",
                 f);
}

static bool is_a_partial(const struct carried *x, void *context)
{
    (void)context;
    return x->step == 0 && carried_is_across(x);
}

const struct requirement carried_values_requirements[] = {
    {.since = "1.1",
     .must = 1,
     .level = LEVEL_COMM,
     .needs = "comm.as-carried",
     .looked_at = carried_is_known,
     .check = &check_carried},
    {.id = "comm.carries-shards",
     .text = "Where ranks are isolated, what a rank has sent in an all-gather "
             "of a unit is its shard, bit for bit in the dtype of the wire.",
     .applies = is_gathered,
     .carried = {gathers_its_shard, is_a_gather}},
    {.id = "comm.carries-gradients",
     .text = "Where ranks are isolated, what a rank has sent in a "
             "reduce-scatter of a unit is what its gradients add up to, bit "
             "for bit in the dtype of the wire.",
     .across = true,
     .needs = "comm.as-carried frozen.zeros",
     .applies = is_followed,
     .carried = {reduces_its_gradient, is_a_reduction}},
    {.id = "comm.carries-partial-sums",
     .text = "Where ranks are isolated, what a rank has sent to the other "
             "replicas in an all-reduce of a unit is what the gradients of "
             "its own add up to, bit for bit in the dtype of the wire.",
     .across = true,
     .applies = is_replicated,
     .carried = {adds_up_its_replica, is_a_partial}},
    {0},
};
