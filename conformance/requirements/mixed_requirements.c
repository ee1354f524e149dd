/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mixed_requirements.c - mixed precision: which dtype each value has, and at
 * which moments it is rounded. The other families judge the values in these
 * dtypes. Their requirements need those of this one, so that a fault of
 * rounding has its own name.
 */
#include "requirements/families.h"
#include "requirements/script_checks.h"

#include "cases/case_precision.h"
#include "cases/case_script.h"
#include "judge/compare/compare_checks.h"
#include "judge/replay/replay_mixed.h"

#include <fsdp/arith/cast.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* 2 to this power, times any gradient of the suite's models, overflows
     * float16. */
    EXPONENT = 32
};

static bool is_mixed(const struct expect *e)
{
    return compare_case_staged(e) && e->c->precision != CASE_F32;
}

static bool is_narrow(uint32_t dtype)
{
    return dtype == FSDP_DTYPE_BF16 || dtype == FSDP_DTYPE_F16;
}

/* ---- Which dtype ---------------------------------------------------------*/

/* The dtype that a tensor of a stage must have; NONE: it belongs to no
 * parameter. */
static uint32_t dtype_wanted(const struct expect *e,
                             const struct record_tensor *t)
{
    if (t->parameter >= e->model->n_parameters) {
        return FSDP_DTYPE_NONE;
    }
    return t->stage == RECORD_UNSHARDED
               ? e->unit[e->unit_of_parameter[t->parameter]].dtype.param
               : e->unit[e->unit_of_parameter[t->parameter]].dtype.grad;
}

static uint32_t dtype_seen(const struct record_tensor *t)
{
    return t->dtype != FSDP_DTYPE_NONE ? t->dtype : FSDP_DTYPE_F32;
}

static bool wrong_dtype(const struct expect *e, const struct record_tensor *t,
                        uint32_t k, const char *why, struct finding *f)
{
    struct finding at =
        finding_at(record_stage_name(t->stage), t->step, t->microbatch, k);
    char note[sizeof(f->note)];

    at.parameter = t->parameter;
    at.unit = e->unit_of_parameter[t->parameter];
    snprintf(note, sizeof(note), "has dtype %s, not %s%s",
             record_dtype_name(dtype_seen(t)),
             record_dtype_name(dtype_wanted(e, t)), why);
    return finding_text(f, at, note);
}

/* Every tensor of the stage is in the dtype that it should be in. */
static bool stage_dtypes(const struct expect *e, const struct record_rank *rank,
                         uint32_t k, uint32_t stage, struct finding *f)
{
    for (uint32_t i = 0; i < rank->n_tensors; i++) {
        const struct record_tensor *t = &rank->tensor[i];
        const uint32_t want =
            t->stage == stage ? dtype_wanted(e, t) : FSDP_DTYPE_NONE;

        if (want != FSDP_DTYPE_NONE && dtype_seen(t) != want) {
            return wrong_dtype(e, t, k, "", f);
        }
    }
    return true;
}

static bool spoil_dtype(struct record_rank *rank, uint32_t stage, uint32_t to)
{
    for (uint32_t i = 0; i < rank->n_tensors; i++) {
        struct record_tensor *t = &rank->tensor[i];

        if (t->stage == stage && dtype_seen(t) != to) {
            t->dtype = to;
            return true;
        }
    }
    return false;
}

/* mixed.gradient-dtype: autograd's gradient of a parameter in 16 bits has 16
 * bits. */
static bool gradient_dtype_of_rank(const struct expect *e,
                                   const struct record_rank *rank, uint32_t k,
                                   struct finding *f)
{
    return stage_dtypes(e, rank, k, RECORD_LOCAL_GRADIENT, f);
}

static bool gradient_dtype_spoil(const struct expect *e,
                                 struct record_rank *rank)
{
    (void)e;
    return spoil_dtype(rank, RECORD_LOCAL_GRADIENT, FSDP_DTYPE_F32) ||
           spoil_dtype(rank, RECORD_LOCAL_GRADIENT, FSDP_DTYPE_BF16);
}

/*
 * mixed.units: a unit may have another policy than the model, such as a norm in
 * a model of bf16.
 */
static bool has_own_dtypes(const struct expect *e)
{
    return is_mixed(e) && case_has_units_dtypes(e->c);
}

static bool units_of_rank(const struct expect *e,
                          const struct record_rank *rank, uint32_t k,
                          struct finding *f)
{
    for (uint32_t i = 0; i < rank->n_tensors; i++) {
        const struct record_tensor *t = &rank->tensor[i];
        const uint32_t option = t->stage == RECORD_UNSHARDED
                                    ? e->options.param_dtype
                                    : e->options.grad_dtype;

        if ((t->stage == RECORD_UNSHARDED ||
             t->stage == RECORD_LOCAL_GRADIENT) &&
            dtype_wanted(e, t) != FSDP_DTYPE_NONE &&
            dtype_wanted(e, t) != option && dtype_seen(t) == option) {
            return wrong_dtype(
                e, t, k, ": the options', though the unit has its own", f);
        }
    }
    return true;
}

static bool units_spoil(const struct expect *e, struct record_rank *rank)
{
    return spoil_dtype(rank, RECORD_UNSHARDED, e->options.param_dtype);
}

/* mixed.gather-dtype, mixed.reduce-dtype: a dtype is chosen to halve the bytes,
 * or to keep all bits. */
static bool gather_dtype_of_collective(const struct expect *e,
                                       const struct record_collective *c,
                                       uint32_t index, struct finding at,
                                       struct finding *f)
{
    return c->kind != FSDP_ALL_GATHER || c->unit >= e->units->n_units ||
           compare_moves(e, c, index, e->unit[c->unit].dtype.param, at, f);
}

static void gather_dtype_spoil(struct record_collective *c)
{
    c->kind = FSDP_ALL_GATHER;
    c->unit = 0;
    c->dtype = FSDP_DTYPE_I32;
}

static bool gathers(const struct expect *e)
{
    return is_mixed(e) && e->shards > 1;
}

/* ---- Rounded how ---------------------------------------------------------*/

/* Whether x may be a value that was rounded, be it in another way than to
 * nearest even: it is at most two steps of the dtype away from the value. */
static bool is_neighbour(uint32_t dtype, float x, float exact)
{
    const float step = dtype == FSDP_DTYPE_BF16 ? 0x1p-7f : 0x1p-10f;

    return fabsf(x - exact) <= 2.0f * step * fabsf(exact);
}

/* The part of an unsharded parameter, on every rank of the group, is that of
 * the shard, rounded. A value far from it is no fault of rounding, and is not
 * reported here. */
static bool cast_of_part(const struct expect *e, const struct record *r,
                         const struct compare_part *part, struct finding *f)
{
    const uint32_t dtype = e->unit[part->unit].dtype.param;
    const float *held = compare_values(r, RECORD_INITIAL, part);
    const float *seen =
        compare_values_in_whole(e, r, part->rank, RECORD_UNSHARDED, part);

    if (!is_narrow(dtype) || !held || !seen) {
        return true; /* another requirement reports it */
    }
    for (uint64_t i = 0; i < part->n; i++) {
        const float want = fsdp_round(dtype, held[i]);

        if (!(seen[i] == want) && is_neighbour(dtype, seen[i], held[i])) {
            struct finding at = finding_at_part("unsharded", 0, part);

            at.element = (int64_t)(part->first + i);
            return finding_bits(f, at, seen[i], want,
                                "not the shard rounded once, to nearest even");
        }
    }
    return true;
}

/* Moves a value in the rank's own part by one step of the dtype. */
static bool cast_spoil(const struct expect *e, struct record *r)
{
    struct record_rank *rank = compare_rank_to_spoil(r, 0);
    struct expect_part *parts = NULL;
    uint32_t n = 0;
    bool changed = false;

    if (!rank || expect_parts(e, 0, &parts, &n) != FSDP_OK) {
        return false;
    }
    for (uint32_t i = 0; i < rank->n_tensors && !changed; i++) {
        struct record_tensor *t = &rank->tensor[i];

        for (uint32_t p = 0; p < n && !changed; p++) {
            const uint64_t first = parts[p].first;
            uint32_t bits;

            if (t->stage != RECORD_UNSHARDED || t->step != 0 ||
                t->parameter != parts[p].parameter || !t->data ||
                first >= t->n || !is_narrow(dtype_wanted(e, t)) ||
                !(fabsf(t->data[first]) > 0.0f)) {
                continue;
            }
            memcpy(&bits, &t->data[first], sizeof(bits));
            bits ^= dtype_wanted(e, t) == FSDP_DTYPE_BF16 ? 1u << 16 : 1u << 13;
            memcpy(&t->data[first], &bits, sizeof(bits));
            changed = true;
        }
    }
    free(parts);
    return changed;
}

static bool casts_alone(const struct expect *e)
{
    return is_mixed(e) && e->shards == 1 && is_narrow(e->options.param_dtype);
}

static bool casts_shards(const struct expect *e)
{
    return is_mixed(e) && e->shards > 1 && is_narrow(e->options.param_dtype);
}

/* mixed.alone-casts: float32 values would be right, but have bits that a run of
 * more ranks does not have. */
static bool alone_of_rank(const struct expect *e,
                          const struct record_rank *rank, uint32_t k,
                          struct finding *f)
{
    return stage_dtypes(e, rank, k, RECORD_UNSHARDED, f);
}

static bool alone_spoil(const struct expect *e, struct record_rank *rank)
{
    (void)e;
    return spoil_dtype(rank, RECORD_UNSHARDED, FSDP_DTYPE_F32);
}

/*
 * mixed.fresh-cast: a copy in 16 bits is stale behind a step unless it is made
 * anew.
 */
static bool has_later_steps(const struct expect *e)
{
    return casts_shards(e) && compare_recorded_steps(e) > 1;
}

static bool fresh_of_part(const struct expect *e, const struct record *r,
                          const struct compare_part *part, struct finding *f)
{
    const uint32_t dtype = e->unit[part->unit].dtype.param;
    struct compare_part earlier = *part;
    const float *seen =
        compare_values_in_whole(e, r, part->rank, RECORD_UNSHARDED, part);
    const float *old;
    const float *now;
    bool is_old = true;
    bool is_new = true;

    earlier.step = part->step - 1;
    old = compare_values(r, RECORD_BEFORE, &earlier);
    now = compare_values(r, RECORD_AFTER, &earlier);
    if (!is_narrow(dtype) || !seen || !old || !now) {
        return true;
    }
    for (uint64_t i = 0; i < part->n; i++) {
        is_old = is_old && seen[i] == fsdp_round(dtype, old[i]);
        is_new = is_new && seen[i] == fsdp_round(dtype, now[i]);
    }
    if (is_old && !is_new) {
        struct finding at = finding_at_part("unsharded", 0, part);

        return finding_text(f, at,
                            "the cast of the weights before the last step");
    }
    return true;
}

/* Lets each rank show in the second step what it showed in the first. */
static bool fresh_spoil(const struct expect *e, struct record *r)
{
    bool changed = false;

    (void)e;
    for (uint32_t k = 0; k < r->n_ranks; k++) {
        struct record_rank *rank = compare_rank_to_spoil(r, k);

        for (uint32_t i = 0; rank && i < rank->n_tensors; i++) {
            struct record_tensor *t = &rank->tensor[i];
            const struct record_tensor *was =
                t->stage == RECORD_UNSHARDED && t->step == 1
                    ? record_find(rank, RECORD_UNSHARDED, 0, 0, t->parameter, 0)
                    : NULL;

            if (!was || was->n != t->n || !t->data || !was->data) {
                continue;
            }
            changed = changed ||
                      memcmp(t->data, was->data, t->n * sizeof(*t->data)) != 0;
            memcpy(t->data, was->data, t->n * sizeof(*t->data));
        }
    }
    return changed;
}

/*
 * mixed.overflow: a script makes a gradient larger than float16 can hold.
 * (script.values judges drawn scripts.)
 */
static bool makes_huge(const struct expect *e)
{
    const struct case_script *own = case_script_of(e->c);
    bool any = false;

    for (uint32_t i = 0; own && !own->given && i < e->script.n_edits; i++) {
        const struct script_edit *edit = &e->script.edit[i];

        any = any ||
              (edit->kind == SCRIPT_EDIT_TIMES && edit->exponent >= EXPONENT);
    }
    return any;
}

static bool overflows(const struct expect *e)
{
    return case_uses_dtype(e->c, FSDP_DTYPE_F16) && makes_huge(e);
}

static bool overflow_of_part(const struct expect *e, const struct record *r,
                             const struct compare_part *part, struct finding *f)
{
    const float *got = compare_values(r, RECORD_REDUCED, part);
    const float *want = compare_baseline(e, RECORD_REDUCED, part);

    for (uint64_t i = 0; got && want && i < part->n; i++) {
        if (isinf(want[i]) && isfinite(got[i])) {
            struct finding at = finding_at_part("reduced", -1, part);

            at.element = (int64_t)(part->first + i);
            return finding_bits(f, at, got[i], want[i],
                                "too large for float16, and not an infinity");
        }
    }
    return true;
}

static bool overflow_spoil(const struct expect *e, struct record *r)
{
    (void)e;
    for (uint32_t k = 0; k < r->n_ranks; k++) {
        struct record_rank *rank = compare_rank_to_spoil(r, k);

        for (uint32_t i = 0; rank && i < rank->n_tensors; i++) {
            struct record_tensor *t = &rank->tensor[i];

            for (uint64_t n = 0;
                 t->stage == RECORD_REDUCED && t->data && n < t->n; n++) {
                if (isinf(t->data[n])) {
                    t->data[n] = 65504.0f; /* the largest of float16 */
                    return true;
                }
            }
        }
    }
    return false;
}

const struct requirement mixed_requirements[] = {
    {.since = "1.1", .must = 1, .level = LEVEL_GATHER},
    {.id = "mixed.units",
     .text = "A unit's own dtypes come before those of the options.",
     .needs = "layout.chunk-rule",
     .applies = has_own_dtypes,
     .check = &check_each_rank,
     .rank = {units_of_rank, units_spoil}},
    {.id = "mixed.gather-dtype",
     .text = "In mixed precision every all-gather moves its unit's parameter "
             "dtype.",
     .needs = "layout.chunk-rule mixed.units",
     .applies = gathers,
     .check = &check_each_collective,
     .collective = {gather_dtype_of_collective, gather_dtype_spoil}},
    {.id = "mixed.cast-of-shard",
     .text = "What is unsharded is the shard, rounded once to the parameter "
             "dtype, to nearest even.",
     .needs = "layout.chunk-rule mixed.gather-dtype",
     .applies = casts_shards,
     .spoil = cast_spoil,
     .check = &check_each_part,
     .part = {cast_of_part, RECORD_UNSHARDED, STEPS_FIRST}},
    {.id = "mixed.alone-casts",
     .text = "With one shard a unit is computed with in its parameter dtype, "
             "too.",
     .needs = "layout.chunk-rule mixed.units",
     .applies = casts_alone,
     .check = &check_each_rank,
     .rank = {alone_of_rank, alone_spoil}},
    {.id = "mixed.fresh-cast",
     .text = "Every step sees the cast of the weights that the step before has "
             "made.",
     .needs = "mixed.cast-of-shard step.weights-untouched",
     .applies = has_later_steps,
     .spoil = fresh_spoil,
     .check = &check_each_part,
     .part = {fresh_of_part, RECORD_UNSHARDED, STEPS_LATER}},
    {.id = "mixed.gradient-dtype",
     .text = "A gradient is lent in its unit's gradient dtype.",
     .level = LEVEL_GRADIENT,
     .needs = "mixed.units mixed.gather-dtype",
     .applies = is_mixed,
     .check = &check_each_rank,
     .rank = {gradient_dtype_of_rank, gradient_dtype_spoil}},
    {.id = "mixed.overflow",
     .text = "What is too large for float16 is cast to an infinity, not to the "
             "largest number.",
     .level = LEVEL_REDUCE,
     .needs = "run.shows-every-step",
     .applies = overflows,
     .spoil = overflow_spoil,
     .check = &check_looks,
     .look = {.holds = overflow_of_part}},
    {0},
};
