/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_cases.h - makes the records of the cases of a run, by its engines or its
 * adapter, and those of the unsharded runs that they are compared with.
 */
#ifndef FSDP_CTS_RUN_CASES_H
#define FSDP_CTS_RUN_CASES_H

#include "cli/play/times.h"
#include "cli/verdict/evaluate.h"
#include "cli/verdict/records_folder.h"
#include "run/adapter_claims.h"

/* Says on stderr what could not be recorded, unless the run was interrupted.
 * Returns the exit code for the status. */
int run_cases_say(const struct fsdp_error *error, int status);

/*
 * Runs every engine's cases before the unsharded runs: if an engine cannot be
 * loaded, that is known at once, and whatever an engine writes, the suite's
 * baselines come after it. With --fail-fast a few cases at a time, each judged
 * as soon as it has ended: `e` says how, and e->stopped is set if one failed.
 *
 * If there are several engines and the run was stopped early, those that it did
 * not reach are taken out of `engines`, and a line on stderr names each.
 *
 * 0; or an exit code, after a line on stderr. A run that is interrupted has the
 * records of cases that have ended, and none of an earlier run.
 */
int run_cases(const struct arguments *a, struct engine_folders *engines,
              struct evaluate_input *e, struct times *times);

/* Makes records of cases by the adapter of these arguments. As adapter_run.
 * `claims`: NULL if the adapter is to be asked. `claimed`: NULL if it claims
 * all cases; then nothing is said while it plays. */
int run_cases_by_adapter(const struct arguments *a,
                         const struct case_list *cases, const struct text *text,
                         const char *records,
                         const struct adapter_claims *claims,
                         struct case_list *claimed, struct fsdp_error *error);

#endif
