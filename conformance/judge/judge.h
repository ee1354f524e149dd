/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge.h - from records to a verdict. The judge knows records, what the
 * oracle expects, and requirements; it never sees an engine.
 *
 * Every (requirement, case) comes to one of a closed set of outcomes, of
 * which pass alone is a pass. Along the way the checker proves itself: for
 * each requirement that held, a copy of the record is spoiled and must fail.
 * A judge that does not notice has no verdict to give.
 */
#ifndef FSDP_CTS_JUDGE_H
#define FSDP_CTS_JUDGE_H

#include "judge/requirement.h"

#include <assert.h>

enum judge_outcome {
    JUDGE_PASS = 0,
    JUDGE_FAIL = 1,
    JUDGE_ERROR = 2,   /* a rank crashed or left */
    JUDGE_TIMEOUT = 3, /* a rank made no progress */
    JUDGE_BLOCKED = 4, /* a requirement that it needs failed */
    JUDGE_SKIP = 5,    /* the suite itself lacks something: judge_case.reason */
    JUDGE_NOT_CLAIMED = 6,
    JUDGE_NOT_APPLICABLE = 7,
    JUDGE_INCOMPLETE = 8, /* there is no record, or not enough in it to tell */
    JUDGE_N_OUTCOMES = 9,
};
const char *judge_outcome_name(uint32_t outcome); /* "not-claimed" */

/* The numbers are the exit codes of commands. */
enum judge_verdict {
    JUDGE_CONFORMANT = 0,
    JUDGE_NON_CONFORMANT = 1,
    JUDGE_UNDECIDED = 2, /* "INCOMPLETE" */
};
const char *judge_verdict_name(uint32_t verdict);

/* A case's model and units; struct judge_input says who makes them. */
struct judge_model {
    const struct fsdp_model *model;
    const struct fsdp_units *units;
    const uint8_t *idle; /* bits of data.h, or NULL */
    void *own;
};

/* What came of the scripts that were drawn and played beside the cases of a
 * whole run. */
enum {
    JUDGE_SCRIPT_ID_BYTES = 160
};
struct judge_drawn {
    bool wanted;     /* scripts were to be drawn; if not, all else is 0 */
    bool incomplete; /* some script has no verdict */
    /* by which scripts were drawn; seed: of the first one */
    uint32_t generator;
    uint32_t seed;
    /* played is 0 if the engine does not claim scripts */
    uint32_t played, failed;
    char first[JUDGE_SCRIPT_ID_BYTES]; /* the first script that fails, made
                                          smaller */
};

struct judge_input {
    const struct requirement *const *requirements; /* NULL-ended, checked */
    /* Ids of the requirements to report, NULL-ended; NULL: all. The
     * requirements that these need are judged, too. */
    const char *const *only;
    const struct run_case *cases; /* the cases that should have been run */
    uint32_t n_cases;
    uint32_t n_manifest; /* cases of the whole suite */
    bool foreign; /* the cases are not those of the manifest, whatever their
                     number */
    const char *manifest_sha256;
    const struct judge_drawn *drawn; /* NULL: no scripts were to be drawn */
    /* The engine's claims, NULL-ended; NULL: those of the first record that is
     * found. */
    const char *const *claims;

    /* Makes the model of a case. INVALID: there is no such model; error says
     * why. */
    int (*describe)(void *context, const struct run_case *c,
                    struct judge_model *out, struct fsdp_error *error);
    void (*undescribe)(void *context, struct judge_model *model);
    void *model_context;

    /* The record of a case by its id; the unsharded run by its key. NULL: there
     * is none, or it is malformed, and then *error says how. Both stay valid
     * until the judge calls `next`: it is done with all that it was given so
     * far. `next` may be NULL. */
    const struct record *(*record)(void *context, const char *id,
                                   struct fsdp_error *error);
    const struct record *(*baseline)(void *context, const char *key,
                                     struct fsdp_error *error);
    void (*next)(void *context);
    void *record_context;

    /* Called when a case has been judged; failed: something in it failed. May
     * be NULL. */
    void (*judged)(void *context, bool failed);
    void *judged_context;

    /* Why the run, or the judging of it, was stopped before its end:
     * "interrupted"; NULL: it was not. It is asked again and again. May be
     * NULL. */
    const char *(*stopped)(void *context);
    void *stopped_context;
    /* Somebody waits for the result of a stopped run: no models are made of
     * cases that were not run, so that all requirements are open there, even
     * those that do not apply. */
    bool hurried;

    bool timed; /* measures the seconds of the result, which else are 0 */
    /* A result of the same requirements, from which needs, order and place are
     * copied, to save time where many runs are judged. NULL: they are found. */
    const struct judge_result *like;
};

/* What a requirement found, with the names that the model gives to the
 * place. */
struct judge_detail {
    struct finding finding;
    char unit[64]; /* name of the unit's first module; "(root)" */
    char parameter[64];
};

struct judge_item {
    uint32_t outcome;
    uint32_t blocked_by;         /* index of a requirement, or JUDGE_NONE */
    struct judge_detail *detail; /* NULL: there is none */
};

enum {
    JUDGE_NONE = UINT32_MAX,
    JUDGE_PROOFS = 3
};

/*
 * Exact measures of a case: they are the same at every run of the same program,
 * so that a change of a figure is a change of the program. Each is the figure
 * of the rank that has most, over its whole run.
 */
enum judge_figure {
    JUDGE_PEAK = 0, /* + kind: FSDP_N_KINDS of them */
    JUDGE_PEAK_PARAMETERS = JUDGE_PEAK + FSDP_N_KINDS,
    JUDGE_PEAK_ENGINE,
    JUDGE_PEAK_STORAGE,
    JUDGE_COLLECTIVES, /* + kind: FSDP_N_COLLECTIVES of them */
    JUDGE_WIRE_BYTES = JUDGE_COLLECTIVES + FSDP_N_COLLECTIVES,
    JUDGE_ALLOCATIONS,
    JUDGE_LAUNCHES,
    JUDGE_N_FIGURES,
};
const char *judge_figure_name(uint32_t figure); /* "peak.param-full" */

struct judge_moment {
    uint32_t point, unit; /* unit: JUDGE_NONE if the point belongs to none */
    uint64_t live[FSDP_N_KINDS];
};

struct judge_figures {
    uint64_t figure[JUDGE_N_FIGURES];
    uint32_t steps;
    uint64_t bound; /* the oracle's bound of JUDGE_PEAK_ENGINE */
    /* A step of rank 0: record_memory's timeline. */
    uint32_t step, n_moments, n_units;
    struct judge_moment *moment;
    char (*unit)[64]; /* [n_units]: names, as in judge_detail */
};

/* What reports say of a case as a whole. */
struct judge_case {
    struct run_case c;
    char id[CASE_ID_BYTES];
    /* PASS: judged. Else the outcome of all its requirements */
    uint32_t outcome;
    char reason[512]; /* why the outcome is not PASS */
    bool has_losses, has_counts;
    float final_loss;              /* folded; the loss of the last microbatch */
    uint32_t n_losses, losses_off; /* losses_off: how many losses differ in bits
                                      from the unsharded run's */
    /* bytes of parameters, of the rank with most */
    uint64_t peak, peak_expected;
    uint64_t textbook; /* bytes: M/K and the largest unit */
    uint64_t grown;    /* memory that a process took; the rank with most */
    uint32_t collectives, collectives_expected; /* of step 0, rank 0 */
    double seconds;                /* how long it was played; 0: not known */
    struct judge_figures *figures; /* NULL: not all ranks ran to the end */
    /* The text RECORD_TOLD of a case in which something failed; put here by
     * whoever makes the report. NULL: there is none. */
    char *told;
};

struct judge_level {
    uint32_t count[JUDGE_N_OUTCOMES]; /* of MUST requirements */
};

struct judge_result {
    const struct requirement *const *requirement;
    uint32_t n_requirements;
    struct requirement_needs needs;
    uint32_t *order; /* [n_requirements]: none stands before what it needs */
    uint32_t *place; /* [n_requirements]: order[place[q]] is q */
    bool *reported; /* [n_requirements]; false: not reported, and judged only if
                       reported ones need it */
    struct judge_case *cases;
    uint32_t n_cases;
    /* [n_cases * n_requirements], those of a case in a row */
    struct judge_item *item;

    char engine[64], engine_version[32], world[16];
    char isolation[16]; /* what all records say of it; "": not all of them do */
    /* The largest sampled record: `ranks` of its `of` ranks showed whole
     * parameters. of 0: no record was sampled. */
    struct {
        uint32_t ranks, of;
        /* ids of requirements that need these of all ranks */
        char unasked[320];
    } sampled;
    /* Cases with so many collectives that records do not say of all of them
     * what ranks sent. known, of: of the rank with most, how many of its
     * collectives are known. */
    struct {
        uint32_t cases, known, of;
    } followed;
    uint32_t n_claims;
    char (*claim)[32];

    uint32_t count[JUDGE_N_OUTCOMES]; /* of reported items */
    struct judge_level level[N_LEVELS];
    int32_t highest_level; /* the highest up to which all passed; -1: none */
    bool foreign;          /* the cases are not those of the manifest */
    uint32_t manifest, selected, not_claimed, expected, executed;
    uint32_t malformed; /* records that are there and cannot be read */
    char stopped[32];   /* why the run did not come to its end; "": it did */
    uint32_t not_run, not_judged; /* of a stopped run: cases; not_judged: of
                                     those that were run */
    char manifest_sha256[65];

    /* [n_requirements]: how many spoiled records it noticed */
    uint32_t *n_proofs;
    bool abandoned; /* some spoiled record was not noticed: that requirement is
                       INCOMPLETE there */
    /* If it was to be timed: [n_requirements], the processor time of asking and
     * of proving; and of all, with reading records and computing what must be
     * seen. */
    double *seconds;
    double seconds_in_all;
    struct judge_drawn drawn;
    uint32_t verdict;
    char reason[256]; /* why the verdict is INCOMPLETE, or says less than it
                         seems, or is that of drawn scripts */
};

/* Judges a run. NOMEM; INVALID: `in` lacks a function. All other trouble
 * becomes an outcome. */
int judge(const struct judge_input *in, struct judge_result *out);
void judge_release(struct judge_result *r); /* any state */

static inline const struct judge_item *
judge_item_at(const struct judge_result *r, uint32_t c, uint32_t q)
{
    assert(c < r->n_cases && q < r->n_requirements);
    return &r->item[(uint64_t)c * r->n_requirements + q];
}

/* Whether the item failed, crashed or hung. */
bool judge_is_failure(const struct judge_item *item);

/* Fills needs, order and place of r's requirements. NOMEM; FORMAT: needs form a
 * cycle. */
int judge_place(struct judge_result *r);
/* The same, copied from `like`, a result of the same requirements. NOMEM. */
int judge_place_like(struct judge_result *r, const struct judge_result *like);

/*
 * Which of two failures is more likely the cause of the other: less than 0:
 * that of requirement q in case c; more than 0: that of p in case d. It is the
 * earlier one; at the same moment the one of the lower level; at the same level
 * the one that the other needs.
 */
int judge_compare_causes(const struct judge_result *r, uint32_t c, uint32_t q,
                         uint32_t d, uint32_t p);
/* Whether the engine makes this claim. */
bool judge_claims(const struct judge_result *r, const char *claim);

/* The failure to look at first, a MUST before any SHOULD; false: there is
 * none. */
bool judge_first_cause(const struct judge_result *r, uint32_t *c, uint32_t *q);
/* The same for one case. */
bool judge_first_cause_of(const struct judge_result *r, uint32_t c,
                          uint32_t *q);

/* Whether this is no verdict on the whole manifest by all requirements: less
 * was judged, or other cases. */
bool judge_is_selection(const struct judge_result *r);

/* Whether requirement q held in some case, but no record could be spoiled for
 * it: its check is unproved. */
bool judge_is_unproved(const struct judge_result *r, uint32_t q);

#endif
