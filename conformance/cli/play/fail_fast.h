/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fail_fast.h - run --fail-fast: a few cases at a time, as many as there are
 * workers, are run and judged, until one of them fails.
 */
#ifndef FSDP_CTS_FAIL_FAST_H
#define FSDP_CTS_FAIL_FAST_H

#include "cli/verdict/evaluate.h"
#include "run/supervise.h"

/*
 * Runs e->cases with the job's engine into job->records, and their unsharded
 * runs into e->baselines, as far as they are not there. The rest of the job is
 * as for supervise(). Where one fails e->stopped says so, and the rest was not
 * run. As supervise().
 */
int fail_fast(const struct supervise_job *job, struct evaluate_input *e,
              struct supervise_engine *said, struct fsdp_error *error);

#endif
