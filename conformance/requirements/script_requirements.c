/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_requirements.c - what a case that plays a script must compute: losses,
 * norms and the values that looks show are those of the unsharded run, which
 * plays the same script. Each step of such a record is an action.
 */
#include "requirements/families.h"
#include "requirements/script_checks.h"

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

/* Whether 64 more in one rank's loss would show in the fold of all losses. */
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

/* Spoils the last loss that can be spoiled: if a script ends in infinities, an
 * earlier one. */
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

/* Whether the script has a life that begins without values, and a pass in
 * it. */
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

/* Gradients are there where a reduction has left some of what trains. */
static bool gradient_of_part(const struct expect *e, const struct record *r,
                             const struct compare_part *part, struct finding *f)
{
    if (e->event[part->step].reduced[part->unit] &&
        expect_is_trainable(expect_at(e, part->step), part->parameter)) {
        return compare_as_baseline(e, r, part, RECORD_REDUCED, f);
    }
    return !compare_values(r, RECORD_REDUCED, part) ||
           finding_text(f, finding_at("reduced", part->step, -1, part->rank),
                        "a gradient is there that nothing has reduced");
}

static bool look_of_part(const struct expect *e, const struct record *r,
                         const struct compare_part *part, struct finding *f)
{
    return gradient_of_part(e, r, part, f) &&
           compare_all_as_baseline(e, r, part, f);
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

static bool is_first(const struct requirement *q, const struct expect *e,
                     uint32_t i, uint32_t p, uint32_t stage)
{
    (void)q;
    (void)p;
    return stage == RECORD_AFTER && e->script.rank0 && i == first_look(e);
}

static bool value_of_part(const struct expect *e, const struct record *r,
                          const struct compare_part *part, struct finding *f)
{
    return !script_look_shows(e, part, RECORD_AFTER) ||
           compare_as_baseline(e, r, part, RECORD_AFTER, f);
}

/* ---- checkpoint.lenient -------------------------------------------------- */

/* A look right behind a lenient load, of what was rounded (`kind` is 1) or not.
 */
static bool is_lenient(const struct requirement *q, const struct expect *e,
                       uint32_t i, uint32_t p, uint32_t stage)
{
    const struct script_action *a = i > 0 ? script_at(e, i - 1) : NULL;
    const struct script_action *saved;

    (void)p;
    if (!a || a->verb != SCRIPT_LOAD || !a->lenient || stage != RECORD_AFTER) {
        return false;
    }
    saved = script_action_saved(e, i - 1);
    return (saved ? saved->dtype != FSDP_DTYPE_NONE : 0) == q->kind;
}

static bool lenient_of_part(const struct expect *e, const struct record *r,
                            const struct compare_part *part, struct finding *f)
{
    return !script_look_shows(e, part, RECORD_AFTER) ||
           look_of_part(e, r, part, f);
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
    return script_does(e, SCRIPT_CLIP);
}

/* The rank's answer about the norm in action i, or NULL. */
static struct record_answer *norm_of(const struct record_rank *rank, uint32_t i)
{
    char name[CASE_NORM_BYTES];

    snprintf(name, sizeof(name), "norm-action-%u", i + 1);
    return compare_find_answer(rank, name);
}

/* The norm, which is noted as its bits. */
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
    {.since = "1.1", .must = 1, .level = LEVEL_STEP},
    {.id = "checkpoint.export-rounded",
     .text = "Behind a lenient load of what was saved in 16 bits parameters "
             "are those that were saved, rounded once, to nearest even, bit "
             "for bit.",
     .needs = "run.shows-every-step checkpoint.export-dtype",
     .beside_training = true,
     .claim = "save-dtype",
     .profile = PROFILE_BITS,
     .check = &check_looks,
     .look = {is_lenient, lenient_of_part},
     .kind = 1},
    {.id = "checkpoint.lenient",
     .text = "Behind a lenient load is what the checkpoint has under the "
             "model's names, and all else is as it was, bit for bit.",
     .needs = "run.shows-every-step checkpoint.parts "
              "checkpoint.export-rounded",
     .claim = "lenient-load",
     .profile = PROFILE_BITS,
     .check = &check_looks,
     .look = {is_lenient, lenient_of_part}},
    {.id = "deferred.same-curve",
     .text = "A model that began without values, and was given them, has the "
             "losses of the unsharded run, which began with them, bit for bit.",
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
     .level = LEVEL_LAYOUT,
     .needs = "run.shows-every-step",
     .claim = "rank0-initial",
     .check = &check_looks,
     .look = {is_first, value_of_part}},
    {.id = "script.losses",
     .text = "The folded loss of each pass of a script equals the unsharded "
             "run's, bit for bit.",
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
