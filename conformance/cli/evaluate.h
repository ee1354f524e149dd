/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evaluate.h - judges the records of a folder: gives the judge its records
 * and the models that the cases' workloads describe.
 */
#ifndef FSDP_CTS_EVALUATE_H
#define FSDP_CTS_EVALUATE_H

#include "cli/arguments.h"
#include "cli/text.h"
#include "judge/judge.h"

/* A random case that fails a MUST, and the first requirement that it fails. */
struct evaluate_failure {
    bool found;
    struct run_case c;
    const struct requirement *requirement;
};

struct evaluation {
    const char *records; /* folder */
    const struct case_list *cases;
    const struct text *text;
    const char *const *only;   /* requirements, NULL-ended, or NULL: all */
    const char *const *claims; /* of the engine, or NULL: as recorded */
    struct evaluate_failure *failure; /* NULL: of no interest */
};

/* Judges; the caller releases the result. NOMEM; INVALID: the table of
 * requirements is not well formed (a bug of the suite). */
int evaluate(const struct evaluation *e, struct judge_result *out,
             struct fsdp_error *error);

/* Of all MUST that case c fails the first, by level; false: it fails none. */
bool evaluate_failure_of(const struct judge_result *r, uint32_t c,
                         uint32_t *out);
/* The first random case among these that fails, and how; or not found. */
struct evaluate_failure evaluate_first_failure(const struct judge_result *r);

/* What --requirement and --level leave: NULL-ended, or NULL for all. */
const char *const *evaluate_only(const struct arguments *a,
                                 struct name_list *storage, const char **all);

/* Judges as the arguments say, writes the reports they ask for, prints the
 * text; returns an exit code. */
int evaluate_and_report(const struct evaluation *e, const struct arguments *a,
                        const char *rerun, int64_t started);

#endif
