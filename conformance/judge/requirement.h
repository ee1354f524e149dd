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

/* How far an engine is right. The levels build on each other. */
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
    /* Not a failure: what it would compare with (a record that `lookup` does
     * not have) is missing. The outcome is incomplete, never a pass. */
    FINDING_MISSING = 4,
    /* Nor is this: what it asks about comes after the call with which a rank
     * ended. The outcome is blocked, by REQUIREMENT_COMPLETES. */
    FINDING_ENDED = 5,
};

/* Where a requirement first failed. -1: does not apply. */
struct finding {
    uint32_t form;
    const char *stage; /* static; "reduced", "all-gather" */
    int64_t step, microbatch, unit, rank, parameter;
    int64_t element; /* in the parameter */
    int64_t flat;    /* among the unit's shards: expect_place */
    int64_t shard;   /* which shard that is in */
    int64_t local;   /* index in that shard */
    uint64_t got, want;
    double ratio;   /* of an error to its bound, passed or not; 0: no bound */
    char note[320]; /* what is wrong and what would be right */
};

/* Which arithmetic a requirement is about. */
enum requirement_profile {
    PROFILE_ANY = 0,
    /* Compares with bits that the suite computes: asked of the profile
     * f32-fma, and of any on exact data, where no sum is rounded. */
    PROFILE_BITS = 1,
    /* Says the same by a bound: asked where PROFILE_BITS is not. */
    PROFILE_BOUND = 2,
};

struct requirement;
struct compare_part;

/* A check that several requirements share (judge/compare/compare_checks.h).
 * What they differ in is data of their rows. */
struct requirement_check {
    /* What the data say about where the row applies, beyond its own `applies`;
     * NULL: nothing. */
    bool (*applies)(const struct requirement *q, const struct expect *e);
    bool (*holds)(const struct requirement *q, const struct expect *e,
                  const struct record *r, struct finding *f);
    bool (*spoil)(const struct requirement *q, const struct expect *e,
                  struct record *r);
};

/* The answer to one wrong call. */
struct compare_answer {
    const char *name;
    int32_t want, or_want; /* either status is right */
};
enum {
    REQUIREMENT_MAX_ANSWERS = 16 /* of one row */
};

/* Of which steps the parts are checked. */
enum requirement_steps {
    STEPS_FIRST = 0,
    STEPS_RECORDED = 1, /* all whose tensors are recorded */
    STEPS_LATER = 2,    /* those without the first */
    STEPS_FINAL = 3,    /* after the last one */
    STEPS_LOADED = 4,   /* the one that follows a load */
};

/*
 * A row either has `holds` and `spoil` of its own, or names a check that has
 * them and gives it data. (It may also take one of the two from a check, and
 * have the other itself.)
 */
struct requirement {
    const char *id;    /* "comm.all-gather-count": a slug, never reused */
    const char *text;  /* one sentence */
    const char *since; /* version of the suite */
    uint32_t must;     /* 1: MUST, 0: SHOULD */
    uint32_t level;
    const char *needs; /* ids, separated by spaces: a failure there makes this
                          one blocked; NULL: none */
    const char *claim; /* the capability it belongs to; NULL: all engines */
    /* It asks for something beside plain training (a load, a clip, partial
     * sums) by a comparison with the unsharded run. An engine whose plain
     * training is wrong tells nothing of that: it is then blocked
     * (judge_settle_beside_training). */
    bool beside_training;
    /* The same of something that did no harm, which is compared with the case
     * that is without it, where there is one: it is never blocked then. */
    bool harmless;
    /* It is about what is left when all is over: what training computes may be
     * right where it fails, and hides nothing of that. */
    bool of_rest;
    /* It says of any script what others say more closely of the steps of
     * scenarios. Where one of those fails, in whichever case, or no later in
     * the same case, this one tells nothing more: it is then blocked
     * (judge_settle_general). */
    bool general;
    uint32_t profile; /* enum requirement_profile */
    /* Whether the requirement says anything about this case. */
    bool (*applies)(const struct expect *e);
    /* Whether anything was looked at that it speaks of; NULL: it always was.
     * Where not it does not apply. */
    bool (*looked_at)(const struct record *r);
    /* It puts together what all ranks have of whole parameters: not asked of a
     * record in which some do not show that (record_is_sampled). */
    bool across;
    /* Fills *f where it returns false; where it returns true f->ratio may say
     * by what margin. Must not trust any number in r. */
    bool (*holds)(const struct expect *e, const struct record *r,
                  struct finding *f);
    /* Does the least damage to r that `holds` must notice. False: this record
     * has nothing to spoil. */
    bool (*spoil)(const struct expect *e, struct record *r);

    /* Has `holds` and `spoil` where they are NULL above. */
    const struct requirement_check *check;
    /* The data of each check; of the others they are not read. */
    struct { /* check_each_rank */
        bool (*holds)(const struct expect *e, const struct record_rank *rank,
                      uint32_t k, struct finding *f);
        /* The last rank is given to it, or the last one that is sampled. */
        bool (*spoil)(const struct expect *e, struct record_rank *rank);
    } rank;
    struct { /* check_each_part */
        bool (*holds)(const struct expect *e, const struct record *r,
                      const struct compare_part *part, struct finding *f);
        uint32_t stage; /* enum record_stage: there a bit is flipped */
        uint32_t steps; /* enum requirement_steps */
    } part;
    struct { /* check_each_step */
        bool (*holds)(const struct expect *e,
                      const struct record_sequence *sequence, struct finding at,
                      struct finding *f);
        /* The first collective of the first step is given to it. */
        void (*spoil)(struct record_collective *c);
    } step;
    struct { /* check_each_collective */
        bool (*holds)(const struct expect *e, const struct record_collective *c,
                      uint32_t index, struct finding at, struct finding *f);
        void (*spoil)(struct record_collective *c);
    } collective;
    struct {               /* check_zero */
        size_t at;         /* of an uint64_t in struct record_memory */
        uint32_t form;     /* FINDING_COUNT or FINDING_BYTES */
        int64_t step;      /* of the finding */
        const char *stage; /* of the finding */
        const char *note;  /* what it is that there should be none of */
    } zero;
    /* check_answers; a NULL name ends them where they are fewer. */
    struct compare_answer answers[REQUIREMENT_MAX_ANSWERS];
    /* check_curve_of, and of memory: makes the case to compare with, which
     * `words` then name. */
    void (*change)(struct run_case *c);
    uint32_t kind;     /* of a collective, a peak or a point */
    const char *words; /* "with one unit" */
};

/* All requirements of all families; NULL-ended, sorted by id. */
const struct requirement *const *requirement_table(void);

/* What a row or its check says. */
bool requirement_applies(const struct requirement *q, const struct expect *e);
bool requirement_holds(const struct requirement *q, const struct expect *e,
                       const struct record *r, struct finding *f);
bool requirement_spoil(const struct requirement *q, const struct expect *e,
                       struct record *r);

/* The requirement that comes to error or timeout, instead of fail, when a
 * rank crashed or hung. What needs it is then blocked. */
#define REQUIREMENT_RUN "run.survives"
/* The requirement that fails where a rank's run ended with an error. */
#define REQUIREMENT_COMPLETES "run.completes"

/* The index of an id in a NULL-ended table; its length if there is none. */
uint32_t requirement_index(const struct requirement *const *table,
                           const char *id);
uint32_t requirement_count(const struct requirement *const *table);

/* The next id of a list like `needs`, from *at on, which moves behind it.
 * Writes it to id; false: there is none (or it is longer than an id). */
enum {
    REQUIREMENT_ID_BYTES = 64
};
bool requirement_next_need(const char **at, char id[REQUIREMENT_ID_BYTES]);

/* What each row of a table needs, as places in the table: row i needs those
 * from index[first[i]] on, up to index[first[i + 1]], which is the next row's.
 * A need that is not in the table is left out. */
struct requirement_needs {
    uint32_t *first; /* [count + 1] */
    uint32_t *index;
};
/* NOMEM. To be released, also then. */
int requirement_find_needs(const struct requirement *const *table,
                           struct requirement_needs *out);
void requirement_release_needs(struct requirement_needs *needs);

/* An order of n rows in which none stands before what it needs. order[n].
 * NOMEM; FORMAT: a cycle. */
int requirement_order(const struct requirement_needs *needs, uint32_t n,
                      uint32_t *order);

/* What is wrong with the table as such: ids that are no slugs, are ordinals or
 * occur twice; needs that do not exist, go round in a circle or let a MUST
 * wait for a SHOULD; texts that are no sentence; levels out of range; missing
 * functions. FORMAT, and the first fault in `why`. */
int requirement_set_check(const struct requirement *const *table, char *why,
                          uint32_t why_bytes);

#endif
