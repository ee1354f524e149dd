/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_requirements.c - what a case that plays a script of its own must
 * show: losses, norms and what is looked at are those of the unsharded run,
 * which plays the same script; collectives and live bytes those of the oracle,
 * action by action. A step of such a record is an action.
 */
#include "requirements/families.h"

#include "judge/compare/compare_checks.h"
#include "judge/compare/compare_memory.h"

#include <fsdp/arith/bits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_script(const struct expect *e)
{
    return case_is_script(e->c);
}

/* Tells an action by its text; the finding's step counts from 0. */
static bool tell_action(const struct expect *e, uint32_t i, struct finding *f)
{
    char text[64];
    size_t used = strlen(f->note);

    script_action_text(&e->script, e->event[i].action, text, sizeof(text));
    (void)snprintf(f->note + used, sizeof(f->note) - used,
                   "; action %u of those that are played: %s", i + 1, text);
    return false;
}

/* ---- script.losses ------------------------------------------------------ */

static bool losses_hold(const struct expect *e, const struct record *r,
                        struct finding *f)
{
    return compare_curves(e, r, e->baseline, compare_n_losses(e), f) ||
           f->step < 0 || tell_action(e, (uint32_t)f->step, f);
}

/* Whether 64 more in one of them would show in the fold of all. */
static bool folds_plainly(const struct record *r, uint32_t i)
{
    for (uint32_t k = 0; k < r->n_ranks; k++) {
        const struct record_rank *rank = &r->rank[k];

        if (rank->loss == NULL || i >= rank->n_losses ||
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

        if (rank != NULL && folds_plainly(r, i)) {
            rank->loss[i] = 2.0f * rank->loss[i] + 64.0f;
            return true;
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
    return compare_equal(e, &of, stage, compare_values(r, stage, part),
                         compare_baseline(e, stage, part), f);
}

/* Gradients are there where a reduction has left some. */
static bool gradient_of_part(const struct expect *e, const struct record *r,
                             const struct compare_part *part, struct finding *f)
{
    if (e->event[part->step].reduced[part->unit]) {
        return as_baseline(e, r, part, RECORD_REDUCED, f);
    }
    return compare_values(r, RECORD_REDUCED, part) == NULL ||
           finding_text(f, finding_at("reduced", part->step, -1, part->rank),
                        "a gradient is there that nothing has reduced");
}

static bool look_of_part(const struct expect *e, const struct record *r,
                         const struct compare_part *part, struct finding *f)
{
    const uint32_t optimizer = e->c->optimizer;

    return gradient_of_part(e, r, part, f) &&
           as_baseline(e, r, part, RECORD_AFTER, f) &&
           (optimizer == FSDP_OPTIMIZER_SGD ||
            as_baseline(e, r, part, RECORD_STATE0, f)) &&
           (optimizer != FSDP_OPTIMIZER_ADAMW ||
            as_baseline(e, r, part, RECORD_STATE1, f));
}

/* Every parameter, whole, on every rank. */
static bool summoned_holds(const struct expect *e, const struct record *r,
                           uint32_t i, struct finding *f)
{
    for (uint32_t k = 0; k < e->c->ranks; k++) {
        for (uint32_t p = 0; p < e->model->n_parameters; p++) {
            struct compare_part part = {.rank = k,
                                        .step = i,
                                        .parameter = p,
                                        .unit = e->unit_of_parameter[p],
                                        .n = fsdp_numel(e->model, p)};

            if (part.n > 0 && !as_baseline(e, r, &part, RECORD_SUMMONED, f)) {
                return false;
            }
        }
    }
    return true;
}

static bool values_hold(const struct expect *e, const struct record *r,
                        struct finding *f)
{
    for (uint32_t i = 0; i < e->n_events; i++) {
        const uint32_t verb = e->event[i].action->verb;
        bool holds = true;

        if (verb == SCRIPT_LOOK) {
            holds = compare_parts(e, r, i, i + 1, look_of_part, f);
        } else if (verb == SCRIPT_SUMMON || verb == SCRIPT_UNSHARD) {
            holds = summoned_holds(e, r, i, f);
        }
        if (!holds) {
            return tell_action(e, i, f);
        }
    }
    return true;
}

static bool values_spoil(const struct expect *e, struct record *r)
{
    (void)e;
    return compare_spoil_stage(r, RECORD_AFTER, 0) ||
           compare_spoil_stage(r, RECORD_SUMMONED, 0);
}

static bool looks(const struct expect *e)
{
    for (uint32_t i = 0; is_script(e) && i < e->n_events; i++) {
        const uint32_t verb = e->event[i].action->verb;

        if (verb == SCRIPT_LOOK || verb == SCRIPT_SUMMON ||
            verb == SCRIPT_UNSHARD) {
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

    (void)snprintf(name, sizeof(name), "norm-action-%u", i + 1);
    for (uint32_t a = 0; rank && a < rank->n_answers; a++) {
        if (strcmp(rank->answer[a].name, name) == 0) {
            return &rank->answer[a];
        }
    }
    return NULL;
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
                   tell_action(e, i, f);
        }
        if (!got || !same_norm(e, got, want)) {
            *f = at;
            f->form = got ? FINDING_BITS : FINDING_TEXT;
            f->got = got ? (uint32_t)got->status : 0;
            f->want = (uint32_t)want->status;
            (void)snprintf(f->note, sizeof(f->note), "%s",
                           got ? "the norm differs in bits"
                               : "no norm is recorded");
            return tell_action(e, i, f);
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

/* ---- script.answers ----------------------------------------------------- */

enum {
    LET_OFF = UINT32_MAX >> 1 /* in the place of a number of calls */
};

/* How often each wrong call is made. */
struct asked {
    uint32_t times[SCRIPT_N_CALLS];
    uint32_t reshards; /* after which parameters are asked for */
};

static void count_asked(const struct expect *e, struct asked *out)
{
    memset(out, 0, sizeof(*out));
    for (uint32_t i = 0; i < e->n_events; i++) {
        const struct script_action *a = e->event[i].action;

        out->reshards += a->verb == SCRIPT_SUMMON || a->verb == SCRIPT_RESHARD;
        if (a->verb == SCRIPT_WRONG) {
            out->times[a->call]++;
        }
        for (uint32_t k = 0; k < a->n_inside; k++) {
            const struct script_inside *in =
                &e->script.inside[a->first_inside + k];

            if (in->sync == SCRIPT_SYNC_UNSAID) {
                out->times[in->call]++;
            }
        }
    }
}

static bool is_refused(const struct expect *e)
{
    struct asked asked;
    uint32_t n = 0;

    if (!is_script(e)) {
        return false;
    }
    count_asked(e, &asked);
    for (uint32_t c = 0; c < SCRIPT_N_CALLS; c++) {
        n += asked.times[c];
    }
    return n + asked.reshards > 0;
}

/* SCRIPT_N_CALLS: what no wrong call is, but must be refused as most are. */
static bool refuses(uint32_t call, int32_t status)
{
    switch (call < SCRIPT_N_CALLS ? script_calls[call].refusal
                                  : SCRIPT_IS_INVALID) {
    case SCRIPT_IS_OF_FILES:
        return status == FSDP_ERR_IO || status == FSDP_ERR_FORMAT;
    case SCRIPT_IS_A_MISMATCH:
        return status == FSDP_ERR_MISMATCH;
    case SCRIPT_IS_UNSUPPORTED:
        return status == FSDP_ERR_INVALID || status == FSDP_ERR_UNSUPPORTED;
    default:
        return status == FSDP_ERR_INVALID;
    }
}

/* Answers with this name, SCRIPT_N_CALLS being to what is asked by itself. */
static bool answers_to(const struct record_rank *rank, const char *name,
                       uint32_t call, uint32_t times, struct finding at,
                       struct finding *f)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < rank->n_answers; i++) {
        const struct record_answer *got = &rank->answer[i];

        if (strcmp(got->name, name) != 0) {
            continue;
        }
        n++;
        if (!refuses(call, got->status)) {
            return finding_note(f, at, "%s, answer %u: %d (%s)", name, n,
                                got->status, fsdp_status_text(got->status));
        }
    }
    return n == times ||
           finding_note(f, at, "%s: %u answers, %u calls", name, n, times);
}

static bool answers_of_rank(const struct asked *asked,
                            const struct record_rank *rank, uint32_t k,
                            struct finding *f)
{
    const struct finding at = finding_at("answers", -1, -1, k);

    for (uint32_t c = 0; c < SCRIPT_N_CALLS; c++) {
        if (asked->times[c] != LET_OFF &&
            !answers_to(rank, script_calls[c].name, c, asked->times[c], at,
                        f)) {
            return false;
        }
    }
    return answers_to(rank, "param-after-reshard-all", SCRIPT_N_CALLS,
                      asked->reshards, at, f);
}

/* An engine that claims what a call offers may take it. */
static bool may_take(const struct record *r, uint32_t call)
{
    const char *claim = script_calls[call].allowed_by;

    return claim && record_claims(r, claim);
}

static bool answers_hold(const struct expect *e, const struct record *r,
                         struct finding *f)
{
    struct asked asked;

    count_asked(e, &asked);
    for (uint32_t c = 0; c < SCRIPT_N_CALLS; c++) {
        if (may_take(r, c)) {
            asked.times[c] = LET_OFF;
        }
    }
    for (uint32_t k = 0; k < e->c->ranks; k++) {
        const struct record_rank *rank = compare_rank(r, k);

        if (!rank) {
            return finding_text(f, finding_at("answers", -1, -1, k),
                                "this rank's files are missing");
        }
        if (!answers_of_rank(&asked, rank, k, f)) {
            return false;
        }
    }
    return true;
}

static bool is_owed(const struct record *r, const char *name)
{
    bool owed = true;

    for (uint32_t c = 0; c < SCRIPT_N_CALLS; c++) {
        owed = owed &&
               !(may_take(r, c) && strcmp(script_calls[c].name, name) == 0);
    }
    return owed;
}

static bool answers_spoil(const struct expect *e, struct record *r)
{
    struct record_rank *rank = compare_rank_to_spoil(r, r->n_ranks - 1);

    (void)e;
    for (uint32_t i = 0; rank && i < rank->n_answers; i++) {
        struct record_answer *got = &rank->answer[i];

        if (got->status == FSDP_ERR_INVALID && is_owed(r, got->name)) {
            got->status = FSDP_OK;
            return true;
        }
    }
    return false;
}

/* ---- script.collectives ------------------------------------------------- */

/* How often it is among them. */
static uint32_t times(const struct record_sequence *s,
                      const struct record_collective *c)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->n; i++) {
        n += compare_same_collective(&s->c[i], c);
    }
    return n;
}

/* In any order all of `least`, and beyond it nothing but what `more` has, at
 * most as often. */
static bool same_in_any_order(const struct record_sequence *least,
                              const struct record_sequence *more,
                              const struct record_sequence *got)
{
    for (uint32_t i = 0; i < least->n; i++) {
        if (times(got, &least->c[i]) < times(least, &least->c[i])) {
            return false;
        }
    }
    for (uint32_t i = 0; i < got->n; i++) {
        const struct record_collective *c = &got->c[i];

        if (times(got, c) > times(least, c) + times(more, c)) {
            return false;
        }
    }
    return true;
}

static bool runs_ahead(const struct expect *e)
{
    return e->c->prefetch_forward != 0 || e->c->prefetch_backward != 0 ||
           e->c->reduces_in_flight != 0;
}

/* Running ahead changes the order, and what a cancelled pass may have gathered
 * for units that were not waited for comes on top. */
static bool same_collectives(const struct expect *e,
                             const struct expect_event *v,
                             const struct record_sequence *got)
{
    bool same = got->n == v->seen.n;

    if (runs_ahead(e)) {
        return same_in_any_order(&v->seen, &v->ahead, got);
    }
    for (uint32_t i = 0; same && i < got->n; i++) {
        same = compare_same_collective(&got->c[i], &v->seen.c[i]);
    }
    return same;
}

static bool other_collectives(const struct expect *e,
                              const struct expect_event *v,
                              const struct record_sequence *got,
                              struct finding at, struct finding *f)
{
    char is[COMPARE_WORDS_BYTES] = "missing";
    char should[COMPARE_WORDS_BYTES] = "none";
    uint32_t i = 0;

    while (i < got->n && i < v->seen.n &&
           compare_same_collective(&got->c[i], &v->seen.c[i])) {
        i++;
    }
    if (i < got->n) {
        compare_collective_words(e, &got->c[i], is);
        at.unit = got->c[i].unit == FSDP_NO_UNIT ? -1 : (int64_t)got->c[i].unit;
    }
    if (i < v->seen.n) {
        compare_collective_words(e, &v->seen.c[i], should);
        at.unit = v->seen.c[i].unit;
    }
    (void)finding_note(f, at,
                       "collective %u of the action is %s, expected %s; %u "
                       "collectives, expected %u",
                       i + 1, is, should, got->n, v->seen.n);
    return tell_action(e, (uint32_t)at.step, f);
}

/* What is saved and loaded communicates as an engine likes. */
static bool collectives_in_action(const struct expect *e,
                                  const struct record_sequence *got,
                                  struct finding at, struct finding *f)
{
    const struct expect_event *v = &e->event[at.step];

    return same_collectives(e, v, got) || other_collectives(e, v, got, at, f);
}

static bool communicates(const struct expect *e)
{
    bool any = false;

    for (uint32_t i = 0; is_script(e) && i < e->n_events; i++) {
        any = any || e->event[i].seen.n > 0;
    }
    return any;
}

static bool collectives_spoil(const struct expect *e, struct record *r)
{
    struct record_rank *rank = compare_rank_to_spoil(r, r->n_ranks - 1);

    for (uint32_t i = 0; rank && i < rank->n_steps && i < e->n_events; i++) {
        struct record_sequence *s = &rank->sequence[rank->step_sequence[i]];

        if (s->n > 0) {
            s->c[s->n - 1].n++;
            return true;
        }
    }
    return false;
}

/* ---- script.rest, script.peak ------------------------------------------- */

static bool is_strict(const struct expect *e)
{
    return is_script(e) && !runs_ahead(e);
}

/* What is staged is the engine's own while a save is under way, and what is
 * live for a pass that computes is not the engine's. */
static bool may_differ(uint32_t kind, bool saving)
{
    return kind == FSDP_ACTIVATION || (kind == FSDP_STAGING && saving);
}

static bool rest_of_rank(const struct expect *e, const struct record_rank *rank,
                         uint32_t k, struct finding *f)
{
    bool saving = false;

    for (uint32_t i = 0; i < e->n_events; i++) {
        struct finding at = finding_at("memory", i, -1, k);
        const uint32_t verb = e->event[i].action->verb;

        saving = verb == SCRIPT_SAVE || (saving && verb != SCRIPT_WAIT);
        if (rank->memory.after_step == NULL || i >= rank->n_steps) {
            return finding_text(f, at,
                                "memory after this action is not recorded");
        }
        for (uint32_t kind = 0; kind < FSDP_N_KINDS; kind++) {
            const uint64_t got = rank->memory.after_step[i].live[kind];

            if (!may_differ(kind, saving) && got != e->event[i].rest[kind]) {
                at.stage = compare_kind_of_bytes(kind);
                (void)finding_bytes(f, at, got, e->event[i].rest[kind],
                                    "live behind this action");
                return tell_action(e, i, f);
            }
        }
    }
    return true;
}

static bool rest_spoil(const struct expect *e, struct record_rank *rank)
{
    (void)e;
    if (rank->memory.after_step == NULL || rank->n_steps == 0) {
        return false;
    }
    rank->memory.after_step[rank->n_steps - 1].live[FSDP_GRAD_SHARD]++;
    return true;
}

/* What saves and loads needs room of its own. */
static bool is_measured(const struct expect *e)
{
    for (uint32_t i = 0; is_script(e) && i < e->n_events; i++) {
        const uint32_t verb = e->event[i].action->verb;

        if (verb == SCRIPT_SAVE || verb == SCRIPT_LOAD) {
            return false;
        }
    }
    return is_strict(e);
}

static bool peak_of_rank(const struct expect *e, const struct record_rank *rank,
                         uint32_t k, struct finding *f)
{
    for (uint32_t peak = 0; peak < COMPARE_N_PEAKS; peak++) {
        if (!compare_peak(e, rank, k, peak, f)) {
            return false;
        }
    }
    return true;
}

static bool peak_spoil(const struct expect *e, struct record *r)
{
    return compare_spoil_peak(e, r, COMPARE_PEAK_TOTAL);
}

const struct requirement script_requirements[] = {
    {.id = "script.answers",
     .text = "Wherever a script makes a call that must be refused, it is "
             "refused, as often as it is made.",
     .since = "1.1",
     .must = 1,
     .level = LEVEL_ERRORS,
     .general = true,
     .needs = "run.completes",
     .applies = is_refused,
     .holds = answers_hold,
     .spoil = answers_spoil},
    {.id = "script.collectives",
     .text = "Each action of a script communicates what the oracle says, in "
             "order where nothing runs ahead.",
     .since = "1.1",
     .must = 1,
     .level = LEVEL_COMM,
     .general = true,
     .needs = "run.shows-every-step",
     .applies = communicates,
     .check = &check_each_step,
     .step = {.holds = collectives_in_action},
     .spoil = collectives_spoil},
    {.id = "script.losses",
     .text = "The folded loss of each pass of a script equals the unsharded "
             "run's, bit for bit.",
     .since = "1.1",
     .must = 1,
     .level = LEVEL_STEP,
     .general = true,
     .needs = "run.shows-every-step script.values",
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
     .needs = "run.shows-every-step",
     .claim = "clip",
     .profile = PROFILE_BITS,
     .applies = clips,
     .check = &check_each_rank,
     .rank = {norms_of_rank, norms_spoil}},
    {.id = "script.peak",
     .text = "Without running ahead the most bytes that are live at once in a "
             "script are those of the oracle.",
     .since = "1.1",
     .must = 1,
     .level = LEVEL_MEMORY,
     .general = true,
     .needs = "script.rest",
     .claim = "strict-memory",
     .applies = is_measured,
     .check = &check_each_rank,
     .spoil = peak_spoil,
     .rank = {.holds = peak_of_rank}},
    {.id = "script.rest",
     .text = "Without running ahead exactly those bytes of each kind are live "
             "behind each action of a script that the oracle says.",
     .since = "1.1",
     .must = 1,
     .level = LEVEL_MEMORY,
     .general = true,
     .needs = "run.shows-every-step",
     .claim = "strict-memory",
     .applies = is_strict,
     .check = &check_each_rank,
     .rank = {rest_of_rank, rest_spoil}},
    {.id = "script.values",
     .text = "Wherever a script looks, weights, states and gradients are those "
             "of the unsharded run, bit for bit.",
     .since = "1.1",
     .must = 1,
     .level = LEVEL_STEP,
     .general = true,
     .needs = "run.shows-every-step script.collectives script.norms",
     .profile = PROFILE_BITS,
     .applies = looks,
     .holds = values_hold,
     .spoil = values_spoil},
    {0},
};
