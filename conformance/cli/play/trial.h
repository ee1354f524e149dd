/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trial.h - runs and judges a few cases of one engine in a folder that is then
 * removed: for searches, which want to know what fails and keep nothing.
 */
#ifndef FSDP_CTS_TRIAL_H
#define FSDP_CTS_TRIAL_H

#include "cli/verdict/evaluate.h"

struct trial {
    const struct arguments *a; /* how cases are run */
    const char *engine;        /* name or path */
    const struct text *text;
};

/* Judges these cases; the caller releases *out, whatever is returned. As
 * supervise and evaluate_records. */
int trial_judge(const struct trial *t, const struct case_list *cases,
                struct judge_result *out);

/* Seconds of the monotonic clock. */
double trial_now(void);

#endif
