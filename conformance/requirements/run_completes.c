/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_completes.c - what the engine was asked to do it can do, without an
 * error.
 */
#include "judge/compare/compare.h"

#include <string.h>

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    const struct fsdp_error *error = &rank->error;
    int where = (int)strnlen(error->where, sizeof(error->where));
    int message = (int)strnlen(error->message, sizeof(error->message));

    (void)e;
    if (rank->status == FSDP_OK) {
        return true;
    }
    return finding_note(
        f, finding_at("run", -1, -1, k), "ended with %d (%s)%s%.*s%s%.*s",
        rank->status, fsdp_status_text(rank->status), where > 0 ? " in " : "",
        where, error->where, message > 0 ? ": " : "", message, error->message);
}

/* Aborted ranks only followed another one, so they come last. */
static bool check_causes(const struct expect *e, const struct record_rank *rank,
                         uint32_t k, struct finding *f)
{
    return rank->status == FSDP_ERR_ABORTED || check(e, rank, k, f);
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_ranks(e, r, check_causes, f) &&
           compare_ranks(e, r, check, f);
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
