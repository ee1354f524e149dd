/* SPDX-License-Identifier: Apache-2.0 */
/* baselines.c - see baselines.h. */
#include "cli/baselines.h"

#include "cli/selection.h"
#include "cli/supervise.h"

int baselines_run(const struct arguments *a, const struct case_list *cases,
                  const char *records, struct fsdp_error *error)
{
    struct supervise_engine said = {.known = false};
    struct case_list baselines = {NULL, 0};
    int status =
        selection_baselines(cases, &baselines) == 0 ? FSDP_OK : FSDP_ERR_NOMEM;
    const struct supervise_job job = {.text = a->text,
                                      .launcher = a->launcher,
                                      .timeout_ms = a->timeout_ms,
                                      .n_workers = a->jobs,
                                      .world = WORLD_LOCAL,
                                      .cases = baselines.c,
                                      .n_cases = baselines.n,
                                      .records = records,
                                      .engine = "unsharded",
                                      .title = a->quiet ? NULL : "baseline"};

    if (status == FSDP_OK && baselines.n) {
        status = supervise(&job, &said, error);
    }
    manifest_release(&baselines);
    return status;
}
