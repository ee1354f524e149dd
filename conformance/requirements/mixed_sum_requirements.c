/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mixed_sum_requirements.c - mixed precision: the moments at which gradients
 * are rounded on their way into the step, and shards and states at rest never
 * are. A wrong reduction is computed again with one rounding changed; if that
 * gives the wrong value, the fault has a name.
 */
#include "requirements/families.h"

#include "judge/compare/compare_checks.h"
#include "judge/replay/replay_mixed.h"

#include <fsdp/arith/cast.h>

static bool is_mixed(const struct expect *e)
{
    return compare_case_staged(e) && e->c->precision != CASE_F32;
}

static bool is_narrow(uint32_t dtype)
{
    return dtype == FSDP_DTYPE_BF16 || dtype == FSDP_DTYPE_F16;
}

/* How a part of the first step's reduction was rounded at a moment. */
enum part_is {
    PART_RIGHT,
    PART_MISROUNDED, /* another rounding there gives what it has */
    PART_WRONG,      /* wrong in another way, or unknown */
};

static enum part_is part_is(const struct expect *e, const struct record *r,
                            const struct compare_part *part, uint32_t moment,
                            struct finding *f)
{
    const float *got = compare_values(r, RECORD_REDUCED, part);
    struct finding at = finding_at_part("reduced", -1, part);
    struct replay_reduction x;
    const char *why;
    bool right = true;

    if (!e->stepped[part->parameter]) {
        return PART_RIGHT;
    }
    if (!got || !replay_reduction_find(e, r, part, &x, f)) {
        return PART_WRONG;
    }
    for (uint64_t i = 0; i < part->n; i++) {
        right = right && got[i] == replay_reduced(&x, i);
    }
    why = right ? NULL : replay_misrounded(&x, moment, got, part->n);
    if (why) {
        (void)finding_text(f, at, why);
    }
    return right ? PART_RIGHT : why ? PART_MISROUNDED : PART_WRONG;
}

/* Replaces a part of the first step by what it would be with another rounding
 * at this moment. */
static bool misround(const struct expect *e, struct record *r, uint32_t moment)
{
    struct record_rank *rank = compare_rank_to_spoil(r, 0);

    for (uint32_t i = 0; rank && i < rank->n_tensors; i++) {
        struct record_tensor *t = &rank->tensor[i];
        struct compare_part part = {
            .parameter = t->parameter, .first = t->first, .n = t->n};
        struct replay_reduction x;
        struct finding unused;

        if (t->stage != RECORD_REDUCED || t->step != 0 || !t->data ||
            t->parameter >= e->model->n_parameters) {
            continue;
        }
        part.unit = e->unit_of_parameter[t->parameter];
        if (replay_reduction_find(e, r, &part, &x, &unused) &&
            replay_misround(&x, moment, t->data, t->n)) {
            return true;
        }
    }
    return false;
}

/* A small part may be explained by many mistakes: it is this mistake only if it
 * explains all parts that are not right. If some are wrong in another way,
 * nothing is reported here. */
#define ROUNDS(name, moment)                                                   \
    static bool name##_explains(                                               \
        const struct expect *e, const struct record *r,                        \
        const struct compare_part *part, struct finding *f)                    \
    {                                                                          \
        return part_is(e, r, part, moment, f) != PART_WRONG;                   \
    }                                                                          \
    static bool name##_of_part(const struct expect *e, const struct record *r, \
                               const struct compare_part *part,                \
                               struct finding *f)                              \
    {                                                                          \
        return part_is(e, r, part, moment, f) == PART_RIGHT;                   \
    }                                                                          \
    static bool name##_holds(const struct expect *e, const struct record *r,   \
                             struct finding *f)                                \
    {                                                                          \
        struct finding unused;                                                 \
                                                                               \
        return !compare_parts(e, r, 0, 1, name##_explains, &unused) ||         \
               compare_parts(e, r, 0, 1, name##_of_part, f);                   \
    }                                                                          \
    static bool name##_spoil(const struct expect *e, struct record *r)         \
    {                                                                          \
        struct finding unused;                                                 \
                                                                               \
        return compare_parts(e, r, 0, 1, name##_explains, &unused) &&          \
               misround(e, r, moment);                                         \
    }

ROUNDS(accumulate, REPLAY_ACCUMULATES)
ROUNDS(sent, REPLAY_SENDS)
ROUNDS(sum, REPLAY_SUMS)
ROUNDS(scale, REPLAY_SCALES)
ROUNDS(shard_gradient, REPLAY_KEEPS)
#undef ROUNDS

/* Other collectives have requirements of their own. */
static bool reduce_dtype_of_collective(const struct expect *e,
                                       const struct record_collective *c,
                                       uint32_t index, struct finding at,
                                       struct finding *f)
{
    return !compare_reduces(c) || c->unit >= e->units->n_units ||
           compare_moves(e, c, index, e->unit[c->unit].dtype.reduce, at, f);
}

static bool reduces(const struct expect *e)
{
    return is_mixed(e) && e->c->ranks > 1;
}

/* Judges the dtype on the wire, and the values before it: the dtype does not
 * tell whether a value was rounded. */
static bool reduce_dtype_holds(const struct expect *e, const struct record *r,
                               struct finding *f)
{
    return compare_collectives(e, r, reduce_dtype_of_collective, f) &&
           sent_holds(e, r, f);
}

static bool reduce_dtype_spoil(const struct expect *e, struct record *r)
{
    struct record_collective *c = compare_collective_to_spoil(r);

    if (!c) {
        return sent_spoil(e, r);
    }
    c->kind = FSDP_REDUCE_SCATTER;
    c->unit = 0;
    c->dtype = FSDP_DTYPE_I32;
    return true;
}

/* For each moment whether something is rounded there, and so may be rounded in
 * another way. */
static bool accumulates(const struct expect *e)
{
    return is_mixed(e) && e->c->microbatches > 1;
}

static bool sums(const struct expect *e)
{
    return is_mixed(e) && e->c->ranks > 2;
}

static bool scales(const struct expect *e)
{
    return is_mixed(e) && (e->c->ranks & (e->c->ranks - 1)) != 0 &&
           is_narrow(e->options.reduce_dtype);
}

static bool adds_up_shards(const struct expect *e)
{
    return is_mixed(e) && compare_synced_early(e) > 0;
}

/* ---- What rests ----------------------------------------------------------*/

/* mixed.master-kept: in a step weights of 16 bits lose most updates. */
static bool narrows(const struct expect *e)
{
    return is_mixed(e) && is_narrow(e->options.param_dtype) &&
           e->c->scenario != CASE_CLIP;
}

static bool master_of_part(const struct expect *e, const struct record *r,
                           const struct compare_part *part, struct finding *f)
{
    const uint32_t dtype = e->unit[part->unit].dtype.param;
    const struct replay_optimizer o =
        replay_optimizer_at(e, part->parameter, part->step);
    struct replay_values v;
    struct finding unused;
    const char *why = NULL;

    if (!is_narrow(dtype) || replay_compare_step(e, r, part, &unused) ||
        !replay_values_find(e, r, part, &v, &unused)) {
        return true;
    }
    if (v.is_stepped) {
        why = replay_rounded_master(&o, &v, dtype, part->n);
    }
    if (why) {
        struct finding at = finding_at_part("after", -1, part);

        return finding_text(f, at, why);
    }
    return true;
}

/* Rounds the weights that the first step left, if they are right. */
static bool master_spoil(const struct expect *e, struct record *r)
{
    struct record_rank *rank = compare_rank_to_spoil(r, 0);
    struct finding unused;
    bool changed = false;

    if (!compare_parts(e, r, 0, 1, replay_compare_step, &unused)) {
        return false;
    }
    for (uint32_t i = 0; rank && i < rank->n_tensors; i++) {
        struct record_tensor *t = &rank->tensor[i];

        if (t->stage != RECORD_AFTER || t->step != 0 || !t->data ||
            t->parameter >= e->model->n_parameters) {
            continue;
        }
        for (uint64_t j = 0; j < t->n; j++) {
            const uint32_t u = e->unit_of_parameter[t->parameter];
            const float x = fsdp_round(e->unit[u].dtype.param, t->data[j]);

            changed = changed || !(x == t->data[j]);
            t->data[j] = x;
        }
    }
    return changed;
}

const struct requirement mixed_sum_requirements[] = {
    {.since = "1.1", .must = 1, .level = LEVEL_REDUCE},
    {.id = "mixed.accumulate",
     .text = "Gradients of microbatches add up in the accumulate dtype, one "
             "rounding an addition.",
     .across = true,
     .needs = "grad.finite mixed.gradient-dtype mixed.reduce-dtype",
     .applies = accumulates,
     .holds = accumulate_holds,
     .spoil = accumulate_spoil},
    {.id = "mixed.reduce-dtype",
     .text = "In mixed precision every reduction moves its unit's reduce "
             "dtype, and nothing is rounded to another before it.",
     .across = true,
     .needs = "grad.finite mixed.units",
     .applies = reduces,
     .holds = reduce_dtype_holds,
     .spoil = reduce_dtype_spoil},
    {.id = "mixed.sum",
     .text = "The sums of a reduction are rounded as sum_dtype says, and to "
             "nothing else before replicas meet.",
     .across = true,
     .needs = "grad.finite mixed.reduce-dtype mixed.accumulate "
              "mixed.shard-gradient",
     .applies = sums,
     .holds = sum_holds,
     .spoil = sum_spoil},
    {.id = "mixed.scale",
     .text = "The fold is scaled once, in float32, and rounded to the reduce "
             "dtype.",
     .across = true,
     .needs = "grad.finite mixed.reduce-dtype mixed.accumulate",
     .applies = scales,
     .holds = scale_holds,
     .spoil = scale_spoil},
    {.id = "mixed.shard-gradient",
     .text = "Reduced gradients are widened to float32 before they are added.",
     .across = true,
     .needs = "grad.finite mixed.reduce-dtype mixed.accumulate",
     .applies = adds_up_shards,
     .holds = shard_gradient_holds,
     .spoil = shard_gradient_spoil},
    {.id = "mixed.master-kept",
     .text = "Weights and moments stay float32: no step begins or ends at "
             "weights that were rounded to the parameter dtype.",
     .level = LEVEL_STEP,
     .needs = "step.weights-untouched grad.finite",
     .applies = narrows,
     .spoil = master_spoil,
     .check = &check_each_part,
     .part = {master_of_part, RECORD_AFTER, STEPS_RECORDED}},
    {0},
};
