/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.c - findings, and walks over the ranks and the answers of a record,
 * none of whose numbers is trusted.
 */
#include "judge/compare/compare.h"

#include <stdio.h>
#include <string.h>

struct finding finding_at(const char *stage, int64_t step, int64_t microbatch,
                          int64_t rank)
{
    return (struct finding){.form = FINDING_TEXT,
                            .stage = stage,
                            .step = step,
                            .microbatch = microbatch,
                            .unit = -1,
                            .rank = rank,
                            .parameter = -1,
                            .element = -1,
                            .flat = -1,
                            .shard = -1,
                            .local = -1};
}

struct finding finding_at_part(const char *stage, int64_t microbatch,
                               const struct compare_part *part)
{
    struct finding at =
        finding_at(stage, part->step, microbatch, (int64_t)part->rank);

    at.parameter = part->parameter;
    at.unit = part->unit;
    return at;
}

static bool finding_set(struct finding *f, struct finding at, uint32_t form,
                        uint64_t got, uint64_t want, const char *note)
{
    *f = at;
    f->form = form;
    f->got = got;
    f->want = want;
    snprintf(f->note, sizeof(f->note), "%s", note);
    return false;
}

bool finding_text(struct finding *f, struct finding at, const char *note)
{
    return finding_set(f, at, FINDING_TEXT, 0, 0, note);
}

bool finding_missing(struct finding *f, struct finding at, const char *note)
{
    return finding_set(f, at, FINDING_MISSING, 0, 0, note);
}

bool finding_count(struct finding *f, struct finding at, uint64_t got,
                   uint64_t want, const char *note)
{
    return finding_set(f, at, FINDING_COUNT, got, want, note);
}

bool finding_bytes(struct finding *f, struct finding at, uint64_t got,
                   uint64_t want, const char *note)
{
    return finding_set(f, at, FINDING_BYTES, got, want, note);
}

bool finding_bits(struct finding *f, struct finding at, float got, float want,
                  const char *note)
{
    uint32_t got_bits;
    uint32_t want_bits;

    memcpy(&got_bits, &got, sizeof(got_bits));
    memcpy(&want_bits, &want, sizeof(want_bits));
    return finding_set(f, at, FINDING_BITS, got_bits, want_bits, note);
}

bool compare_case_plays(const struct expect *e)
{
    return case_trains(e->c);
}

bool compare_case_trains(const struct expect *e)
{
    return case_trains(e->c) && !case_is_script(e->c);
}

bool compare_any_gradient(const struct expect *e)
{
    bool any = false;

    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        any = any || (e->stepped[p] && e->has_gradient[p] != 0 &&
                      fsdp_numel(e->model, p) > 0);
    }
    return any;
}

bool compare_case_lives_once(const struct expect *e)
{
    switch (e->c->scenario) {
    case CASE_TRAIN:
    case CASE_MISUSE:
    case CASE_SUMMON:
    case CASE_GROW:
    case CASE_SHRINK:
    case CASE_CLIP:
    case CASE_GROUPS:
        return true;
    default:
        return false;
    }
}

bool compare_case_shards(const struct expect *e)
{
    return compare_case_plays(e) || e->c->scenario == CASE_SHARD;
}

bool compare_case_staged(const struct expect *e)
{
    return compare_case_trains(e) && e->c->scenario != CASE_CANCEL &&
           e->c->scenario != CASE_MISUSE && compare_recorded_steps(e) > 0;
}

bool compare_case_initial(const struct expect *e)
{
    return compare_case_staged(e) || e->c->scenario == CASE_SHARD;
}

bool compare_case_strict(const struct expect *e)
{
    return compare_case_trains(e) && e->c->prefetch_forward == 0 &&
           e->c->prefetch_backward == 0 && e->c->reduces_in_flight == 0;
}

bool compare_case_communicates(const struct expect *e)
{
    return compare_case_trains(e) && e->c->ranks > 1;
}

bool compare_case_freezes(const struct expect *e)
{
    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        if (!expect_is_trainable(e, p) && !expect_is_ignored(e, p)) {
            return true;
        }
    }
    return false;
}

bool compare_case_resumes(const struct expect *e)
{
    return case_resumes(e->c);
}

bool compare_case_replicated(const struct expect *e)
{
    return compare_case_staged(e) && e->replicas > 1;
}

uint32_t compare_synced_early(const struct expect *e)
{
    uint32_t n = 0;

    for (uint32_t b = 0; b + 1 < e->c->microbatches; b++) {
        n += e->c->sync[b] != 0;
    }
    return n;
}

uint32_t compare_recorded_steps(const struct expect *e)
{
    return e->c->recorded_steps < e->c->steps ? e->c->recorded_steps
                                              : e->c->steps;
}

const struct record_rank *compare_rank(const struct record *r, uint32_t k)
{
    if (!r->rank || k >= r->n_ranks || !r->rank[k].present) {
        return NULL;
    }
    return &r->rank[k];
}

struct record_rank *compare_rank_to_spoil(struct record *r, uint32_t k)
{
    return !compare_rank(r, k) ? NULL : &r->rank[k];
}

bool compare_is_sampled(const struct record *r, uint32_t k)
{
    return !r->rank || k >= r->n_ranks || !r->rank[k].unsampled;
}

bool compare_ranks(const struct expect *e, const struct record *r,
                   bool (*check)(const struct expect *e,
                                 const struct record_rank *rank, uint32_t k,
                                 struct finding *f),
                   struct finding *f)
{
    for (uint32_t k = 0; k < e->c->ranks; k++) {
        const struct record_rank *rank = compare_rank(r, k);

        if (!rank) {
            return finding_text(f, finding_at(NULL, -1, -1, k),
                                "this rank's files are missing");
        }
        if (!check(e, rank, k, f)) {
            return false;
        }
    }
    return true;
}

/* The first answer of this name at or after index `from`; a call may have been
 * made more than once. */
static struct record_answer *answer_find(const struct record_rank *rank,
                                         const char *name, uint32_t *from)
{
    for (; rank->answer && *from < rank->n_answers; (*from)++) {
        if (strncmp(rank->answer[*from].name, name,
                    sizeof(rank->answer[*from].name)) == 0) {
            return &rank->answer[*from];
        }
    }
    return NULL;
}

/* *n: how often it was asked. */
static bool answered(const struct record_rank *rank,
                     const struct compare_answer *answer, struct finding at,
                     struct finding *f, uint32_t *n)
{
    const struct record_answer *got;
    char note[sizeof(f->note)];
    uint32_t i = 0;

    *n = 0;
    while ((got = answer_find(rank, answer->name, &i))) {
        if (got->status != answer->want && got->status != answer->or_want) {
            snprintf(note, sizeof(note), "%s: answered %d (%s), not %d (%s)",
                     answer->name, got->status, fsdp_status_text(got->status),
                     answer->want, fsdp_status_text(answer->want));
            return finding_text(f, at, note);
        }
        i++;
        (*n)++;
    }
    return true;
}

/* A rank whose run ended with an error was not asked what comes later: then
 * that error is what is wrong. */
static bool was_not_asked(const struct expect *e,
                          const struct record_rank *rank, const char *name,
                          struct finding at, struct finding *f)
{
    char note[sizeof(f->note)];

    snprintf(note, sizeof(note), "%s: no answer is recorded", name);
    return finding_set(f, at,
                       rank->status != FSDP_OK && compare_case_trains(e)
                           ? FINDING_ENDED
                           : FINDING_TEXT,
                       0, 0, note);
}

bool compare_answers(const struct expect *e, const struct record *r,
                     const struct compare_answer *answer, uint32_t n,
                     struct finding *f)
{
    struct finding missing;
    bool all = true;

    for (uint32_t k = 0; k < e->c->ranks; k++) {
        const struct record_rank *rank = compare_rank(r, k);
        struct finding at = finding_at("answers", -1, -1, k);

        if (!rank) {
            return finding_text(f, at, "this rank's files are missing");
        }
        for (uint32_t i = 0; i < n; i++) {
            uint32_t times;

            if (!answered(rank, &answer[i], at, f, &times)) {
                return false; /* whatever is missing elsewhere */
            }
            if (times == 0 && (all || missing.form == FINDING_ENDED)) {
                all = was_not_asked(e, rank, answer[i].name, at, &missing);
            }
        }
    }
    if (!all) {
        *f = missing;
    }
    return all;
}

bool compare_spoil_answers(struct record *r,
                           const struct compare_answer *answer, uint32_t n)
{
    for (uint32_t k = r->n_ranks; k > 0; k--) {
        const struct record_rank *rank = compare_rank(r, k - 1);

        for (uint32_t i = 0; rank && i < n; i++) {
            uint32_t from = 0;
            struct record_answer *got =
                answer_find(rank, answer[i].name, &from);

            if (got) {
                got->status = FSDP_ERR_INTERNAL;
                return true;
            }
        }
    }
    return false;
}
