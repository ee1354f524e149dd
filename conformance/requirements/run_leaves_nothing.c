/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_leaves_nothing.c - destroy and close give everything back, also after a
 * failure.
 */
#include "judge/compare/compare.h"

static bool applies(const struct expect *e)
{
    return e->c != NULL;
}

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    struct finding at = finding_at("end", -1, -1, k);

    (void)e;
    if (rank->memory.left_live != 0) {
        return finding_bytes(f, at, rank->memory.left_live, 0,
                             "still live after destroy and close");
    }
    if (rank->memory.left_storage != 0) {
        return finding_bytes(f, at, rank->memory.left_storage, 0,
                             "never freed");
    }
    return true;
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
    rank->memory.left_storage++;
    return true;
}

REQUIREMENT(run_leaves_nothing) = {
    .id = "run.leaves-nothing",
    .text = "After destroy and close no rank has live ranges or storage "
            "left.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_RUN,
    .needs = "run.ranks-present run.completes",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
