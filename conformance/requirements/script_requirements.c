/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_requirements.c - what a case that plays a script of its own must
 * compute: losses, norms and what is looked at are those of the unsharded run,
 * which plays the same script. A step of such a record is an action.
 */
#include "requirements/families.h"
#include "requirements/script_action.h"

#include "judge/compare/compare_checks.h"

#include <fsdp/arith/bits.h>
#include <math.h>
#include <stdio.h>

static bool is_script(const struct expect *e)
{
    return case_is_script(e->c);
}

/* ---- script.losses ------------------------------------------------------ */

static bool losses_hold(const struct expect *e, const struct record *r,
                        struct finding *f)
{
    return compare_curves(e, r, e->baseline, compare_n_losses(e), f) ||
           f->step < 0 || script_action_tell(e, (uint32_t)f->step, f);
}

/* Whether 64 more in one of them would show in the fold of all. */
static bool folds_plainly(const struct record *r, uint32_t i)
{
    for (uint32_t k = 0; k < r->n_ranks; k++) {
        const struct record_rank *rank = &r->rank[k];

        if (!rank->loss || i >= rank->n_losses ||
            !(fabsf(rank->loss[i]) < 0x1p20f)) {
            return false;
        }
    }
    return true;
}

/* Of a script that ends in infinities an earlier one. */
static bool losses_spoil(const struct expect *e, struct record *r)
{
    for (uint32_t i = e->n_events; i-- > 0;) {
        struct record_rank *rank = compare_rank_to_spoil(r, 0);

        if (rank && folds_plainly(r, i)) {
            rank->loss[i] = 2.0f * rank->loss[i] + 64.0f;
            return true;
        }
    }
    return false;
}

/* A life that begins without values, and has a pass. */
static bool trains_deferred(const struct expect *e)
{
    for (uint32_t i = 0; is_script(e) && i < e->n_events; i++) {
        if (e->event[i].action->verb == SCRIPT_PASS) {
            return e->script.deferred;
        }
    }
    return false;
}

/* ---- script.values ------------------------------------------------------ */

static bool as_baseline(const struct expect *e, const struct record *r,
                        const struct compare_part *part, uint32_t stage,
                        struct finding *f)
{
    struct compare_part of = *part;

    of.any_nan = compare_any_nan(e);
    of.any_zero = e->profile == EXPECT_OWN;
    return compare_equal(e, &of, stage, compare_values(r, stage, part),
                         compare_baseline(e, stage, part), f);
}

/* Gradients are there where a reduction has left some of what trains. */
static bool gradient_of_part(const struct expect *e, const struct record *r,
                             const struct compare_part *part, struct finding *f)
{
    if (e->event[part->step].reduced[part->unit] &&
        expect_is_trainable(expect_at(e, part->step), part->parameter)) {
        return as_baseline(e, r, part, RECORD_REDUCED, f);
    }
    return !compare_values(r, RECORD_REDUCED, part) ||
           finding_text(f, finding_at("reduced", part->step, -1, part->rank),
                        "a gradient is there that nothing has reduced");
}

static bool look_of_part(const struct expect *e, const struct record *r,
                         const struct compare_part *part, struct finding *f)
{
    const uint32_t optimizer =
        expect_is_trainable(expect_at(e, part->step), part->parameter)
            ? e->c->optimizer
            : FSDP_OPTIMIZER_SGD; /* no states */

    return gradient_of_part(e, r, part, f) &&
           as_baseline(e, r, part, RECORD_AFTER, f) &&
           (optimizer == FSDP_OPTIMIZER_SGD ||
            as_baseline(e, r, part, RECORD_STATE0, f)) &&
           (optimizer != FSDP_OPTIMIZER_ADAMW ||
            as_baseline(e, r, part, RECORD_STATE1, f));
}

/* ---- rank0.same-values --------------------------------------------------- */

/* In the first life: the look that follows sharding, and nothing but calls that
 * are refused; n_events: there is none. */
static uint32_t first_look(const struct expect *e)
{
    uint32_t i = 0;

    while (i < e->n_events && e->event[i].action->verb == SCRIPT_WRONG) {
        i++;
    }
    return i < e->n_events && e->event[i].action->verb == SCRIPT_LOOK
               ? i
               : e->n_events;
}

static bool looks_at_rank0(const struct expect *e)
{
    return is_script(e) && e->script.rank0 && first_look(e) < e->n_events;
}

static bool value_of_part(const struct expect *e, const struct record *r,
                          const struct compare_part *part, struct finding *f)
{
    return as_baseline(e, r, part, RECORD_AFTER, f);
}

static bool rank0_holds(const struct expect *e, const struct record *r,
                        struct finding *f)
{
    const uint32_t i = first_look(e);

    return compare_parts(e, r, i, i + 1, value_of_part, f) ||
           script_action_tell(e, i, f);
}

static bool rank0_spoil(const struct expect *e, struct record *r)
{
    return compare_spoil_stage(r, RECORD_AFTER, first_look(e));
}

/* ---- checkpoint.lenient -------------------------------------------------- */

/* A look right behind a lenient load, of what was rounded or not. */
static bool shows_lenient(const struct expect *e, uint32_t i, bool rounded)
{
    const struct script_action *a = i > 0 ? e->event[i - 1].action : NULL;
    const struct script_action *saved;

    if (!a || a->verb != SCRIPT_LOAD || !a->lenient ||
        e->event[i].action->verb != SCRIPT_LOOK) {
        return false;
    }
    saved = script_action_saved(e, i - 1);
    return (saved && saved->dtype != FSDP_DTYPE_NONE) == rounded;
}

static bool looks_behind(const struct expect *e, bool rounded)
{
    for (uint32_t i = 0; is_script(e) && i < e->n_events; i++) {
        if (shows_lenient(e, i, rounded)) {
            return true;
        }
    }
    return false;
}

static bool holds_behind(const struct expect *e, const struct record *r,
                         bool rounded, struct finding *f)
{
    for (uint32_t i = 0; i < e->n_events; i++) {
        if (shows_lenient(e, i, rounded) &&
            !compare_parts(e, r, i, i + 1, look_of_part, f)) {
            return script_action_tell(e, i, f);
        }
    }
    return true;
}

static bool spoil_behind(const struct expect *e, struct record *r, bool rounded)
{
    for (uint32_t i = 0; i < e->n_events; i++) {
        if (shows_lenient(e, i, rounded) &&
            compare_spoil_step(r, RECORD_AFTER, i)) {
            return true;
        }
    }
    return false;
}

static bool looks_at_lenient(const struct expect *e)
{
    return looks_behind(e, false);
}

static bool lenient_holds(const struct expect *e, const struct record *r,
                          struct finding *f)
{
    return holds_behind(e, r, false, f);
}

static bool lenient_spoil(const struct expect *e, struct record *r)
{
    return spoil_behind(e, r, false);
}

static bool looks_at_rounded(const struct expect *e)
{
    return looks_behind(e, true);
}

static bool rounded_holds(const struct expect *e, const struct record *r,
                          struct finding *f)
{
    return holds_behind(e, r, true, f);
}

static bool rounded_spoil(const struct expect *e, struct record *r)
{
    return spoil_behind(e, r, true);
}

static bool summons(uint32_t verb)
{
    return verb == SCRIPT_SUMMON || verb == SCRIPT_UNSHARD ||
           verb == SCRIPT_UNSHARD_UNIT;
}

/* Every parameter, or every one of a unit, whole, on every rank. */
static bool summoned_holds(const struct expect *e, const struct record *r,
                           uint32_t i, struct finding *f)
{
    const struct script_action *a = e->event[i].action;
    const uint32_t unit =
        a->verb == SCRIPT_UNSHARD_UNIT ? a->unit : FSDP_NO_UNIT;

    for (uint32_t k = 0; k < e->c->ranks; k++) {
        if (!script_action_shows(e, r, i, k, unit, f)) {
            return false;
        }
    }
    return true;
}

static bool values_hold(const struct expect *e, const struct record *r,
                        struct finding *f)
{
    for (uint32_t i = 0; i < e->n_events; i++) {
        const uint32_t verb = e->event[i].action->verb;

        if (verb == SCRIPT_LOOK &&
            !compare_parts(e, r, i, i + 1, look_of_part, f)) {
            return script_action_tell(e, i, f);
        }
        if (summons(verb) && !summoned_holds(e, r, i, f)) {
            return false;
        }
    }
    return true;
}

/* In an action that is looked at: one unit that is summoned is not. */
static bool values_spoil(const struct expect *e, struct record *r)
{
    for (uint32_t i = 0; i < e->n_events; i++) {
        const uint32_t verb = e->event[i].action->verb;

        if ((verb == SCRIPT_LOOK && compare_spoil_step(r, RECORD_AFTER, i)) ||
            (summons(verb) && compare_spoil_step(r, RECORD_SUMMONED, i))) {
            return true;
        }
    }
    return false;
}

static bool looks(const struct expect *e)
{
    for (uint32_t i = 0; is_script(e) && i < e->n_events; i++) {
        const uint32_t verb = e->event[i].action->verb;

        if (verb == SCRIPT_LOOK || summons(verb)) {
            return true;
        }
    }
    return false;
}

/* ---- script.norms ------------------------------------------------------- */

static bool clips(const struct expect *e)
{
    for (uint32_t i = 0; is_script(e) && i < e->n_events; i++) {
        if (e->event[i].action->verb == SCRIPT_CLIP) {
            return true;
        }
    }
    return false;
}

/* What a rank says of the norm in action i, or NULL. */
static struct record_answer *norm_of(const struct record_rank *rank, uint32_t i)
{
    char name[CASE_NORM_BYTES];

    snprintf(name, sizeof(name), "norm-action-%u", i + 1);
    return compare_find_answer(rank, name);
}

/* A norm is noted as its bits. */
static float bits_of(const struct record_answer *norm)
{
    return fsdp_f32_from_bits((uint32_t)norm->status);
}

static bool is_nan(const struct record_answer *norm)
{
    return isnan(bits_of(norm));
}

static bool same_norm(const struct expect *e, const struct record_answer *got,
                      const struct record_answer *want)
{
    return got->status == want->status ||
           (compare_any_nan(e) &&
            compare_same_or_nan(bits_of(got), bits_of(want)));
}

static bool norms_of_rank(const struct expect *e,
                          const struct record_rank *rank, uint32_t k,
                          struct finding *f)
{
    for (uint32_t i = 0; i < e->n_events; i++) {
        const struct finding at = finding_at("norm", i, -1, k);
        const struct record_answer *got;
        const struct record_answer *want;

        if (e->event[i].action->verb != SCRIPT_CLIP) {
            continue;
        }
        got = norm_of(rank, i);
        want = e->baseline ? norm_of(compare_rank(e->baseline, 0), i) : NULL;
        if (!want) {
            return finding_missing(f, at, "the unsharded run has no norm");
        }
        if (is_nan(want) && !compare_any_nan(e)) {
            return finding_text(f, at, "the unsharded run's norm is NaN") ||
                   script_action_tell(e, i, f);
        }
        if (!got || !same_norm(e, got, want)) {
            *f = at;
            f->form = got ? FINDING_BITS : FINDING_TEXT;
            f->got = got ? (uint32_t)got->status : 0;
            f->want = (uint32_t)want->status;
            snprintf(f->note, sizeof(f->note), "%s",
                     got ? "the norm differs in bits" : "no norm is recorded");
            return script_action_tell(e, i, f);
        }
    }
    return true;
}

static bool norms_spoil(const struct expect *e, struct record_rank *rank)
{
    for (uint32_t i = 0; i < e->n_events; i++) {
        struct record_answer *got = norm_of(rank, i);

        if (got) {
            got->status = is_nan(got) ? 0 : got->status ^ 1;
            return true;
        }
    }
    return false;
}

const struct requirement script_requirements[] = {
    {.id = "checkpoint.export-rounded",
     .text = "Behind a lenient load of what was saved in 16 bits parameters "
             "are those that were saved, rounded once, to nearest even, bit "
             "for bit.",
     .since = "1.1",
     .must = 1,
     .level = LEVEL_STEP,
     .needs = "run.shows-every-step checkpoint.export-dtype",
     .beside_training = true,
     .claim = "save-dtype",
     .profile = PROFILE_BITS,
     .applies = looks_at_rounded,
     .holds = rounded_holds,
     .spoil = rounded_spoil},
    {.id = "checkpoint.lenient",
     .text = "Behind a lenient load is what the checkpoint has under the "
             "model's names, and all else is as it was, bit for bit.",
     .since = "1.1",
     .must = 1,
     .level = LEVEL_STEP,
     .needs = "run.shows-every-step checkpoint.parts "
              "checkpoint.export-rounded",
     .claim = "lenient-load",
     .profile = PROFILE_BITS,
     .applies = looks_at_lenient,
     .holds = lenient_holds,
     .spoil = lenient_spoil},
    {.id = "deferred.same-curve",
     .text = "A model that began without values, and was given them, has the "
             "losses of the unsharded run, which began with them, bit for bit.",
     .since = "1.1",
     .must = 1,
     .level = LEVEL_STEP,
     .needs = "run.shows-every-step script.collectives assign.own-part "
              "assign.states-stay send.own-part send.others-stay",
     .claim = "deferred",
     .profile = PROFILE_BITS,
     .applies = trains_deferred,
     .holds = losses_hold,
     .spoil = losses_spoil},
    {.id = "rank0.same-values",
     .text = "With initial values on rank 0 alone every rank begins with them, "
             "bit for bit.",
     .since = "1.1",
     .must = 1,
     .level = LEVEL_LAYOUT,
     .needs = "run.shows-every-step",
     .claim = "rank0-initial",
     .applies = looks_at_rank0,
     .holds = rank0_holds,
     .spoil = rank0_spoil},
    {.id = "script.losses",
     .text = "The folded loss of each pass of a script equals the unsharded "
             "run's, bit for bit.",
     .since = "1.1",
     .must = 1,
     .level = LEVEL_STEP,
     .general = true,
     .needs = "run.shows-every-step script.values deferred.same-curve "
              "rank0.same-values checkpoint.lenient",
     .profile = PROFILE_BITS,
     .applies = is_script,
     .holds = losses_hold,
     .spoil = losses_spoil},
    {.id = "script.norms",
     .text = "The norm of the gradients that each clip of a script says is "
             "the unsharded run's, bit for bit.",
     .since = "1.1",
     .must = 1,
     .level = LEVEL_STEP,
     .general = true,
     .needs = "run.shows-every-step rank0.same-values",
     .claim = "clip",
     .profile = PROFILE_BITS,
     .applies = clips,
     .check = &check_each_rank,
     .rank = {norms_of_rank, norms_spoil}},
    {.id = "script.values",
     .text = "Wherever a script looks, weights, states and gradients are those "
             "of the unsharded run, bit for bit.",
     .since = "1.1",
     .must = 1,
     .level = LEVEL_STEP,
     .general = true,
     .needs = "run.shows-every-step script.collectives script.norms "
              "scale.next-step control.partial-sum control.factor "
              "control.unshard-values "
              "thaw.starts thaw.stepped thaw.frozen-keeps thaw.loaded "
              "thaw.others-stay mixed.overflow "
              "step-in-backward.same-bits assign.own-part "
              "assign.states-stay deferred.same-curve rank0.same-values "
              "summon.values send.own-part send.others-stay "
              "checkpoint.lenient",
     .profile = PROFILE_BITS,
     .applies = looks,
     .holds = values_hold,
     .spoil = values_spoil},
    {0},
};
