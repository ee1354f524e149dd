/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_ranks_present.c - a rank that left no record has not been judged.
 */
#include "judge/compare/compare.h"

static bool applies(const struct expect *e)
{
    return e->c != NULL;
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    if (r->n_ranks != e->c->ranks) {
        return finding_count(f, finding_at("run", -1, -1, -1), r->n_ranks,
                             e->c->ranks, "ranks in the record");
    }
    for (uint32_t k = 0; k < e->c->ranks; k++) {
        if (compare_rank(r, k) == NULL) {
            return finding_text(f, finding_at("run", -1, -1, k),
                                "this rank's files are missing or cut short");
        }
    }
    return true;
}

static bool spoil(const struct expect *e, struct record *r)
{
    struct record_rank *rank = compare_rank_to_spoil(r, r->n_ranks - 1);

    (void)e;
    if (rank == NULL) {
        return false;
    }
    rank->present = false;
    return true;
}

REQUIREMENT(run_ranks_present) = {
    .id = "run.ranks-present",
    .text = "Every rank of the world leaves a whole record.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_RUN,
    .needs = "run.survives",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
