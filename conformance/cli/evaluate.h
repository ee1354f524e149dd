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

struct evaluation {
    const char *records;   /* folder */
    const char *baselines; /* whose baseline/ is looked at; NULL: the same */
    const struct case_list *cases;
    const struct text *text;
    const char *const *only;   /* requirements, NULL-ended, or NULL: all */
    const char *const *claims; /* of the engine, or NULL: as recorded */
};

/* Judges; the caller releases the result. NOMEM; INVALID: the table of
 * requirements is not well formed (a bug of the suite). */
int evaluate(const struct evaluation *e, struct judge_result *out,
             struct fsdp_error *error);

/* What --requirement and --level leave: NULL-ended, or NULL for all. */
const char *const *evaluate_only(const struct arguments *a,
                                 struct name_list *storage, const char **all);

/* Judges as the arguments say, writes the reports they ask for, prints the
 * text; returns an exit code. */
int evaluate_and_report(const struct evaluation *e, const struct arguments *a,
                        const char *rerun, int64_t started);

#endif
