/* SPDX-License-Identifier: Apache-2.0 */
/* arguments_job.c - what options say about how cases are run. */
#include "cli/arguments.h"

struct supervise_job arguments_job(const struct arguments *a)
{
    /* A day is no deadline; and a wrapper may be slow, as an adapter may. */
    const uint32_t day = 24 * 3600 * 1000;
    const uint32_t timeout_ms = a->debug  ? day
                                : a->wrap ? a->timeout_ms * 10
                                          : a->timeout_ms;

    return (struct supervise_job){.text = a->text,
                                  .mutant = a->mutant,
                                  .world = a->world,
                                  .launcher = a->launcher,
                                  .timeout_ms = timeout_ms,
                                  .n_workers = a->jobs,
                                  .isolate = a->isolate,
                                  .sample = a->sample_ranks,
                                  .wrap = a->wrap,
                                  .debug = a->debug,
                                  .trace = a->trace != NULL};
}
