/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trial.h - a few cases of one engine, run and judged in a folder that goes
 * with them: for searches, which want to know what fails and keep nothing.
 */
#ifndef FSDP_CTS_TRIAL_H
#define FSDP_CTS_TRIAL_H

#include "cli/verdict/evaluate.h"

struct trial {
    const struct arguments *a; /* how cases are run */
    const char *engine;        /* name or path */
    const struct text *text;
};

/* What is judged of these cases; the caller releases *out, whatever is
 * returned. As supervise and evaluate_records. */
int trial_judge(const struct trial *t, const struct case_list *cases,
                struct judge_result *out);

/* Seconds of a clock that nobody sets. */
double trial_now(void);

#endif
