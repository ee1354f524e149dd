/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scale_requirements.c - loss scaling, in scripts that scale their loss: the
 * scale is undone once, a gradient that is not finite is found by all ranks and
 * changes nothing, and the run goes on as if that step had not been. The
 * unsharded run, which plays the same script, says which steps must be skipped.
 * Whatever the arithmetic, all ranks must find what one of them has found.
 */
#include "requirements/families.h"

#include "judge/compare/compare_checks.h"
#include "requirements/script_checks.h"

#include <fsdp/scaler.h>
#include <math.h>
#include <stdio.h>

/* ---- What the script and the unsharded run say -------------------------- */

static uint32_t verb_of(const struct expect *e, uint32_t i)
{
    return i < e->n_events ? e->event[i].action->verb : SCRIPT_N_VERBS;
}

/* The rank's answer about found_inf in action i, or NULL. */
static struct record_answer *found_of(const struct record_rank *rank,
                                      uint32_t i)
{
    char name[CASE_NORM_BYTES];

    snprintf(name, sizeof(name), "found-action-%u", i + 1);
    return compare_find_answer(rank, name);
}

/* Whether action i is a step that is to be skipped. */
static bool is_skipped(const struct expect *e, uint32_t i)
{
    const struct record_answer *found =
        verb_of(e, i) == SCRIPT_STEP && e->baseline
            ? found_of(compare_rank(e->baseline, 0), i)
            : NULL;

    return found && found->status != 0;
}

static bool scales(const struct expect *e)
{
    return case_is_script(e->c) && e->script.scale.said;
}

/* Whether there is a look right before and right behind action i. */
static bool is_shown(const struct expect *e, uint32_t i)
{
    return i > 0 && verb_of(e, i - 1) == SCRIPT_LOOK &&
           verb_of(e, i + 1) == SCRIPT_LOOK;
}

/* The driver's scale, action by action. */
struct scale {
    struct fsdp_scaler now, kept[SCRIPT_MAX_SLOTS];
    bool undone;
};

static void pass_action(const struct expect *e, uint32_t i, struct scale *s)
{
    const struct script_action *a = e->event[i].action;

    switch (a->verb) {
    case SCRIPT_STEP:
        s->undone = s->undone || !is_skipped(e, i);
        if (e->script.scale.every > 0) {
            s->now = fsdp_scaler_after(s->now, is_skipped(e, i));
        }
        break;
    case SCRIPT_CLIP:
        s->undone = true;
        break;
    case SCRIPT_PASS:
        s->undone = false; /* the gradients that it adds are scaled */
        break;
    case SCRIPT_EVAL:
        s->undone = s->undone && a->ending == SCRIPT_WHOLE;
        break;
    case SCRIPT_SAVE:
        s->kept[a->slot] = s->now;
        break;
    case SCRIPT_LOAD:
        s->now = s->kept[a->slot].scale != 0.0f ? s->kept[a->slot] : s->now;
        s->undone = false;
        break;
    case SCRIPT_ZERO:
    case SCRIPT_AGAIN:
        s->undone = false;
        break;
    default:
        break;
    }
}

/* The factor by which the gradients of action i must be multiplied. */
static float inverse_at(const struct expect *e, uint32_t i)
{
    const struct script_scale *said = &e->script.scale;
    struct scale s = {.now = fsdp_scaler_default()};

    s.now.scale = ldexpf(1.0f, said->exponent);
    s.now.least = ldexpf(1.0f, -SCRIPT_MOST_SCALE);
    s.now.most = ldexpf(1.0f, SCRIPT_MOST_SCALE);
    s.now.interval = said->every > 0 ? said->every : 1;
    for (uint32_t k = 0; k < i; k++) {
        pass_action(e, k, &s);
    }
    return s.undone ? 1.0f : fsdp_scaler_inverse(&s.now);
}

/* ---- found_inf ----------------------------------------------------------- */

/*
 * Whether every rank must be told that action i is skipped. In 16 bits an
 * engine with its own arithmetic may overflow in another step than the suite's.
 * Its ranks must still agree: if one has found it, the others are told.
 */
static bool is_found(const struct expect *e, const struct record *r, uint32_t i)
{
    const bool own = e->profile == EXPECT_OWN && !workload_is_exact(e->c->data);
    bool found = !(own && e->c->precision != CASE_F32) && is_skipped(e, i);

    for (uint32_t k = 0; own && k < e->c->ranks; k++) {
        const struct record_answer *got = found_of(compare_rank(r, k), i);

        found = found || (got && got->status != 0);
    }
    return found;
}

/* Judges all steps that are to be skipped, if the row's `kind` is 1, or all
 * others. */
static bool found_holds(const struct requirement *q, const struct expect *e,
                        const struct record *r, struct finding *f)
{
    const bool skipped = q->kind != 0;

    if (!e->baseline) {
        return finding_missing(f, finding_at("found", -1, -1, -1),
                               "the unsharded run has no record");
    }
    for (uint32_t i = 0; i < e->n_events; i++) {
        const bool found = skipped ? is_found(e, r, i) : is_skipped(e, i);

        if (verb_of(e, i) != SCRIPT_STEP || found != skipped) {
            continue;
        }
        for (uint32_t k = 0; k < e->c->ranks; k++) {
            const struct record_answer *got = found_of(compare_rank(r, k), i);

            if (!got || (got->status != 0) != skipped) {
                return finding_note(
                    f, finding_at("found", i, -1, k),
                    "action %u: the step says found_inf %d, expected %d", i + 1,
                    got ? got->status : -1, skipped);
            }
        }
    }
    return true;
}

static bool found_spoil(const struct requirement *q, const struct expect *e,
                        struct record *r)
{
    const bool skipped = q->kind != 0;

    for (uint32_t i = 0; i < e->n_events; i++) {
        struct record_answer *got =
            found_of(compare_rank_to_spoil(r, r->n_ranks - 1), i);

        if (got &&
            (skipped ? is_found(e, r, i) : is_skipped(e, i)) == skipped) {
            got->status = got->status == 0;
            if (!skipped || is_found(e, r, i)) {
                return true; /* what contradicts it is still there */
            }
            got->status = got->status == 0;
        }
    }
    return false;
}

static const struct requirement_check check_found = {.holds = found_holds,
                                                     .spoil = found_spoil};

/* ---- scale.unscaled-once ------------------------------------------------- */

/* Whether action i, with looks around it, does nothing to gradients but unscale
 * them. */
static bool only_unscales(const struct expect *e, uint32_t i)
{
    return is_shown(e, i) &&
           ((verb_of(e, i) == SCRIPT_STEP && !is_skipped(e, i)) ||
            (verb_of(e, i) == SCRIPT_CLIP &&
             isinf(e->event[i].action->max_norm)));
}

/* `part` is a part of the look behind the action. */
static bool unscaled_of_part(const struct expect *e, const struct record *r,
                             const struct compare_part *part, struct finding *f)
{
    const uint32_t i = part->step - 1;
    const float inverse = inverse_at(e, i);
    struct compare_part earlier = *part;
    const float *before;
    const float *after = compare_values(r, RECORD_REDUCED, part);

    earlier.step = i - 1;
    before = compare_values(r, RECORD_REDUCED, &earlier);
    if (!e->event[part->step].reduced[part->unit] ||
        !expect_is_trainable(expect_at(e, part->step), part->parameter)) {
        return true;
    }
    if (!before || !after) {
        return compare_missing(before ? part : &earlier, RECORD_REDUCED, f);
    }
    for (uint64_t k = 0; k < part->n; k++) {
        const float want = before[k] * inverse;

        if (!compare_same_or_nan(after[k], want)) {
            compare_element(e, part, RECORD_REDUCED, k, after[k], want, f);
            f->step = i; /* the fault is in the action, not in the look */
            return false;
        }
    }
    return true;
}

static bool unscaled_once_holds(const struct expect *e, const struct record *r,
                                struct finding *f)
{
    for (uint32_t i = 0; i < e->n_events; i++) {
        if (only_unscales(e, i) &&
            !compare_parts(e, r, i + 1, i + 2, unscaled_of_part, f)) {
            return false;
        }
    }
    return true;
}

/* Spoils the first such action behind which there are gradients. */
static bool unscaled_once_spoil(const struct expect *e, struct record *r)
{
    for (uint32_t i = 0; i < e->n_events; i++) {
        const struct record_tensor *t =
            only_unscales(e, i)
                ? compare_tensor_to_spoil(r, RECORD_REDUCED, i + 1)
                : NULL;

        if (t && t->step == i + 1) {
            return compare_spoil_stage(r, RECORD_REDUCED, i + 1);
        }
    }
    return false;
}

/* ---- scale.skip-changes-nothing ------------------------------------------ */

static bool kept_of_part(const struct expect *e, const struct record *r,
                         const struct compare_part *part, struct finding *f)
{
    const uint32_t then = part->step - 2;

    if (e->event[part->step].reduced[part->unit] &&
        expect_is_trainable(expect_at(e, part->step), part->parameter) &&
        !compare_as_then(e, r, part, RECORD_REDUCED, RECORD_REDUCED, then, f)) {
        return false;
    }
    for (uint32_t k = 0; k < compare_n_stages_of(e, part); k++) {
        if (!compare_as_then(e, r, part, compare_stages[k], compare_stages[k],
                             then, f)) {
            return false;
        }
    }
    return true;
}

static bool skip_holds(const struct expect *e, const struct record *r,
                       struct finding *f)
{
    for (uint32_t i = 0; i < e->n_events; i++) {
        if (is_skipped(e, i) && is_shown(e, i) &&
            !compare_parts(e, r, i + 1, i + 2, kept_of_part, f)) {
            return false;
        }
    }
    return true;
}

static bool skip_spoil(const struct expect *e, struct record *r)
{
    for (uint32_t i = 0; i < e->n_events; i++) {
        if (is_skipped(e, i) && is_shown(e, i)) {
            return compare_spoil_stage(r, RECORD_AFTER, i + 1);
        }
    }
    return false;
}

/* ---- scale.next-step ----------------------------------------------------- */

/* Whether the two runs were alike in front of the step. Where they were not,
 * script.values finds it. */
static bool was_alike(const struct expect *e, const struct record *r,
                      const struct compare_part *part, struct finding *f)
{
    struct compare_part earlier = *part;

    earlier.step = part->step - 2;
    return (!expect_is_trainable(expect_at(e, part->step), part->parameter) ||
            !e->event[earlier.step].reduced[part->unit] ||
            compare_as_baseline(e, r, &earlier, RECORD_REDUCED, f)) &&
           compare_all_as_baseline(e, r, &earlier, f);
}

/* From equal values one step must make equal values. */
static bool next_of_part(const struct expect *e, const struct record *r,
                         const struct compare_part *part, struct finding *f)
{
    struct finding ignored = *f;

    return !was_alike(e, r, part, &ignored) ||
           compare_all_as_baseline(e, r, part, f);
}

/* The first step behind one that was skipped, and looks around it. */
static uint32_t next_step(const struct expect *e)
{
    bool skipped = false;

    for (uint32_t i = 0; i < e->n_events; i++) {
        if (skipped && verb_of(e, i) == SCRIPT_STEP && !is_skipped(e, i) &&
            is_shown(e, i)) {
            return i;
        }
        skipped = skipped || is_skipped(e, i);
    }
    return e->n_events;
}

static bool next_step_holds(const struct expect *e, const struct record *r,
                            struct finding *f)
{
    const uint32_t i = next_step(e);

    return i == e->n_events ||
           compare_parts(e, r, i + 1, i + 2, next_of_part, f);
}

static bool next_step_spoil(const struct expect *e, struct record *r)
{
    const uint32_t i = next_step(e);
    struct finding ignored = {0};

    return i < e->n_events &&
           compare_parts(e, r, i + 1, i + 2, was_alike, &ignored) &&
           compare_spoil_stage(r, RECORD_AFTER, i + 1);
}

const struct requirement scale_requirements[] = {
    {.since = "1.1",
     .must = 1,
     .level = LEVEL_STEP,
     .claim = "loss-scale",
     .applies = scales},
    {.id = "error.step-scale",
     .text = "A step with an inverse_scale that is negative, infinite or NaN "
             "is refused as INVALID.",
     .level = LEVEL_ERRORS,
     .needs = "run.survives run.ranks-present",
     .applies = compare_case_plays,
     .check = &check_asked,
     .answers = {{"step-scale-negative", FSDP_ERR_INVALID},
                 {"step-scale-nan", FSDP_ERR_INVALID},
                 {"step-scale-infinite", FSDP_ERR_INVALID}}},
    {.id = "scale.found-everywhere",
     .text = "If a reduced gradient of any rank is infinite or NaN, every rank "
             "is told so.",
     .needs = "run.shows-every-step",
     .check = &check_found,
     .kind = 1},
    {.id = "scale.finite-goes-on",
     .text = "A step of which all gradients are finite is told so on every "
             "rank.",
     .needs = "run.shows-every-step scale.found-everywhere "
              "scale.skip-changes-nothing",
     .profile = PROFILE_BITS,
     .check = &check_found},
    {.id = "scale.unscaled-once",
     .text = "A step, or a clip before it, multiplies gradients by "
             "inverse_scale exactly once.",
     .needs = "run.shows-every-step scale.finite-goes-on",
     .profile = PROFILE_BITS,
     .holds = unscaled_once_holds,
     .spoil = unscaled_once_spoil},
    {.id = "scale.skip-changes-nothing",
     .text = "A step that has found an infinity leaves weights, states and "
             "gradients as they were, bit for bit.",
     .needs = "run.shows-every-step scale.found-everywhere",
     .profile = PROFILE_BITS,
     .holds = skip_holds,
     .spoil = skip_spoil},
    /* If the skipped step was counted, the numbers of AdamW show it. */
    {.id = "scale.next-step",
     .text = "The step after one that was skipped is the one that it would "
             "have been: weights and states are the unsharded run's, bit for "
             "bit.",
     .needs = "run.shows-every-step scale.unscaled-once "
              "scale.skip-changes-nothing",
     .profile = PROFILE_BITS,
     .holds = next_step_holds,
     .spoil = next_step_spoil},
    {0},
};
