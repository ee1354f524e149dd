/* SPDX-License-Identifier: Apache-2.0 */
/*
 * requirement.h - what a requirement is: one sentence, and a pure function
 * that says whether a record satisfies it.
 *
 * Requirements are rows of the tables in requirements/, one table a family. A
 * requirement knows records and what the oracle expects, no engine.
 */
#ifndef FSDP_CTS_REQUIREMENT_H
#define FSDP_CTS_REQUIREMENT_H

#include "judge/oracle/expect.h"

/* How far an engine is right. Each level builds on those below it. */
enum requirement_level {
    LEVEL_RUN = 0,      /* ends, without error */
    LEVEL_LAYOUT = 1,   /* shards */
    LEVEL_GATHER = 2,   /* unsharded parameters */
    LEVEL_GRADIENT = 3, /* local gradients */
    LEVEL_REDUCE = 4,   /* reduced shards */
    LEVEL_STEP = 5,     /* optimizer and curve */
    LEVEL_COMM = 6,     /* what was communicated */
    LEVEL_MEMORY = 7,   /* what was resident */
    LEVEL_ERRORS = 8,   /* misuse and failure */
    N_LEVELS = 9,
};
const char *requirement_level_name(uint32_t level);

enum finding_form {
    FINDING_TEXT = 0,
    FINDING_BITS = 1,  /* got, want: bits of a float32 */
    FINDING_COUNT = 2, /* got, want: a number */
    FINDING_BYTES = 3, /* got, want: bytes */
    /* No failure: what the requirement compares with, a record that `lookup`
     * does not have, is missing. The outcome is incomplete, never a pass. */
    FINDING_MISSING = 4,
    /* No failure: what the requirement asks about comes after the call with
     * which a rank ended. The outcome is blocked by REQUIREMENT_COMPLETES. */
    FINDING_ENDED = 5,
};

/* Where a requirement first failed. -1: the number does not apply. */
struct finding {
    uint32_t form;
    const char *stage; /* a constant: "reduced", "all-gather" */
    int64_t step, microbatch, unit, rank, parameter;
    int64_t element; /* index in the parameter */
    int64_t flat;    /* index among all shards of the unit: expect_place */
    int64_t shard;   /* the shard that has this element */
    int64_t local;   /* index in that shard */
    uint64_t got, want;
    double ratio;   /* an error over its bound, passed or not; 0: there is no
                       bound */
    char note[320]; /* what is wrong, and what would be right */
};

/* Which arithmetic a requirement is about. */
enum requirement_profile {
    PROFILE_ANY = 0,
    /* It compares with bits that the suite computes. It is asked of the profile
     * f32-fma, and of any profile on exact data, where no sum is rounded. */
    PROFILE_BITS = 1,
    /* It says the same by a bound. It is asked where PROFILE_BITS is not. */
    PROFILE_BOUND = 2,
};

struct requirement;
struct compare_part;
struct carried;

/* A check that several requirements share (judge/compare/compare_checks.h).
 * Their rows have the data in which they differ. */
struct requirement_check {
    /* Whether the row applies, as far as its data tell; the row's own `applies`
     * is asked, too. NULL: the data tell nothing. */
    bool (*applies)(const struct requirement *q, const struct expect *e);
    bool (*holds)(const struct requirement *q, const struct expect *e,
                  const struct record *r, struct finding *f);
    bool (*spoil)(const struct requirement *q, const struct expect *e,
                  struct record *r);
};

/* The answer that one wrong call must get. */
struct compare_answer {
    const char *name;
    /* or_want is right, too; OK: there is no second status */
    int32_t want, or_want;
};
enum {
    REQUIREMENT_MAX_ANSWERS = 16 /* answers of one row */
};

/* In which steps the parts are checked. */
enum requirement_steps {
    STEPS_FIRST = 0,
    STEPS_RECORDED = 1, /* all steps whose tensors are recorded */
    STEPS_LATER = 2,    /* all of these but the first */
    STEPS_FINAL = 3,    /* behind the last step */
    STEPS_LOADED = 4,   /* the step that follows a load */
};

/*
 * A requirement has its own `holds` and `spoil`, or names a check that has them
 * and gives it data. It may also take one of the two from a check and have the
 * other itself.
 */
struct requirement {
    /* "comm.all-gather-count": never used again for another one */
    const char *id;
    const char *text;  /* one sentence */
    const char *since; /* the version of the suite that first had it */
    uint32_t must;     /* 1: MUST, 0: SHOULD */
    bool should;       /* it is a SHOULD in a family of MUSTs */
    uint32_t level;
    const char *needs; /* ids, separated by spaces: where one of them fails,
                          this one is blocked; NULL: none */
    const char *claim; /* the capability that it belongs to; NULL: it is asked
                          of all engines */
    /* It compares something beside plain training (a load, a clip, partial
     * sums) with the unsharded run. If an engine's plain training is wrong, the
     * comparison says nothing of that: the requirement is blocked
     * (judge_settle_beside_training). */
    bool beside_training;
    /* It also compares something beside plain training, but with the case that
     * lacks it, if there is such a case, and asks that it did no harm. It is
     * never blocked then. */
    bool harmless;
    /* It is about what is left when the run is over. What training computes may
     * be right where this fails, so its failure hides no other. */
    bool of_rest;
    /* It says of any script what other requirements say more closely of the
     * steps of scenarios. If one of these fails in another case, or no later in
     * the same case, this one tells nothing more: it is blocked
     * (judge_settle_general). */
    bool general;
    uint32_t profile; /* enum requirement_profile */
    /* Whether the requirement says anything about this case; NULL: only its
     * check is asked. */
    bool (*applies)(const struct expect *e);
    /* Whether the record has anything that the requirement is about; false: it
     * does not apply. NULL: there always is. */
    bool (*looked_at)(const struct record *r);
    /* It puts together what all ranks show of whole parameters. It is not asked
     * of a record in which some ranks do not show them (record_is_sampled). */
    bool across;
    /* Fills *f if it returns false. If it returns true, f->ratio may say by
     * what margin. It must not trust any number in r. */
    bool (*holds)(const struct expect *e, const struct record *r,
                  struct finding *f);
    /* Does the least damage to r that `holds` must notice. False: this record
     * has nothing that can be spoiled. */
    bool (*spoil)(const struct expect *e, struct record *r);

    /* Provides `holds` and `spoil` if they are NULL above. */
    const struct requirement_check *check;
    /* The data of the checks. A check reads only its own. */
    struct { /* check_each_rank */
        bool (*holds)(const struct expect *e, const struct record_rank *rank,
                      uint32_t k, struct finding *f);
        /* Spoils the last rank, or the last one of the sample. */
        bool (*spoil)(const struct expect *e, struct record_rank *rank);
        /* In place of `spoil`: the offset in struct record_rank of a uint64_t,
         * to which 1 is added. */
        size_t raises;
    } rank;
    struct { /* check_each_part */
        bool (*holds)(const struct expect *e, const struct record *r,
                      const struct compare_part *part, struct finding *f);
        /* enum record_stage: the stage in which a bit is flipped */
        uint32_t stage;
        uint32_t steps; /* enum requirement_steps */
    } part;
    struct { /* check_looks */
        /* Whether the row is about the value that look i of a script shows of p
         * at that stage; NULL: it is about every one. */
        bool (*is)(const struct requirement *q, const struct expect *e,
                   uint32_t i, uint32_t p, uint32_t stage);
        /* Asked of each part of each look. NULL: if the look shows the weight,
         * weight and states must be the unsharded run's. */
        bool (*holds)(const struct expect *e, const struct record *r,
                      const struct compare_part *part, struct finding *f);
    } look;
    struct { /* check_carried */
        /* Asked of each collective of which the record knows what was sent. */
        bool (*holds)(const struct carried *x, void *context,
                      struct finding *f);
        /* To spoil a record, what was sent in the first collective for which
         * `is` holds is changed. */
        bool (*is)(const struct carried *x, void *context);
    } carried;
    struct { /* check_each_step */
        bool (*holds)(const struct expect *e,
                      const struct record_sequence *sequence, struct finding at,
                      struct finding *f);
        /* Spoils the first collective of the first step. */
        void (*spoil)(struct record_collective *c);
    } step;
    struct { /* check_each_collective */
        bool (*holds)(const struct expect *e, const struct record_collective *c,
                      uint32_t index, struct finding at, struct finding *f);
        void (*spoil)(struct record_collective *c);
    } collective;
    struct {           /* check_zero */
        size_t at;     /* the offset of a uint64_t in struct record_memory */
        uint32_t form; /* FINDING_COUNT or FINDING_BYTES */
        int64_t step;  /* finding.step */
        const char *stage; /* finding.stage */
        const char *note;  /* the thing of which there should be none */
    } zero;
    /* check_answers; the list ends at 16, or at a NULL name. */
    struct compare_answer answers[REQUIREMENT_MAX_ANSWERS];
    /* check_curve_of and checks of memory: turns the case into the one to
     * compare with; `words` names that one. */
    void (*change)(struct run_case *c);
    /* The kind of a collective, peak or point, or whatever else the rows of a
     * family differ in. */
    uint32_t kind;
    const char *words; /* "with one unit" */
};

/* All requirements of all families; NULL-ended, sorted by id. */
const struct requirement *const *requirement_table(void);

/* Whether the requirement is about the profile and the data of the case. */
bool requirement_speaks_of(const struct requirement *q, const struct expect *e);
/* What the row says of itself, or else its check. */
bool requirement_applies(const struct requirement *q, const struct expect *e);
bool requirement_holds(const struct requirement *q, const struct expect *e,
                       const struct record *r, struct finding *f);
bool requirement_spoil(const struct requirement *q, const struct expect *e,
                       struct record *r);

/* The requirement that becomes error or timeout, instead of fail, if a rank
 * crashed or hung. Requirements that need it are then blocked. */
#define REQUIREMENT_RUN "run.survives"
/* The requirement that fails if a rank's run ended with an error. */
#define REQUIREMENT_COMPLETES "run.completes"

/* The index of an id in a NULL-ended table; the table's length if it has no
 * such id. */
uint32_t requirement_index(const struct requirement *const *table,
                           const char *id);
uint32_t requirement_count(const struct requirement *const *table);

/* Writes to `id` the next id of a list like `needs`, which begins at *at, and
 * moves *at behind it. False: there is none, or it is too long for an id. */
enum {
    REQUIREMENT_ID_BYTES = 64
};
bool requirement_next_need(const char **at, char id[REQUIREMENT_ID_BYTES]);

/* What the rows of a table need, as indices in the table: row i needs
 * index[first[i]] up to, and without, index[first[i + 1]]. Needs that are not
 * in the table are left out. */
struct requirement_needs {
    uint32_t *first; /* [count + 1] */
    uint32_t *index;
};
/* NOMEM. *out is to be released even then. */
int requirement_find_needs(const struct requirement *const *table,
                           struct requirement_needs *out);
void requirement_release_needs(struct requirement_needs *needs);

/* Fills order[n] with an order of n rows in which each row comes after those
 * that it needs. NOMEM; FORMAT: there is a cycle. */
int requirement_order(const struct requirement_needs *needs, uint32_t n,
                      uint32_t *order);

/* Whether something is wrong with the table itself: ids that are no slugs, are
 * ordinals or occur twice; needs that do not exist, go round in a circle or let
 * a MUST wait for a SHOULD; texts that are no sentence; levels out of range;
 * missing functions. FORMAT, and the first fault in `why`. */
int requirement_set_check(const struct requirement *const *table, char *why,
                          uint32_t why_bytes);

#endif
