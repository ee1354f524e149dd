/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_cases.h - records of the cases of a run, by its engines or its adapter,
 * and of the unsharded runs that they are compared with.
 */
#ifndef FSDP_CTS_RUN_CASES_H
#define FSDP_CTS_RUN_CASES_H

#include "cli/play/times.h"
#include "cli/verdict/evaluate.h"
#include "cli/verdict/records_folder.h"
#include "run/adapter_claims.h"

/* What was not to be recorded, for the reader of a status: a line on stderr,
 * unless the run was interrupted, and the exit code. */
int run_cases_say(const struct fsdp_error *error, int status);

/*
 * Every engine's cases first: if one cannot be loaded, that is known at once,
 * and whatever it writes, the baselines come from the suite. With --fail-fast
 * case by case, each judged as soon as it has ended: `e` is what it is judged
 * by, and e->stopped says so if one failed.
 *
 * Of several engines those that were not reached, because the run was stopped
 * before, are taken out of `engines`, and a line on stderr names each.
 *
 * 0; or an exit code, after a line on stderr. A run that is interrupted has
 * records of what has ended, and none of an earlier run.
 */
int run_cases(const struct arguments *a, struct engine_folders *engines,
              struct evaluate_input *e, struct times *times);

/* Records of cases by the adapter of these arguments. As adapter_run: `claims`
 * is NULL where it is to be asked; `claimed` where it claims them all: then it
 * says nothing while it plays. */
int run_cases_by_adapter(const struct arguments *a,
                         const struct case_list *cases, const struct text *text,
                         const char *records,
                         const struct adapter_claims *claims,
                         struct case_list *claimed, struct fsdp_error *error);

#endif
