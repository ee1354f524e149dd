/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_answers_requirements.c - the answers to calls of a script that must be
 * refused.
 */
#include "requirements/families.h"

#include "judge/compare/compare_checks.h"
#include "requirements/script_action.h"

#include <string.h>

enum {
    LET_OFF = UINT32_MAX >> 1 /* instead of a number: need not be refused */
};

static const char behind_reshards[] = "param-after-reshard-all";

/* How often each wrong call is made. */
struct asked {
    const struct expect *e;
    uint32_t times[SCRIPT_N_CALLS];
    uint32_t reshards; /* each is followed by asking for a parameter */
    bool lacks;        /* a checkpoint may lack states, or have other dtypes */
};

/* Whether a checkpoint may lack states, or have other dtypes. Then a damaged
 * one may be refused as INVALID for that, before its bits are looked at. */
static bool may_lack(const struct script_action *a)
{
    return a->verb == SCRIPT_FREEZE || a->verb == SCRIPT_THAW ||
           (a->verb == SCRIPT_SAVE && (a->what != 0 || a->dtype != 0));
}

static void count_asked(const struct expect *e, struct asked *out)
{
    memset(out, 0, sizeof(*out));
    out->e = e;
    for (uint32_t i = 0; i < e->n_events; i++) {
        const struct script_action *a = e->event[i].action;

        out->reshards += a->verb == SCRIPT_SUMMON ||
                         a->verb == SCRIPT_SUMMON_SOME ||
                         a->verb == SCRIPT_RESHARD;
        out->lacks = out->lacks || may_lack(a);
        if (a->verb == SCRIPT_WRONG) {
            out->times[a->call]++;
        }
        for (uint32_t k = 0; k < a->n_inside; k++) {
            const struct script_inside *in =
                &e->script.inside[a->first_inside + k];

            if (script_is_wrong(in)) {
                out->times[in->call]++;
            }
        }
    }
}

bool script_action_refuses(const struct expect *e)
{
    struct asked asked;
    uint32_t n = 0;

    if (!case_is_script(e->c)) {
        return false;
    }
    count_asked(e, &asked);
    for (uint32_t c = 0; c < SCRIPT_N_CALLS; c++) {
        n += asked.times[c];
    }
    return n + asked.reshards > 0;
}

/* Whether `status` is the refusal that is due. SCRIPT_N_CALLS stands for a call
 * that is no wrong call of the script, but must be refused as most are. */
static bool refuses(const struct asked *asked, uint32_t call, uint32_t nth,
                    uint32_t k, int32_t status)
{
    if (call == SCRIPT_CALL_DEFERRED_PIECES &&
        script_action_has_pieces(asked->e, nth, k)) {
        return status == FSDP_OK;
    }
    if (call == SCRIPT_CALL_LOAD_DAMAGED && asked->lacks &&
        status == FSDP_ERR_INVALID) {
        return true;
    }
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

/* Judges the answers to a call; SCRIPT_N_CALLS stands for calls that the driver
 * makes by itself. */
static bool answers_to(const struct asked *asked,
                       const struct record_rank *rank, uint32_t call,
                       struct finding at, struct finding *f)
{
    const bool is_call = call < SCRIPT_N_CALLS;
    const char *name = is_call ? script_calls[call].name : behind_reshards;
    const uint32_t times = is_call ? asked->times[call] : asked->reshards;
    uint32_t n = 0;

    for (uint32_t i = 0; i < rank->n_answers; i++) {
        const struct record_answer *got = &rank->answer[i];

        if (strcmp(got->name, name) != 0) {
            continue;
        }
        if (!refuses(asked, call, n++, (uint32_t)at.rank, got->status)) {
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
        if (asked->times[c] != LET_OFF && !answers_to(asked, rank, c, at, f)) {
            return false;
        }
    }
    return answers_to(asked, rank, SCRIPT_N_CALLS, at, f);
}

/* Whether the engine may accept the call, as it claims the capability that the
 * call uses. */
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

/* Other answers belong to other requirements. */
static bool is_looked_at(const struct record *r, const char *name)
{
    const uint32_t call = script_action_call(name);

    return call < SCRIPT_N_CALLS ? !may_take(r, call)
                                 : strcmp(name, behind_reshards) == 0;
}

static bool answers_spoil(const struct expect *e, struct record *r)
{
    struct record_rank *rank = compare_rank_to_spoil(r, r->n_ranks - 1);

    (void)e;
    for (uint32_t i = 0; rank && i < rank->n_answers; i++) {
        struct record_answer *got = &rank->answer[i];

        if (got->status == FSDP_ERR_INVALID && is_looked_at(r, got->name)) {
            got->status = FSDP_OK;
            return true;
        }
    }
    return false;
}

const struct requirement script_answers_requirements[] = {
    {.id = "script.answers",
     .text = "Wherever a script makes a call that must be refused, it is "
             "refused, as often as it is made.",
     .since = "1.1",
     .must = 1,
     .level = LEVEL_ERRORS,
     .general = true,
     .needs =
         "run.completes error.step-scale error.control-in-pass "
         "error.control-arguments error.control-factors "
         "error.control-factor-of-all "
         "error.step-with-partials "
         "error.step-with-unit-pending error.clip-with-partials "
         "error.reshard-disagree error.reshard-in-window "
         "error.by-hand-arguments error.freeze "
         "error.freeze-arguments error.load-without-states "
         "error.step-in-backward error.assign-in-pass "
         "error.assign-range deferred.named error.deferred "
         "error.deferred-unit error.values-disagree error.summon error.send "
         "error.send-lacking error.send-disagree "
         "error.load-renamed error.save-unknown-part "
         "error.save-dtype error.load-parts error.load-rounded",
     .applies = script_action_refuses,
     .holds = answers_hold,
     .spoil = answers_spoil},
    {0},
};
