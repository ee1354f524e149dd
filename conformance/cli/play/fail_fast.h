/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fail_fast.h - run --fail-fast: runs and judges a few cases at a time, as many
 * as there are workers, until one fails.
 */
#ifndef FSDP_CTS_FAIL_FAST_H
#define FSDP_CTS_FAIL_FAST_H

#include "cli/verdict/evaluate.h"
#include "run/supervise.h"

/*
 * Runs e->cases with the job's engine into job->records, and those of their
 * unsharded runs that are missing into e->baselines. The rest of the job is as
 * for supervise(). If a case fails, e->stopped says so, and the cases behind it
 * are not run. As supervise().
 */
int fail_fast(const struct supervise_job *job, struct evaluate_input *e,
              struct supervise_engine *said, struct fsdp_error *error);

#endif
