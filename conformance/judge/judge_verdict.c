/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_verdict.c - turns outcomes into counts, levels and one verdict. Nothing
 * but pass counts as pass, and a run of no cases is INCOMPLETE. This file also
 * says how the ranks of a case ended, and, if one crashed or hung, what each
 * was last seen doing; and how many ranks of a sampled world show whole
 * parameters.
 */
#include "cases/case_claims.h"
#include "judge/judge_adapter.h"
#include "judge/judge_internal.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- How ranks ended ----------------------------------------------------- */

static void append(char *text, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void append(char *text, size_t bytes, const char *format, ...)
{
    size_t used = strlen(text);
    va_list list;

    va_start(list, format);
    vsnprintf(text + used, bytes - used, format, list);
    va_end(list);
}

/* "in reduce-scatter 12 of unit 3", counted from 1. */
static void tell_last(const struct record_rank *rank, char *text, size_t bytes)
{
    const char *kind = record_collective_name(rank->last_kind);

    if (rank->n_collectives == 0) {
        append(text, bytes, " before any collective");
        return;
    }
    append(text, bytes, " %s %s %llu", rank->in_collective ? "in" : "after",
           kind ? kind : "an unknown collective",
           (unsigned long long)rank->n_collectives);
    if (rank->last_unit != FSDP_NO_UNIT) {
        append(text, bytes, " of unit %u", rank->last_unit);
    }
}

/* The name of a signal of which wrong engines die; "" for others. */
static const char *signal_name(uint32_t number)
{
    switch (number) {
    case SIGILL:
        return " (SIGILL)";
    case SIGABRT:
        return " (SIGABRT)";
    case SIGBUS:
        return " (SIGBUS)";
    case SIGFPE:
        return " (SIGFPE)";
    case SIGKILL:
        return " (SIGKILL)";
    case SIGSEGV:
        return " (SIGSEGV)";
    case SIGTERM:
        return " (SIGTERM)";
    default:
        return "";
    }
}

static void tell_end(uint32_t i, const struct record_rank *rank, char *text,
                     size_t bytes)
{
    append(text, bytes, "%srank %u", text[0] != '\0' ? "; " : "", i);
    switch (rank->end) {
    case WORLD_SIGNALLED:
        append(text, bytes, " was killed by signal %u%s", rank->signal,
               signal_name(rank->signal));
        break;
    case WORLD_EXITED:
        append(text, bytes, " left with exit(%d)", rank->exit_status);
        break;
    case WORLD_TIMED_OUT:
        append(text, bytes, " made no progress");
        break;
    default:
        append(text, bytes, " returned \"%s\"",
               fsdp_status_text(rank->status != FSDP_OK ? rank->status
                                                        : rank->exit_status));
        break;
    }
    tell_last(rank, text, bytes);
}

/* A crash causes the hang that it leaves behind, never the reverse. */
static uint32_t outcome_of(const struct record_rank *rank)
{
    switch (rank->end) {
    case WORLD_RETURNED:
        return JUDGE_PASS;
    case WORLD_TIMED_OUT:
        return JUDGE_TIMEOUT;
    default:
        return JUDGE_ERROR;
    }
}

bool judge_killed_from_outside(const struct record *r)
{
    for (uint32_t i = 0; i < r->n_ranks; i++) {
        if (r->rank[i].end == WORLD_SIGNALLED && r->rank[i].signal == SIGKILL) {
            return true;
        }
    }
    return false;
}

void judge_ends(struct judge_view *v)
{
    const struct record *r = v->record;
    char *text = v->summary->reason;
    size_t bytes = sizeof(v->summary->reason);

    v->ended = JUDGE_PASS;
    for (uint32_t i = 0; i < r->n_ranks; i++) {
        uint32_t outcome = outcome_of(&r->rank[i]);

        if (outcome == JUDGE_ERROR || v->ended == JUDGE_PASS) {
            v->ended = outcome != JUDGE_PASS ? outcome : v->ended;
        }
    }
    if (v->ended == JUDGE_PASS) {
        return;
    }
    /* Ranks that ended badly come first, because the text is cut when it is
     * full. */
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < r->n_ranks; i++) {
            if ((outcome_of(&r->rank[i]) == v->ended) == (pass == 0)) {
                tell_end(i, &r->rank[i], text, bytes);
            }
        }
    }
    snprintf(v->ended_note, sizeof(v->ended_note), "%.319s", text);
}

/* ---- What a record lacks ------------------------------------------------- */

void judge_note_sample(struct judge_result *out, const struct record *r)
{
    const uint32_t n = record_n_sampled(r);

    if (n < r->n_ranks && r->n_ranks > out->sampled.of) {
        out->sampled.ranks = n;
        out->sampled.of = r->n_ranks;
    }
}

/* How many collectives of a rank were carried. */
static uint64_t carried(const struct record_account *a)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < a->carried.n_rows && i < RECORD_TRAFFIC_ROWS;
         i++) {
        n += a->carried.row[i].calls < UINT32_MAX ? a->carried.row[i].calls
                                                  : UINT32_MAX;
    }
    return n < UINT32_MAX ? n : UINT32_MAX;
}

void judge_note_followed(struct judge_result *out, const struct record *r)
{
    bool more = false;

    for (uint32_t k = 0; k < r->n_ranks; k++) {
        const struct record_account *const a = &r->rank[k].account;
        const uint64_t n = carried(a);

        if (a->n_payloads > 0 && n > a->n_payloads) {
            more = true;
            if (n > out->followed.of) {
                out->followed.known = a->n_payloads;
                out->followed.of = (uint32_t)n;
            }
        }
    }
    out->followed.cases += more;
}

bool judge_is_unasked(struct judge_result *out, const struct requirement *q,
                      const struct record *r)
{
    char *const names = out->sampled.unasked;
    const size_t n = strlen(names);

    if (!q->across || record_n_sampled(r) == r->n_ranks) {
        return false;
    }
    if (!strstr(names, q->id)) {
        snprintf(names + n, sizeof(out->sampled.unasked) - n, "%s%s",
                 n > 0 ? " " : "", q->id);
    }
    return true;
}

/* ---- A verdict ----------------------------------------------------------- */

static void count_cases(struct judge_result *r)
{
    r->not_claimed = 0;
    r->executed = 0;
    for (uint32_t i = 0; i < r->n_cases; i++) {
        switch (r->cases[i].outcome) {
        case JUDGE_NOT_CLAIMED:
            r->not_claimed++;
            break;
        case JUDGE_PASS:
        case JUDGE_ERROR:
        case JUDGE_TIMEOUT:
            r->executed++;
            break;
        default:
            break;
        }
    }
    r->expected = r->n_cases - r->not_claimed;
}

static void count_items(struct judge_result *r)
{
    memset(r->count, 0, sizeof(r->count));
    memset(r->level, 0, sizeof(r->level));
    for (uint32_t i = 0; i < r->n_cases; i++) {
        for (uint32_t q = 0; q < r->n_requirements; q++) {
            uint32_t outcome = judge_item_at(r, i, q)->outcome;
            const struct requirement *requirement = r->requirement[q];

            if (!r->reported[q]) {
                continue;
            }
            r->count[outcome]++;
            if (requirement->must != 0 && requirement->level < N_LEVELS) {
                r->level[requirement->level].count[outcome]++;
            }
        }
    }
}

/* A level of which nothing was asked neither helps nor hinders. */
static void find_highest_level(struct judge_result *r)
{
    r->highest_level = -1;
    for (uint32_t l = 0; l < N_LEVELS; l++) {
        const uint32_t *n = r->level[l].count;

        if (n[JUDGE_FAIL] + n[JUDGE_ERROR] + n[JUDGE_TIMEOUT] +
                n[JUDGE_BLOCKED] + n[JUDGE_SKIP] + n[JUDGE_INCOMPLETE] >
            0) {
            return;
        }
        if (n[JUDGE_PASS] > 0) {
            r->highest_level = (int32_t)l;
        }
    }
}

/* Whether another claim stands in for a claim of the core: the other layout,
 * or, for an adapter, a fold in any order. */
static bool has_other(const struct judge_result *r, const char *claim)
{
    if (strcmp(claim, "flat") == 0) {
        return judge_claims(r, "per-parameter");
    }
    return strcmp(claim, "fold-rank") == 0 && judge_claims(r, "fold-any") &&
           record_world_is_adapter(r->world);
}

static const char *unclaimed_core(const struct judge_result *r)
{
    for (const struct claim *q = known_claims; q->name; q++) {
        if (q->group == CLAIM_CORE && !judge_claims(r, q->name) &&
            !has_other(r, q->name)) {
            return q->name;
        }
    }
    return NULL;
}

static uint32_t sum(const struct judge_result *r, uint32_t outcome)
{
    uint32_t n = 0;

    for (uint32_t l = 0; l < N_LEVELS; l++) {
        n += r->level[l].count[outcome];
    }
    return n;
}

bool judge_is_selection(const struct judge_result *r)
{
    for (uint32_t q = 0; q < r->n_requirements; q++) {
        if (!r->reported[q]) {
            return true;
        }
    }
    return r->foreign || r->selected != r->manifest || r->sampled.of > 0;
}

/* Whether all reported items that could be judged passed, SHOULDs included. */
static bool all_passed(const struct judge_result *r)
{
    return r->count[JUDGE_PASS] > 0 && r->count[JUDGE_FAIL] == 0 &&
           r->count[JUDGE_ERROR] == 0 && r->count[JUDGE_TIMEOUT] == 0 &&
           r->count[JUDGE_BLOCKED] == 0 && r->count[JUDGE_INCOMPLETE] == 0 &&
           r->count[JUDGE_SKIP] == 0;
}

static void say_selection(struct judge_result *r)
{
    const char *passed = all_passed(r) ? "; all of it passed" : "";
    char sampled[64] = "";
    uint32_t reported = 0;

    for (uint32_t q = 0; q < r->n_requirements; q++) {
        reported += r->reported[q] ? 1 : 0;
    }
    if (r->sampled.of > 0) {
        snprintf(sampled, sizeof(sampled),
                 ", whole parameters of %u of %u ranks", r->sampled.ranks,
                 r->sampled.of);
    }
    if (r->foreign) {
        snprintf(r->reason, sizeof(r->reason),
                 "%u cases that are not the manifest's%s%s", r->selected,
                 sampled, passed);
    } else if (r->selected != r->manifest || reported == r->n_requirements) {
        snprintf(r->reason, sizeof(r->reason),
                 "a selection of %u of %u cases%s%s", r->selected, r->manifest,
                 sampled, passed);
    } else {
        snprintf(r->reason, sizeof(r->reason),
                 "a selection of %u of %u requirements%s%s", reported,
                 r->n_requirements, sampled, passed);
    }
}

static void say_stopped(struct judge_result *r)
{
    char more[48] = "";

    if (r->not_judged > 0) {
        snprintf(more, sizeof(more), ", %u were not judged", r->not_judged);
    }
    snprintf(r->reason, sizeof(r->reason), "%s: %u of %u cases were not run%s",
             r->stopped, r->not_run, r->n_cases, more);
}

/* Whether there is no verdict, with the reason in r->reason. False: nothing
 * keeps the verdict from being CONFORMANT. */
static bool is_undecided(struct judge_result *r)
{
    const char *claim = unclaimed_core(r);
    char *why = r->reason;
    size_t bytes = sizeof(r->reason);

    if (r->stopped[0] != '\0') {
        say_stopped(r);
    } else if (r->executed == 0 || r->count[JUDGE_PASS] == 0) {
        snprintf(why, bytes, "nothing was run that passed");
    } else if (r->executed != r->expected) {
        snprintf(why, bytes, "%u of %u cases have a record", r->executed,
                 r->expected);
    } else if (sum(r, JUDGE_INCOMPLETE) + sum(r, JUDGE_SKIP) +
                   sum(r, JUDGE_BLOCKED) >
               0) {
        snprintf(why, bytes, "%u incomplete, %u skipped, %u blocked",
                 sum(r, JUDGE_INCOMPLETE), sum(r, JUDGE_SKIP),
                 sum(r, JUDGE_BLOCKED));
    } else if (claim) {
        snprintf(why, bytes, "the engine does not claim %s", claim);
    } else if (judge_is_selection(r)) {
        say_selection(r);
    } else {
        return false;
    }
    return true;
}

/* Takes drawn scripts into account: one that fails makes the verdict
 * NON_CONFORMANT. */
static void conclude_drawn(struct judge_result *r)
{
    const struct judge_drawn *d = &r->drawn;
    char *why = r->reason;
    size_t bytes = sizeof(r->reason);

    if (d->failed > 0) {
        const size_t n = r->stopped[0] != '\0' ? strlen(why) : 0;

        r->verdict = JUDGE_NON_CONFORMANT;
        snprintf(why + n, bytes - n, "%s%u of %u drawn scripts fail: %.159s",
                 n > 0 ? "; " : "", d->failed, d->played, d->first);
    } else if (r->verdict == JUDGE_CONFORMANT && d->incomplete) {
        r->verdict = JUDGE_UNDECIDED;
        snprintf(why, bytes, "drawn scripts without a verdict");
    } else if (r->verdict == JUDGE_CONFORMANT && d->wanted && d->played == 0) {
        snprintf(why, bytes, "named scripts only");
    }
}

void judge_conclude(struct judge_result *r)
{
    count_cases(r);
    count_items(r);
    find_highest_level(r);
    if (sum(r, JUDGE_FAIL) + sum(r, JUDGE_ERROR) + sum(r, JUDGE_TIMEOUT) > 0) {
        r->verdict = JUDGE_NON_CONFORMANT;
        if (r->stopped[0] != '\0') {
            say_stopped(r);
        }
    } else if (r->abandoned || is_undecided(r)) {
        r->verdict = JUDGE_UNDECIDED; /* abandoned: judge_prove said why */
    } else {
        r->verdict = JUDGE_CONFORMANT;
    }
    conclude_drawn(r);
}

bool judge_is_unproved(const struct judge_result *r, uint32_t q)
{
    if (q >= r->n_requirements || r->n_proofs[q] > 0) {
        return false;
    }
    for (uint32_t i = 0; i < r->n_cases; i++) {
        if (judge_item_at(r, i, q)->outcome == JUDGE_PASS) {
            return true;
        }
    }
    return false;
}
