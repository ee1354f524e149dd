/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evaluate.h - judges the records of a folder: gives the judge its records
 * and the models that the cases' workloads describe.
 */
#ifndef FSDP_CTS_EVALUATE_H
#define FSDP_CTS_EVALUATE_H

#include "cli/line/arguments.h"
#include "judge/judge.h"
#include "judge/judge_store.h"
#include "judge/report/progress.h"
#include "judge/report/report.h"
#include "models/text.h"

/* A random case that fails a MUST, and the first requirement that it fails. */
struct evaluate_failure {
    bool found;
    struct run_case c;
    const struct requirement *requirement;
};

struct evaluate_part {
    const char *records, *baselines; /* as below */
};

struct evaluate_input {
    const char *records;   /* folder */
    const char *baselines; /* the folder with `baseline`; NULL: the same */
    const struct evaluate_part
        *others; /* where more of the run's records are */
    uint32_t n_others;
    const struct case_list *cases;
    const struct text *text;
    const char *const *only;   /* requirements, NULL-ended, or NULL: all */
    const char *const *claims; /* of the engine, or NULL: as recorded */
    const struct judge_drawn *drawn; /* beside them, or NULL */
    /* Why the run was stopped, or NULL; and whether one that is interrupted is
     * judged as far as it came: else it is not judged. */
    const char *stopped;
    bool partly;
    bool timed;                /* how long each requirement took */
    struct progress *progress; /* of judging; NULL: none */
};

/* The records that an input names; to be closed. NOMEM. */
int evaluate_open_store(const struct evaluate_input *e,
                        struct judge_store **out);
/* Where a judge, or a page, finds records and models: these functions and their
 * contexts, and nothing else, are set. */
struct judge_input evaluate_source(const struct evaluate_input *e,
                                   struct judge_store *store);
/* Judges; the caller releases the result. NOMEM; INVALID: the table of
 * requirements is not well formed (a bug of the suite). */
int evaluate_records(const struct evaluate_input *e, struct judge_result *out,
                     struct fsdp_error *error);

/* Of all MUST that case c fails the first cause; false: it fails none. */
bool evaluate_failure_of(const struct judge_result *r, uint32_t c,
                         uint32_t *out);
/* The first random case among these that fails, and how; or not found. */
struct evaluate_failure evaluate_first_failure(const struct judge_result *r);

/* What --requirement and --level leave: NULL-ended, or NULL for all. */
const char *const *evaluate_only(const struct arguments *a, const char **all);

/* One engine's judgement, on its way to reports and an exit code. */
struct evaluate_result {
    struct judge_result r;
    struct report_meta meta;
    bool judged; /* else r is empty, and why has been said */
    int code;
};

/* The exit code that a verdict comes to: of a selection that passes 0, unless
 * --strict. */
int evaluate_code(const struct judge_result *r, const struct arguments *a);
/* Judges as the arguments say. The caller releases out->r. */
void evaluate_engine(const struct evaluate_input *e, const struct arguments *a,
                     const char *rerun, int64_t started,
                     struct evaluate_result *out);
/* What one of several engines is judged by. */
struct evaluate_job {
    struct evaluate_input input;
    const char *rerun;
};
/* Of each engine, at the same time if the arguments allow more than one job;
 * the worst of their codes. The caller releases each result[i].r. */
int evaluate_engines(const struct evaluate_job *jobs, uint32_t n,
                     const struct arguments *a, int64_t started,
                     struct evaluate_result *result);
/* Writes the reports that the arguments ask for, of all that were judged.
 * False: it could not be done, which is on stderr. */
bool evaluate_write(const struct arguments *a,
                    const struct evaluate_result *all, uint32_t n);
/* The text; or, if it is to be quiet, the verdict (of so many engines). */
void evaluate_print(const struct arguments *a,
                    const struct evaluate_result *one, uint32_t n);
/* A line for each engine. */
void evaluate_print_summary(const struct evaluate_result *all, uint32_t n);
/* A line on stderr that says what failed, unless the run was interrupted, which
 * its command says. */
void evaluate_say(const struct fsdp_error *error, int status);
/* The worse of two exit codes. */
int evaluate_worse(int a, int b);

#endif
