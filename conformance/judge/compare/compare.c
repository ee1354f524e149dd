/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.c - findings, and their words: people look for names, not for numbers
 * of enums and indices of units; and walks over the ranks and the answers of a
 * record, none of whose numbers is trusted.
 */
#include "judge/compare/compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- Findings and walks -------------------------------------------------- */

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

bool compare_is_forward(uint32_t point)
{
    return point == FSDP_PRE_FORWARD || point == FSDP_POST_FORWARD;
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

struct record_answer *compare_find_answer(const struct record_rank *rank,
                                          const char *name)
{
    uint32_t from = 0;

    return rank ? answer_find(rank, name, &from) : NULL;
}

/* *n: how often the call was made. */
static bool answered(const struct record_rank *rank,
                     const struct compare_answer *answer, struct finding at,
                     struct finding *f, uint32_t *n)
{
    const struct record_answer *got;
    char note[sizeof(f->note)];
    uint32_t i = 0;

    *n = 0;
    while ((got = answer_find(rank, answer->name, &i))) {
        if (got->status != answer->want &&
            (answer->or_want == FSDP_OK || got->status != answer->or_want)) {
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

/* A rank whose run ended with an error was not asked what comes later. Then
 * that error is what is wrong, and not the missing answer. */
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

bool compare_spoil_name(struct record_rank *rank, const char *name)
{
    struct record_answer *last =
        rank && rank->n_answers > 0 ? &rank->answer[rank->n_answers - 1] : NULL;

    if (last) {
        snprintf(last->name, sizeof(last->name), "%s", name);
    }
    return last != NULL;
}

bool compare_spoil_answers(struct record *r,
                           const struct compare_answer *answer, uint32_t n)
{
    for (uint32_t k = r->n_ranks; k > 0; k--) {
        const struct record_rank *rank = compare_rank(r, k - 1);

        for (uint32_t i = 0; rank && i < n; i++) {
            struct record_answer *got =
                compare_find_answer(rank, answer[i].name);

            if (got) {
                got->status = FSDP_ERR_INTERNAL;
                return true;
            }
        }
    }
    return false;
}

/* ---- Words --------------------------------------------------------------- */

bool finding_note(struct finding *f, struct finding at, const char *format, ...)
{
    va_list list;

    *f = at;
    f->form = FINDING_TEXT;
    va_start(list, format);
    vsnprintf(f->note, sizeof(f->note), format, list);
    va_end(list);
    return false;
}

static const char *or_unknown(const char *name)
{
    return name ? name : "unknown";
}

const char *compare_parameter_name(const struct expect *e, uint64_t parameter)
{
    return parameter < e->model->n_parameters
               ? e->model->parameter_name[parameter]
               : "a parameter that the model lacks";
}

static void unit_words(const struct expect *e, uint32_t unit,
                       char out[COMPARE_WORDS_BYTES])
{
    const char *name = expect_unit_name(e, unit);

    if (unit == FSDP_NO_UNIT) {
        snprintf(out, COMPARE_WORDS_BYTES, "no unit");
        return;
    }
    if (name) {
        snprintf(out, COMPARE_WORDS_BYTES, "unit %.28s", name);
    } else {
        snprintf(out, COMPARE_WORDS_BYTES, "unknown unit %" PRIu32, unit);
    }
}

void compare_collective_words(const struct expect *e,
                              const struct record_collective *c,
                              char out[COMPARE_WORDS_BYTES])
{
    const char *kind = or_unknown(record_collective_name(c->kind));
    char unit[COMPARE_WORDS_BYTES];

    unit_words(e, c->unit, unit);
    snprintf(out, COMPARE_WORDS_BYTES, "%s %.16s of %.40s",
             strchr("au", kind[0]) ? "an" : "a", kind, unit);
}

bool finding_collective(const struct expect *e, struct finding *f,
                        struct finding at, const struct record_collective *c,
                        uint32_t index, const struct compare_wording *wording)
{
    char words[COMPARE_WORDS_BYTES];

    compare_collective_words(e, c, words);
    at.unit = c->unit == FSDP_NO_UNIT ? -1 : (int64_t)c->unit;
    return finding_note(
        f, at, "collective %" PRIu32 " of the step, %s, %s %s, expected %s",
        index + 1, words, wording->verb, or_unknown(wording->got),
        or_unknown(wording->want));
}

/* Appends the text if all of it fits. */
static void append(char *note, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void append(char *note, size_t bytes, const char *format, ...)
{
    size_t used = strlen(note);
    va_list list;
    int n;

    va_start(list, format);
    n = vsnprintf(note + used, bytes - used, format, list);
    va_end(list);
    if (n < 0 || (size_t)n >= bytes - used) {
        note[used] = '\0';
    }
}

bool finding_peak(struct finding *f, struct finding at, uint64_t got,
                  uint64_t want, const char *note,
                  const struct record_memory *memory)
{
    static const struct {
        uint32_t kind;
        const char *name;
    } kinds[] = {{FSDP_PARAM_SHARD, "parameter shards"},
                 {FSDP_PARAM_FULL, "unsharded"},
                 {FSDP_GRAD_SHARD, "gradient shards"},
                 {FSDP_GRAD_FULL, "unsharded gradients"},
                 {FSDP_OPTIM, "states"},
                 {FSDP_STAGING, "staging"}};

    (void)finding_bytes(f, at, got, want, note);
    append(f->note, sizeof(f->note), "; peaks alone:");
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        append(f->note, sizeof(f->note), "%s %s %" PRIu64, i > 0 ? "," : "",
               kinds[i].name, memory->peak[kinds[i].kind]);
    }
    append(f->note, sizeof(f->note), " bytes");
    return false;
}

/* The whole number that x is, up to rounding; 0: it is none. */
static int32_t simple_factor(double x)
{
    double n = round(x);

    return fabs(x) <= 1024.5 && fabs(n) >= 1.0 && fabs(x - n) <= 1e-5 * fabs(n)
               ? (int32_t)n
               : 0;
}

bool compare_factor_words(double got, double want,
                          char out[COMPARE_WORDS_BYTES])
{
    int32_t times = simple_factor(got / want);
    int32_t over = simple_factor(want / got);

    if (times == 1 || over == 1 || (times == 0 && over == 0)) {
        return false;
    }
    if (times != 0) {
        snprintf(out, COMPARE_WORDS_BYTES, "got is want times %" PRId32, times);
    } else {
        snprintf(out, COMPARE_WORDS_BYTES, "got is want divided by %" PRId32,
                 over);
    }
    return true;
}
