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
        *others; /* folders with more of the run's records */
    uint32_t n_others;
    const struct case_list *cases;
    const struct text *text;
    const char *const *only;   /* requirements, NULL-ended, or NULL: all */
    const char *const *claims; /* claims of the engine, or NULL: as recorded */
    const struct judge_drawn *drawn; /* drawn scripts that were played beside
                                        the cases, or NULL */
    /* Why the run was stopped, or NULL; and whether an interrupted run is
     * judged as far as it came, instead of not at all. */
    const char *stopped;
    bool partly;
    bool timed;                /* measure how long each requirement takes */
    struct progress *progress; /* shows how far judging is; NULL: not shown */
};

/* Opens the records that an input names; *out is to be closed. NOMEM. */
int evaluate_open_store(const struct evaluate_input *e,
                        struct judge_store **out);
/* Where a judge, or a page, finds records and models. Only these functions and
 * their contexts are set. */
struct judge_input evaluate_source(const struct evaluate_input *e,
                                   struct judge_store *store);
/* Judges; the caller releases the result. NOMEM; INVALID: the table of
 * requirements is not well formed (a bug of the suite). */
int evaluate_records(const struct evaluate_input *e, struct judge_result *out,
                     struct fsdp_error *error);

/* The first cause for which case c fails a MUST; false: it fails none. */
bool evaluate_failure_of(const struct judge_result *r, uint32_t c,
                         uint32_t *out);
/* The first random case among these that fails, and how; or not found. */
struct evaluate_failure evaluate_first_failure(const struct judge_result *r);

/* The requirements that --requirement and --level leave: NULL-ended, or NULL
 * for all. */
const char *const *evaluate_only(const struct arguments *a, const char **all);

/* One engine's judgement, from which reports and an exit code are made. */
struct evaluate_result {
    struct judge_result r;
    struct report_meta meta;
    bool judged; /* if false, r is empty, and the reason has been printed */
    int code;
};

/* The exit code for a verdict. A selection that passes has 0, unless with
 * --strict. */
int evaluate_code(const struct judge_result *r, const struct arguments *a);
/* Judges an engine as the arguments say. The caller releases out->r. */
void evaluate_engine(const struct evaluate_input *e, const struct arguments *a,
                     const char *rerun, int64_t started,
                     struct evaluate_result *out);
/* How one of several engines is judged. */
struct evaluate_job {
    struct evaluate_input input;
    const char *rerun;
};
/* Judges each engine, several at the same time if the arguments allow more than
 * one job; returns the worst exit code. The caller releases each
 * result[i].r. */
int evaluate_engines(const struct evaluate_job *jobs, uint32_t n,
                     const struct arguments *a, int64_t started,
                     struct evaluate_result *result);
/* Writes the reports that the arguments ask for, on all engines that were
 * judged. False: it could not be done, which a line on stderr says. */
bool evaluate_write(const struct arguments *a,
                    const struct evaluate_result *all, uint32_t n);
/* Prints the text of a report; or, with --quiet, only the verdict (on so many
 * engines). */
void evaluate_print(const struct arguments *a,
                    const struct evaluate_result *one, uint32_t n);
/* Prints a line for each engine. */
void evaluate_print_summary(const struct evaluate_result *all, uint32_t n);
/* Prints a line on stderr that says what failed, unless the run was
 * interrupted, which its command says. */
void evaluate_say(const struct fsdp_error *error, int status);
/* The worse of two exit codes. */
int evaluate_worse(int a, int b);

#endif
