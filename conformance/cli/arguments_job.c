/* SPDX-License-Identifier: Apache-2.0 */
/* arguments_job.c - what options say about how cases are run. */
#include "cli/arguments.h"

struct supervise_job arguments_job(const struct arguments *a)
{
    return (struct supervise_job){.text = a->text,
                                  .mutant = a->mutant,
                                  .world = a->world,
                                  .launcher = a->launcher,
                                  .timeout_ms = a->timeout_ms,
                                  .n_workers = a->jobs,
                                  .isolate = a->isolate,
                                  .trace = a->trace != NULL};
}
