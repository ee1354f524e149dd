/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summon_requirements.c - parameters that are unsharded to be read, of one
 * unit, or on rank 0 alone: they have the trained values, no other rank gets
 * them, and no more is moved or held than that takes.
 */
#include "requirements/families.h"
#include "requirements/script_checks.h"

#include "judge/compare/compare_checks.h"

#include <string.h>

/* Action i if it is such an action, or NULL. */
static const struct script_action *summon_at(const struct expect *e, uint32_t i)
{
    const struct script_action *a = e->event[i].action;

    return a->verb == SCRIPT_SUMMON_SOME ? a : NULL;
}

static bool wants(const struct script_action *a, uint32_t unit)
{
    return a->unit == FSDP_NO_UNIT || a->unit == unit;
}

static bool any(const struct expect *e,
                bool (*is)(const struct expect *e,
                           const struct script_action *a))
{
    for (uint32_t i = 0; case_is_script(e->c) && i < e->n_events; i++) {
        const struct script_action *a = summon_at(e, i);

        if (a && is(e, a)) {
            return true;
        }
    }
    return false;
}

static bool is_one(const struct expect *e, const struct script_action *a)
{
    (void)e;
    (void)a;
    return true;
}

static bool summons(const struct expect *e)
{
    return any(e, is_one);
}

/* ---- summon.values ------------------------------------------------------- */

static bool values_hold(const struct expect *e, const struct record *r,
                        struct finding *f)
{
    for (uint32_t i = 0; i < e->n_events; i++) {
        const struct script_action *a = summon_at(e, i);

        for (uint32_t k = 0; a && k < (a->on_rank0 ? 1 : e->c->ranks); k++) {
            if (!script_action_shows(e, r, i, k, a->unit, f)) {
                return false;
            }
        }
    }
    return true;
}

static bool values_spoil(const struct expect *e, struct record *r)
{
    for (uint32_t i = 0; i < e->n_events; i++) {
        if (summon_at(e, i) && compare_spoil_step(r, RECORD_SUMMONED, i)) {
            return true;
        }
    }
    return false;
}

/* ---- summon.elsewhere ---------------------------------------------------- */

static const char not_summoned[] = "param-not-summoned";

/* Whether the action shows less than everything on rank k. */
static bool hides(const struct expect *e, const struct script_action *a,
                  uint32_t k)
{
    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        if (expect_is_ignored(e, p) || !wants(a, e->unit_of_parameter[p]) ||
            (a->on_rank0 && k > 0)) {
            return true;
        }
    }
    return false;
}

static bool elsewhere_of_rank(const struct expect *e,
                              const struct record_rank *rank, uint32_t k,
                              struct finding *f)
{
    const struct finding at = finding_at("answers", -1, -1, k);
    uint32_t wanted = 0;
    uint32_t n = 0;

    for (uint32_t i = 0; i < e->n_events; i++) {
        wanted += summon_at(e, i) && hides(e, summon_at(e, i), k);
    }
    for (uint32_t i = 0; i < rank->n_answers; i++) {
        const struct record_answer *got = &rank->answer[i];

        if (strcmp(got->name, not_summoned) != 0) {
            continue;
        }
        n++;
        if (got->status != FSDP_ERR_INVALID) {
            return finding_note(f, at, "%s, answer %u: %d (%s)", not_summoned,
                                n, got->status, fsdp_status_text(got->status));
        }
    }
    return n == wanted || finding_note(f, at, "%s: %u answers, expected %u",
                                       not_summoned, n, wanted);
}

static bool elsewhere_spoil(const struct expect *e, struct record_rank *rank)
{
    (void)e;
    for (uint32_t i = 0; i < rank->n_answers; i++) {
        if (strcmp(rank->answer[i].name, not_summoned) == 0) {
            rank->answer[i].status = FSDP_OK;
            return true;
        }
    }
    return false;
}

/* ---- summon.one-unit ----------------------------------------------------- */

static bool is_gathered(const struct expect *e, const struct script_action *a)
{
    return !a->on_rank0 && e->shards > 1;
}

static bool gathers(const struct expect *e)
{
    return any(e, is_gathered);
}

static bool gathers_one(const struct expect *e,
                        const struct record_sequence *got, struct finding at,
                        struct finding *f)
{
    const struct expect_event *v = &e->event[at.step];

    if (v->action->verb != SCRIPT_SUMMON_SOME || v->action->on_rank0 ||
        (got->n == v->seen.n &&
         (got->n == 0 || compare_as_asked(e, &got->c[0], &v->seen.c[0])))) {
        return true;
    }
    at.unit = v->action->unit;
    (void)finding_note(f, at,
                       "%u collectives of this action, expected %u: the "
                       "unit's all-gather, in float32",
                       got->n, v->seen.n);
    return script_action_tell(e, (uint32_t)at.step, f);
}

/* For spoils: the collectives of the last rank in an action for which `is` is
 * true. */
static struct record_sequence *sent_in(const struct expect *e, struct record *r,
                                       bool (*is)(const struct expect *e,
                                                  const struct script_action *))
{
    const uint32_t of = e->shards > 1 ? e->shards - 1 : 0;
    struct record_rank *rank = compare_rank_to_spoil(r, of);

    for (uint32_t i = 0; rank && i < rank->n_steps && i < e->n_events; i++) {
        struct record_sequence *s = &rank->sequence[rank->step_sequence[i]];

        if (summon_at(e, i) && is(e, summon_at(e, i)) && s->n > 0) {
            return s;
        }
    }
    return NULL;
}

static bool one_spoil(const struct expect *e, struct record *r)
{
    struct record_sequence *s = sent_in(e, r, is_gathered);

    if (s) {
        s->c[0].n++;
    }
    return s != NULL;
}

/* ---- summon.sent-once ---------------------------------------------------- */

static bool is_sent(const struct expect *e, const struct script_action *a)
{
    return a->on_rank0 && e->shards > 1;
}

static bool sends(const struct expect *e)
{
    return any(e, is_sent);
}

/* How many elements of a unit other ranks than 0 own: all but the first chunk,
 * in both layouts. */
static uint64_t others_own(const struct expect *e, uint32_t u)
{
    const struct expect_unit *x = &e->unit[u];

    return x->numel > x->chunk ? x->numel - x->chunk : 0;
}

static bool is_right(const struct script_action *a,
                     const struct record_collective *c)
{
    return c->kind == FSDP_BROADCAST && c->dim == FSDP_DIM_SHARD &&
           c->dtype == FSDP_DTYPE_F32 && c->root > 0 &&
           (c->unit == FSDP_NO_UNIT || wants(a, c->unit));
}

/* Values are sent once, with or without padding. Other replicas take no
 * part. */
static bool sent_once(const struct expect *e, const struct record_sequence *got,
                      struct finding at, struct finding *f)
{
    const struct script_action *a = e->event[at.step].action;
    uint64_t least = 0;
    uint64_t most = 0;
    uint64_t n = 0;

    if (a->verb != SCRIPT_SUMMON_SOME || !a->on_rank0) {
        return true;
    }
    for (uint32_t u = 0; u < e->units->n_units; u++) {
        if (wants(a, u) && (uint64_t)at.rank < e->shards) {
            least += others_own(e, u);
            most += e->unit[u].padded - e->unit[u].chunk;
        }
    }
    for (uint32_t i = 0; i < got->n; i++) {
        if (!is_right(a, &got->c[i])) {
            (void)finding_note(f, at,
                               "collective %u of the action is no broadcast of "
                               "what another rank than 0 owns, in float32, to "
                               "its shard group",
                               i + 1);
            return script_action_tell(e, (uint32_t)at.step, f);
        }
        n += got->c[i].n;
    }
    return (n >= least && n <= most) ||
           finding_count(f, at, n, most, "elements that are sent to rank 0") ||
           script_action_tell(e, (uint32_t)at.step, f);
}

static bool sent_spoil(const struct expect *e, struct record *r)
{
    struct record_sequence *s = sent_in(e, r, is_sent);

    for (uint32_t u = 0; s && u < e->units->n_units; u++) {
        s->c[0].n += e->unit[u].padded;
    }
    return s != NULL;
}

/* ---- summon.peak --------------------------------------------------------- */

/* Whether an action may unshard or stage something by itself. Where values are
 * given or sent that is a unit, which may be more than a tensor. */
static bool stages(uint32_t verb)
{
    return verb == SCRIPT_PASS || verb == SCRIPT_EVAL ||
           verb == SCRIPT_SUMMON || verb == SCRIPT_UNSHARD ||
           verb == SCRIPT_UNSHARD_UNIT || verb == SCRIPT_SAVE ||
           verb == SCRIPT_LOAD || verb == SCRIPT_ASSIGN || verb == SCRIPT_SEND;
}

/* Whether the script unshards or stages nothing but for rank 0. */
static bool only_sends(const struct expect *e)
{
    for (uint32_t i = 0; case_is_script(e->c) && i < e->n_events; i++) {
        const struct script_action *a = summon_at(e, i);

        if (stages(e->event[i].action->verb) || (a && !a->on_rank0)) {
            return false;
        }
    }
    return !e->script.rank0 && sends(e);
}

static uint64_t shown(const struct expect *e, const struct script_action *a)
{
    uint64_t n = 0;

    for (uint32_t u = 0; u < e->units->n_units; u++) {
        n += wants(a, u) ? e->unit[u].whole : 0;
    }
    return n;
}

/* Bytes of shards, and of a tensor; on rank 0 of what it is shown, too. */
static uint64_t most_of(const struct expect *e, uint32_t rank)
{
    uint64_t shards = 0;
    uint64_t tensor = 0;
    uint64_t whole = 0;

    for (uint32_t u = 0; u < e->units->n_units; u++) {
        shards += e->unit[u].chunk;
    }
    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        const uint64_t n = fsdp_numel(e->model, p);

        tensor = n > tensor ? n : tensor;
    }
    for (uint32_t i = 0; rank == 0 && i < e->n_events; i++) {
        const uint64_t n = summon_at(e, i) ? shown(e, summon_at(e, i)) : 0;

        whole = n > whole ? n : whole;
    }
    return (shards + tensor + whole) * sizeof(float);
}

static bool peak_of_rank(const struct expect *e, const struct record_rank *rank,
                         uint32_t k, struct finding *f)
{
    const uint64_t got =
        rank->memory.peak_parameters + rank->memory.peak[FSDP_STAGING];

    return got <= most_of(e, k) ||
           finding_peak(f, finding_at("parameters", -1, -1, k), got,
                        most_of(e, k),
                        "shards, unsharded and staged at once, at the most",
                        &rank->memory);
}

static bool peak_spoil(const struct expect *e, struct record_rank *rank)
{
    rank->memory.peak_parameters = most_of(e, 0) + 1;
    return true;
}

const struct requirement summon_requirements[] = {
    {.since = "1.1", .must = 1, .claim = "summon"},
    {.id = "error.summon",
     .text = "One unit is summoned neither between BEGIN and END nor while all "
             "is unsharded, and a unit that is none is not, by its number: "
             "each is refused as INVALID.",
     .level = LEVEL_ERRORS,
     .needs = "run.completes",
     .check = &check_asked_named,
     .answers = {{"summon-in-pass", FSDP_ERR_INVALID},
                 {"summon-while-open", FSDP_ERR_INVALID},
                 {"summon-unknown-unit", FSDP_ERR_INVALID}}},
    {.id = "summon.elsewhere",
     .text = "What is not summoned, or not on this rank, no parameter shows: "
             "it is refused as INVALID.",
     .level = LEVEL_ERRORS,
     .needs = "run.completes",
     .applies = summons,
     .check = &check_each_rank,
     .rank = {elsewhere_of_rank, elsewhere_spoil}},
    {.id = "summon.one-unit",
     .text = "Summoning one unit gathers that unit, in float32, and "
             "communicates nothing else.",
     .level = LEVEL_COMM,
     .needs = "run.shows-every-step",
     .applies = gathers,
     .check = &check_each_step,
     .step = {.holds = gathers_one},
     .spoil = one_spoil},
    {.id = "summon.peak",
     .text = "While rank 0 is shown the model no other rank has more of it, "
             "besides its shards, than the largest tensor.",
     .level = LEVEL_MEMORY,
     .needs = "run.shows-every-step",
     .applies = only_sends,
     .check = &check_each_rank,
     .rank = {peak_of_rank, peak_spoil}},
    {.id = "summon.sent-once",
     .text = "What rank 0 alone is shown each other rank of the first replica "
             "sends once, as far as it owns it, and no more is communicated.",
     .level = LEVEL_COMM,
     .needs = "run.shows-every-step",
     .applies = sends,
     .check = &check_each_step,
     .step = {.holds = sent_once},
     .spoil = sent_spoil},
    {.id = "summon.values",
     .text = "What is summoned of one unit, or on rank 0 alone, are the "
             "unsharded run's weights in float32, bit for bit.",
     .level = LEVEL_STEP,
     .needs = "run.shows-every-step script.collectives",
     .profile = PROFILE_BITS,
     .applies = summons,
     .holds = values_hold,
     .spoil = values_spoil},
    {0},
};
