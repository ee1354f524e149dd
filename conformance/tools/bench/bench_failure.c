/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_failure.c - what fails leaves the others to be measured: the first
 * failure is kept, and told in the end.
 */
#include "tools/bench/bench.h"

#include <stdio.h>

void bench_failed(struct bench_plan *plan, struct bench_failure *failure,
                  int status)
{
    if (status == FSDP_OK) {
        return;
    }
    if (failure->status == FSDP_OK) {
        failure->status = status;
        failure->error = plan->error;
    } else {
        fprintf(stderr, "and: %s\n",
                plan->error.message[0] ? plan->error.message
                                       : fsdp_status_text(status));
    }
    plan->error = (struct fsdp_error){0};
}

int bench_first_failure(struct bench_plan *plan,
                        const struct bench_failure *failure)
{
    plan->error = failure->error;
    return failure->status;
}
