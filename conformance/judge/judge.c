/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge.c - judges all cases of a run, one after the other, so that no more
 * than one case's records have to be in memory.
 *
 * Here the checker also proves itself. A requirement that held is shown a copy
 * of the same record with the least damage that it must notice. If the check
 * still holds, or fails without saying why, it is worth nothing on this record,
 * and whether the requirement holds there is open. All other items are judged
 * as before: no record ends the judge.
 */
#include "judge/judge_internal.h"
#include "record/record.h"
#include "record/record_spill.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- A proof ------------------------------------------------------------- */

/* The check that passed proves nothing: the item is INCOMPLETE and says why. So
 * does the run's reason, for the first of these items. */
static int abandon(struct judge *j, const struct judge_view *v, uint32_t q,
                   const char *what, struct judge_item *item)
{
    struct finding f = judge_nowhere();

    if (!j->out->abandoned) {
        j->out->abandoned = true;
        snprintf(j->out->reason, sizeof(j->out->reason),
                 "the check of %s %s (%.100s)", j->out->requirement[q]->id,
                 what, v->summary->id);
    }
    f.form = FINDING_MISSING;
    snprintf(f.note, sizeof(f.note),
             "this check %s, made of this one: whether it holds here "
             "cannot be told",
             what);
    free(item->detail);
    item->outcome = JUDGE_INCOMPLETE;
    return judge_keep(v, &f, item);
}

static bool says_something(const struct finding *f)
{
    return f->note[0] != '\0' ||
           (f->stage && f->form >= FINDING_BITS && f->form <= FINDING_BYTES);
}

static int prove(struct judge *j, const struct judge_view *v, uint32_t q,
                 struct judge_item *item)
{
    const struct requirement *requirement = j->out->requirement[q];
    struct finding f = {0};
    struct record copy;
    int status = FSDP_OK;

    FSDP_TRY(record_copy(v->record, &copy));
    if (requirement_spoil(requirement, &v->expect, &copy)) {
        if (copy.spill) {
            status = record_spill_settle(v->record, &copy);
        }
        if (status != FSDP_OK) {
            /* without memory nothing can be said of the check */
        } else if (requirement_holds(requirement, &v->expect, &copy, &f)) {
            status = abandon(j, v, q, "does not notice a spoiled record", item);
        } else if (!says_something(&f)) {
            status = abandon(
                j, v, q, "fails without saying why on a spoiled record", item);
        } else {
            j->out->n_proofs[q]++;
        }
    }
    record_release(&copy);
    return status;
}

int judge_prove(struct judge *j, const struct judge_view *v,
                struct judge_item *items)
{
    for (uint32_t q = 0; q < j->out->n_requirements; q++) {
        if (items[q].outcome == JUDGE_PASS &&
            j->out->n_proofs[q] < JUDGE_PROOFS) {
            const double began = judge_seconds(j);

            FSDP_TRY(prove(j, v, q, &items[q]));
            j->out->seconds[q] += judge_seconds(j) - began;
        }
    }
    return FSDP_OK;
}

/* ---- All cases ----------------------------------------------------------- */

const char *judge_outcome_name(uint32_t outcome)
{
    static const char *const names[JUDGE_N_OUTCOMES] = {
        "pass", "fail",        "error",          "timeout",   "blocked",
        "skip", "not-claimed", "not-applicable", "incomplete"};

    return outcome < JUDGE_N_OUTCOMES ? names[outcome] : NULL;
}

const char *judge_verdict_name(uint32_t verdict)
{
    static const char *const names[] = {"CONFORMANT", "NON-CONFORMANT",
                                        "INCOMPLETE"};

    return verdict <= JUDGE_UNDECIDED ? names[verdict] : NULL;
}

/* Only of this thread: other threads judge other engines. */
double judge_seconds(const struct judge *j)
{
    struct timespec t = {0};

    if (j->in->timed) {
        (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    }
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool judge_claims(const struct judge_result *r, const char *claim)
{
    for (uint32_t i = 0; i < r->n_claims; i++) {
        /* Most differ at once. */
        if (r->claim[i][0] == claim[0] &&
            strncmp(r->claim[i], claim, sizeof(r->claim[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* Copies a string into a field, cut if it does not fit. */
static void put_text(char *to, size_t bytes, const char *from)
{
    size_t n = strnlen(from, bytes - 1);

    memcpy(to, from, n);
    to[n] = '\0';
}

static int set_claims(struct judge_result *out, uint32_t n,
                      const char *const *claims, const char (*own)[32])
{
    out->claim = calloc((size_t)n + 1, sizeof(*out->claim));
    if (!out->claim) {
        return FSDP_ERR_NOMEM;
    }
    out->n_claims = n;
    for (uint32_t i = 0; i < n; i++) {
        put_text(out->claim[i], sizeof(out->claim[i]),
                 claims ? claims[i] : own[i]);
    }
    return FSDP_OK;
}

/* Finds out which engine is judged: that of the first record that is found. */
static int identify(struct judge *j)
{
    const struct judge_input *in = j->in;
    struct judge_result *out = j->out;
    const struct record *r = NULL;
    uint32_t n = 0;
    int status = FSDP_OK;

    for (uint32_t i = 0; i < in->n_cases && !r; i++) {
        char id[CASE_ID_BYTES];

        case_id(&in->cases[i], id);
        r = in->record(in->record_context, id, &j->unread);
    }
    if (r) {
        put_text(out->engine, sizeof(out->engine), r->engine);
        put_text(out->engine_version, sizeof(out->engine_version),
                 r->engine_version);
        put_text(out->world, sizeof(out->world), r->world);
        put_text(out->isolation, sizeof(out->isolation), r->isolation);
    }
    if (in->claims) {
        while (in->claims[n]) {
            n++;
        }
        status = set_claims(out, n, in->claims, NULL);
    } else if (r) {
        status =
            set_claims(out, r->n_claims, NULL, (const char(*)[32])r->claim);
    }
    if (in->next) {
        in->next(in->record_context);
    }
    return status;
}

static void mark_reported(struct judge *j)
{
    const char *const *only = j->in->only;

    for (uint32_t q = 0; q < j->out->n_requirements; q++) {
        j->out->reported[q] = !only;
    }
    for (; only && *only; only++) {
        uint32_t q = requirement_index(j->in->requirements, *only);

        if (q < j->out->n_requirements) {
            j->out->reported[q] = true;
        }
    }
}

/* Marks the requirements that are reported and all that may block them. The
 * loop runs backwards, so that a requirement is marked before its needs are
 * looked at. */
static void mark_asked(struct judge *j)
{
    const struct requirement_needs *needs = &j->out->needs;
    uint32_t n = j->out->n_requirements;

    memcpy(j->asked, j->out->reported, n * sizeof(*j->asked));
    for (uint32_t i = n; i-- > 0;) {
        const uint32_t q = j->out->order[i];

        for (uint32_t k = needs->first[q];
             j->asked[q] && k < needs->first[q + 1]; k++) {
            j->asked[needs->index[k]] = true;
        }
    }
}

static int prepare(struct judge *j)
{
    const struct judge_input *in = j->in;
    struct judge_result *out = j->out;
    uint64_t n = requirement_count(in->requirements);

    out->requirement = in->requirements;
    out->n_requirements = (uint32_t)n;
    out->n_cases = in->n_cases;
    out->manifest = in->n_manifest;
    out->selected = in->n_cases;
    out->foreign = in->foreign;
    if (in->drawn) {
        out->drawn = *in->drawn;
    }
    if (in->manifest_sha256) {
        put_text(out->manifest_sha256, sizeof(out->manifest_sha256),
                 in->manifest_sha256);
    }
    out->reported = calloc(n + 1, sizeof(*out->reported));
    out->n_proofs = calloc(n + 1, sizeof(*out->n_proofs));
    out->seconds = calloc(n + 1, sizeof(*out->seconds));
    out->cases = calloc((size_t)in->n_cases + 1, sizeof(*out->cases));
    out->item = calloc(in->n_cases * n + 1, sizeof(*out->item));
    j->asked = calloc(n + 1, sizeof(*j->asked));
    j->run = requirement_index(in->requirements, REQUIREMENT_RUN);
    j->completes = requirement_index(in->requirements, REQUIREMENT_COMPLETES);
    if (!out->reported || !out->n_proofs || !out->seconds || !out->cases ||
        !out->item || !j->asked) {
        return FSDP_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < in->n_cases; i++) {
        out->cases[i].c = in->cases[i];
        case_id(&in->cases[i], out->cases[i].id);
    }
    mark_reported(j);
    FSDP_TRY(in->like ? judge_place_like(out, in->like) : judge_place(out));
    mark_asked(j);
    return FSDP_OK;
}

static bool has_failed(const struct judge_result *r, uint32_t c)
{
    for (uint32_t q = 0; q < r->n_requirements; q++) {
        if (r->reported[q] && judge_is_failure(judge_item_at(r, c, q))) {
            return true;
        }
    }
    return false;
}

int judge(const struct judge_input *in, struct judge_result *out)
{
    struct judge j = {.in = in, .out = out};
    const double began = judge_seconds(&j);
    const char *stopped;
    int status;

    memset(out, 0, sizeof(*out));
    if (!in->requirements || !in->describe || !in->undescribe || !in->record ||
        !in->baseline) {
        return FSDP_ERR_INVALID;
    }
    status = prepare(&j);
    if (status == FSDP_OK) {
        status = identify(&j);
    }
    for (uint32_t i = 0; i < in->n_cases && status == FSDP_OK; i++) {
        status = judge_one_case(&j, i);
        if (in->judged) {
            in->judged(in->judged_context, has_failed(out, i));
        }
        if (in->next) {
            in->next(in->record_context);
        }
    }
    free(j.asked);
    if (status != FSDP_OK) {
        judge_release(out);
        return status;
    }
    stopped = in->stopped ? in->stopped(in->stopped_context) : NULL;
    if (stopped) {
        put_text(out->stopped, sizeof(out->stopped), stopped);
    }
    judge_settle_beside_training(out);
    judge_settle_general(out);
    judge_conclude(out);
    out->seconds_in_all = judge_seconds(&j) - began;
    return FSDP_OK;
}

void judge_release(struct judge_result *r)
{
    if (r->item) {
        for (uint64_t i = 0; i < (uint64_t)r->n_cases * r->n_requirements;
             i++) {
            free(r->item[i].detail);
        }
    }
    free(r->item);
    for (uint32_t c = 0; r->cases && c < r->n_cases; c++) {
        judge_figures_release(r->cases[c].figures);
        free(r->cases[c].told);
    }
    free(r->cases);
    free(r->reported);
    free(r->n_proofs);
    requirement_release_needs(&r->needs);
    free(r->order);
    free(r->place);
    free(r->seconds);
    free(r->claim);
    memset(r, 0, sizeof(*r));
}
