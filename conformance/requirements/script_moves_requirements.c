/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_moves_requirements.c - what each action of a script communicates, and
 * what it leaves live, is what the oracle says, action by action.
 */
#include "requirements/families.h"
#include "requirements/script_checks.h"

#include "judge/compare/compare_checks.h"
#include "judge/compare/compare_memory.h"

#include <string.h>

static bool is_script(const struct expect *e)
{
    return case_is_script(e->c);
}

/* ---- script.collectives ------------------------------------------------- */

/* How often s has a collective like c. */
static uint32_t times(const struct expect *e, const struct record_sequence *s,
                      const struct record_collective *c)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->n; i++) {
        n += compare_as_asked(e, &s->c[i], c);
    }
    return n;
}

/* Whether `got` has, in any order, all collectives of `least`, and beyond them
 * only those of `more`, each at most as often as there. */
static bool same_in_any_order(const struct expect *e,
                              const struct record_sequence *least,
                              const struct record_sequence *more,
                              const struct record_sequence *got)
{
    for (uint32_t i = 0; i < least->n; i++) {
        if (times(e, got, &least->c[i]) < times(e, least, &least->c[i])) {
            return false;
        }
    }
    for (uint32_t i = 0; i < got->n; i++) {
        const struct record_collective *c = &got->c[i];

        if (times(e, got, c) > times(e, least, c) + times(e, more, c)) {
            return false;
        }
    }
    return true;
}

/* Whether the engine may run ahead; engines with an adapter do so unasked. */
static bool runs_ahead(const struct expect *e)
{
    return e->profile == EXPECT_OWN || e->c->prefetch_forward != 0 ||
           e->c->prefetch_backward != 0 || e->c->reduces_in_flight != 0;
}

/* Running ahead changes the order; and a cancelled pass may have gathered units
 * in addition that were not waited for. */
static bool same_collectives(const struct expect *e,
                             const struct expect_event *v,
                             const struct record_sequence *got)
{
    bool same = got->n == v->seen.n;

    if (runs_ahead(e)) {
        return same_in_any_order(e, &v->seen, &v->ahead, got);
    }
    for (uint32_t i = 0; same && i < got->n; i++) {
        same = compare_same_collective(&got->c[i], &v->seen.c[i]);
    }
    return same;
}

/* Reports, whatever the order, the first collective that is there too often or
 * too seldom. */
static bool other_times(const struct expect *e, const struct expect_event *v,
                        const struct record_sequence *got, struct finding at,
                        struct finding *f)
{
    const struct record_sequence *const in[] = {&v->seen, got};

    for (uint32_t k = 0; k < 2; k++) {
        for (uint32_t i = 0; i < in[k]->n; i++) {
            const struct record_collective *c = &in[k]->c[i];
            const uint32_t is = times(e, got, c);
            const uint32_t should = times(e, &v->seen, c);
            char words[COMPARE_WORDS_BYTES];

            if (is != should) {
                compare_collective_words(e, c, words);
                at.unit = c->unit == FSDP_NO_UNIT ? -1 : (int64_t)c->unit;
                (void)finding_note(f, at, "%s: %u of them, expected %u", words,
                                   is, should);
                return script_action_tell(e, (uint32_t)at.step, f);
            }
        }
    }
    return script_action_tell(e, (uint32_t)at.step, f);
}

/* What distinguishes two collectives whose texts are the same. */
static const char *other_in(const struct record_collective *got,
                            const struct record_collective *wanted)
{
    return got->dim != wanted->dim       ? " over another dimension"
           : got->dtype != wanted->dtype ? " of another dtype"
           : got->fold != wanted->fold   ? " with another fold"
           : got->root != wanted->root   ? " from another root"
                                         : " of another number of elements";
}

static bool other_collectives(const struct expect *e,
                              const struct expect_event *v,
                              const struct record_sequence *got,
                              struct finding at, struct finding *f)
{
    char is[COMPARE_WORDS_BYTES] = "missing";
    char should[COMPARE_WORDS_BYTES] = "none";
    const char *other = "";
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
    if (strcmp(is, should) == 0) {
        other = other_in(&got->c[i], &v->seen.c[i]);
    }
    (void)finding_note(f, at,
                       "collective %u of the action is %s%s, expected %s; %u "
                       "collectives, expected %u",
                       i + 1, is, other, should, got->n, v->seen.n);
    return script_action_tell(e, (uint32_t)at.step, f);
}

/* Whether values are sent to rank 0 alone, or by it: the engine is free in how
 * (summon.sent-once, send.once judge that). */
static bool sends_alone(const struct script_action *a)
{
    return (a->verb == SCRIPT_SUMMON_SOME && a->on_rank0) ||
           a->verb == SCRIPT_SEND;
}

/* In saves and loads the engine is free in how it communicates. */
static bool collectives_in_action(const struct expect *e,
                                  const struct record_sequence *got,
                                  struct finding at, struct finding *f)
{
    const struct expect_event *v = &e->event[at.step];

    return sends_alone(v->action) || same_collectives(e, v, got) ||
           (e->profile == EXPECT_OWN ? other_times
                                     : other_collectives)(e, v, got, at, f);
}

static bool communicates(const struct expect *e)
{
    bool any = false;

    for (uint32_t i = 0; is_script(e) && i < e->n_events; i++) {
        any = any || e->event[i].seen.n > 0;
    }
    return any;
}

static bool is_told(const struct expect *e, uint32_t i,
                    const struct record_collective *c, uint32_t of)
{
    (void)c;
    (void)of;
    return !sends_alone(script_at(e, i));
}

static bool collectives_spoil(const struct expect *e, struct record *r)
{
    struct record_collective *c = script_find_collective(e, r, is_told, 0);

    if (c) {
        c->n++;
    }
    return c != NULL;
}

/* ---- script.rest, script.peak ------------------------------------------- */

static bool is_strict(const struct expect *e)
{
    return is_script(e) && !runs_ahead(e);
}

/* Whether live bytes of this kind are not judged: activations are not the
 * engine's, and while a save is under way staging is the engine's own
 * choice. */
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
        if (!rank->memory.after_step || i >= rank->n_steps) {
            return finding_text(f, at,
                                "memory after this action is not recorded");
        }
        for (uint32_t kind = 0; kind < RECORD_N_KINDS; kind++) {
            const uint64_t got = rank->memory.after_step[i].live[kind];
            const uint64_t want =
                expect_rest_of(expect_at(e, i), k, kind, e->event[i].rest);

            if (!may_differ(kind, saving) && got != want) {
                at.stage = compare_kind_of_bytes(kind);
                (void)finding_bytes(f, at, got, want,
                                    "live behind this action");
                return script_action_tell(e, i, f);
            }
        }
    }
    return true;
}

static bool rest_spoil(const struct expect *e, struct record_rank *rank)
{
    (void)e;
    if (!rank->memory.after_step || rank->n_steps == 0) {
        return false;
    }
    rank->memory.after_step[rank->n_steps - 1].live[FSDP_GRAD_SHARD]++;
    return true;
}

/* Saves and loads need additional memory, and so do actions that move states,
 * and those in which rank 0 sends values or is sent them. */
static bool is_measured(const struct expect *e)
{
    for (uint32_t i = 0; is_script(e) && i < e->n_events; i++) {
        const uint32_t verb = e->event[i].action->verb;

        if (verb == SCRIPT_SAVE || verb == SCRIPT_LOAD ||
            verb == SCRIPT_FREEZE || verb == SCRIPT_THAW ||
            sends_alone(e->event[i].action)) {
            return false;
        }
    }
    return is_strict(e) && !e->script.rank0;
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

const struct requirement script_moves_requirements[] = {
    {.since = "1.1",
     .must = 1,
     .level = LEVEL_MEMORY,
     .check = &check_each_rank},
    {.id = "script.collectives",
     .text = "Each action of a script communicates what the oracle says, in "
             "order where nothing runs ahead.",
     .level = LEVEL_COMM,
     .general = true,
     .needs = "run.shows-every-step control.unit-sync control.all-reduce "
              "control.reshard-forward control.reshard-backward "
              "control.fresh-after-step control.unshard-ahead "
              "control.next-begin thaw.reduces mixed.after-frozen-forward "
              "summon.one-unit",
     .applies = communicates,
     .check = &check_each_step,
     .step = {.holds = collectives_in_action},
     .spoil = collectives_spoil},
    {.id = "script.peak",
     .text = "Without running ahead the most bytes that are live at once in a "
             "script are those of the oracle.",
     .general = true,
     .needs = "script.rest control.reshard-forward "
              "step-in-backward.gradient-peak deferred.peak summon.one-unit",
     .claim = "strict-memory",
     .applies = is_measured,
     .spoil = peak_spoil,
     .rank = {.holds = peak_of_rank}},
    {.id = "script.rest",
     .text = "Without running ahead exactly those bytes of each kind are live "
             "behind each action of a script that the oracle says.",
     .general = true,
     .needs = "run.shows-every-step control.unit-sync control.all-reduce "
              "control.reshard thaw.states-rest",
     .claim = "strict-memory",
     .applies = is_strict,
     .rank = {rest_of_rank, rest_spoil}},
    {0},
};
