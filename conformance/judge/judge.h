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
    JUDGE_TIMEOUT = 3, /* made no progress */
    JUDGE_BLOCKED = 4, /* what it needs failed */
    JUDGE_SKIP = 5,    /* the suite itself lacks something; the case says */
    JUDGE_NOT_CLAIMED = 6,
    JUDGE_NOT_APPLICABLE = 7,
    JUDGE_INCOMPLETE = 8, /* no record, or not enough to tell */
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

/* A case's model and units, from whoever knows workloads. */
struct judge_model {
    const struct fsdp_model *model;
    const struct fsdp_units *units;
    const uint8_t *idle; /* bits of data.h, or NULL */
    void *own;
};

/* What came of scripts that were drawn beside the cases of a whole run. */
enum {
    JUDGE_SCRIPT_ID_BYTES = 160
};
struct judge_drawn {
    bool wanted;        /* there were to be some; else all is 0 */
    bool incomplete;    /* one has no verdict */
    uint32_t generator; /* and the seed of the first */
    uint32_t seed;
    uint32_t played, failed; /* 0 played: the engine does not claim scripts */
    char first[JUDGE_SCRIPT_ID_BYTES]; /* the first that fails, made smaller */
};

struct judge_input {
    const struct requirement *const *requirements; /* NULL-ended, checked */
    /* Requirements to report, NULL-ended; NULL: all. What they need is judged
     * along with them. */
    const char *const *only;
    const struct run_case *cases; /* what should have been run */
    uint32_t n_cases;
    uint32_t n_manifest; /* cases of the whole suite */
    bool foreign;        /* these cases are others, however many they are */
    const char *manifest_sha256;
    const struct judge_drawn *drawn; /* NULL: none were to be */
    /* NULL-ended; NULL: those of the first record that is found. */
    const char *const *claims;

    /* INVALID: there is no such model; says why. */
    int (*describe)(void *context, const struct run_case *c,
                    struct judge_model *out, struct fsdp_error *error);
    void (*undescribe)(void *context, struct judge_model *model);
    void *model_context;

    /* The record of a case by its id, the unsharded run by its key. NULL:
     * there is none, or it is malformed (then *error says how). They stay
     * valid until `next`, which says that the judge is done with all it was
     * given so far; `next` may be NULL. */
    const struct record *(*record)(void *context, const char *id,
                                   struct fsdp_error *error);
    const struct record *(*baseline)(void *context, const char *key,
                                     struct fsdp_error *error);
    void (*next)(void *context);
    void *record_context;

    /* A case has been judged, and whether anything failed in it. NULL: nobody
     * asks. */
    void (*judged)(void *context, bool failed);
    void *judged_context;

    /* Why the run, or the judging of it, was stopped before its end:
     * "interrupted"; NULL: it was not. It is asked again and again. The
     * function may be NULL. */
    const char *(*stopped)(void *context);
    void *stopped_context;

    bool timed; /* what a result says of seconds is asked for; else it is 0 */
    /* A result of the same requirements, of which needs, order and place are
     * copied: for who judges in great numbers. NULL: they are found. */
    const struct judge_result *like;
};

/* What went wrong, with the names that the model gives it. */
struct judge_detail {
    struct finding finding;
    char unit[64]; /* its first module; "(root)" */
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
 * What was measured of a case exactly: the same at every run of the same
 * program, so that any change is a change of the program. Each is that of the
 * rank that has most, over its whole run.
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
    uint32_t point, unit; /* unit: JUDGE_NONE where there is none */
    uint64_t live[FSDP_N_KINDS];
};

struct judge_figures {
    uint64_t figure[JUDGE_N_FIGURES];
    uint32_t steps;
    uint64_t bound; /* of JUDGE_PEAK_ENGINE: the oracle's */
    /* A step of rank 0: record_memory's timeline. */
    uint32_t step, n_moments, n_units;
    struct judge_moment *moment;
    char (*unit)[64]; /* [n_units]: names, as in judge_detail */
};

/* What people want to see of a case. */
struct judge_case {
    struct run_case c;
    char id[CASE_ID_BYTES];
    uint32_t outcome; /* PASS: judged. Else what all of it came to */
    char reason[512]; /* why, where the outcome is not PASS */
    bool has_losses, has_counts;
    float final_loss;              /* folded; of the last microbatch */
    uint32_t n_losses, losses_off; /* losses_off: bits differ from the
                                      unsharded run's */
    uint64_t peak, peak_expected;  /* parameters, bytes; worst rank */
    uint64_t textbook;             /* M/K + the largest unit, bytes */
    uint64_t grown;                /* what a process took; worst rank */
    uint32_t collectives, collectives_expected; /* of step 0, rank 0 */
    double seconds;                /* that it was played; 0: nobody knows */
    struct judge_figures *figures; /* NULL: not all ranks ran to the end */
    /* RECORD_TOLD, of a case in which something failed and that has one, as
     * whoever reports it has found it. NULL: nothing. */
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
    bool *reported; /* [n_requirements]; false: judged, if at all, for others */
    struct judge_case *cases;
    uint32_t n_cases;
    struct judge_item *item; /* [n_cases * n_requirements], by case */

    char engine[64], engine_version[32], world[16];
    char isolation[16]; /* of the ranks of every record; "": of some, or none */
    /* Of the largest sampled record: so many of its ranks showed whole
     * parameters; of 0 ranks: no record was sampled. */
    struct {
        uint32_t ranks, of;
        char unasked[320]; /* requirements that need those of all ranks */
    } sampled;
    /* Cases with more collectives than records say of what ranks have sent in
     * them; of the rank with most of all, of how many it is known. */
    struct {
        uint32_t cases, known, of;
    } followed;
    uint32_t n_claims;
    char (*claim)[32];

    uint32_t count[JUDGE_N_OUTCOMES]; /* of reported items */
    struct judge_level level[N_LEVELS];
    int32_t highest_level; /* all up to here passed; -1: none */
    bool foreign;          /* the cases are not those of the manifest */
    uint32_t manifest, selected, not_claimed, expected, executed;
    uint32_t malformed; /* records that are there and cannot be read */
    char stopped[32];   /* why it did not come to its end; "": it did */
    uint32_t not_run, not_judged; /* then: cases; of those that were run */
    char manifest_sha256[65];

    uint32_t *n_proofs; /* [n_requirements]: spoiled records it noticed */
    bool abandoned;     /* one was not noticed: it is INCOMPLETE there */
    /* Where it is timed. [n_requirements]: processor time of asking, proving;
     * and with records and what must be seen. */
    double *seconds;
    double seconds_in_all;
    struct judge_drawn drawn;
    uint32_t verdict;
    char reason[256]; /* of a verdict that is INCOMPLETE, or says less; or is of
                         drawn scripts */
};

/* Judges. NOMEM; INVALID: an input that lacks a function. Any other trouble
 * is an outcome. */
int judge(const struct judge_input *in, struct judge_result *out);
void judge_release(struct judge_result *r); /* any state */

static inline const struct judge_item *
judge_item_at(const struct judge_result *r, uint32_t c, uint32_t q)
{
    assert(c < r->n_cases && q < r->n_requirements);
    return &r->item[(uint64_t)c * r->n_requirements + q];
}

/* Whether it failed, crashed or hung. */
bool judge_is_failure(const struct judge_item *item);

/* Fills needs, order and place, of r's requirements. NOMEM; FORMAT: a cycle. */
int judge_place(struct judge_result *r);
/* The same, by what `like` has of the same requirements. NOMEM. */
int judge_place_like(struct judge_result *r, const struct judge_result *like);

/*
 * Which of two failures is more likely the cause of the other: that of
 * requirement q in case c (less than 0), or that of p in case d (more than 0).
 * The earlier one; of one moment that of the lower level; of one level that
 * which is needed by others.
 */
int judge_compare_causes(const struct judge_result *r, uint32_t c, uint32_t q,
                         uint32_t d, uint32_t p);
/* Whether the engine claims this. */
bool judge_claims(const struct judge_result *r, const char *claim);

/* The failure to look at first, a MUST before any SHOULD; false: there is
 * none. */
bool judge_first_cause(const struct judge_result *r, uint32_t *c, uint32_t *q);
/* The same of one case. */
bool judge_first_cause_of(const struct judge_result *r, uint32_t c,
                          uint32_t *q);

/* Whether less was judged than the whole manifest by all requirements, or
 * something else. */
bool judge_is_selection(const struct judge_result *r);

/* Whether requirement q held somewhere, but nothing could be spoiled there:
 * its check is unproved. */
bool judge_is_unproved(const struct judge_result *r, uint32_t q);

#endif
