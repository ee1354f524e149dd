/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_completes.c - what the engine was asked to do it can do, without an
 * error.
 */
#include "judge/compare.h"

#include <stdio.h>

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    char note[sizeof(f->note)];

    (void)e;
    if (rank->status == FSDP_OK) {
        return true;
    }
    snprintf(note, sizeof(note), "ended with %d (%s): %.90s", rank->status,
             fsdp_status_text(rank->status), rank->error.message);
    return finding_text(f, finding_at("run", -1, -1, k), note);
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_ranks(e, r, check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    struct record_rank *rank = compare_rank_to_spoil(r, r->n_ranks - 1);

    (void)e;
    if (rank == NULL) {
        return false;
    }
    rank->status = FSDP_ERR_INTERNAL;
    return true;
}

REQUIREMENT(run_completes) = {
    .id = "run.completes",
    .text = "Every rank trains to the end and reports no error.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_RUN,
    .needs = "run.survives run.ranks-present",
    .applies = compare_case_trains,
    .holds = holds,
    .spoil = spoil,
};
