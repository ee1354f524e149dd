/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_steps_do_not_grow.c - what grows with steps ends a long run.
 */
#include "judge/compare/compare.h"

static bool applies(const struct expect *e)
{
    return compare_case_trains(e) && e->c->steps > 2;
}

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    const uint64_t *n = rank->memory.allocations;

    for (uint32_t t = 2; t < e->c->steps; t++) {
        struct finding at = finding_at("memory", t, -1, k);

        if (n == NULL || t >= rank->n_steps) {
            return finding_text(
                f, at, "the allocations of this step are not recorded");
        }
        if (case_resumes(e->c) && t == e->c->steps / 2) {
            continue; /* another life begins */
        }
        if (n[t] > n[1]) {
            return finding_count(f, at, n[t], n[1],
                                 "allocations in this step; the second step's");
        }
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

    if (rank->memory.allocations == NULL || rank->n_steps < 3) {
        return false;
    }
    rank->memory.allocations[rank->n_steps - 1] =
        rank->memory.allocations[1] + 1;
    return true;
}

REQUIREMENT(memory_steps_do_not_grow) = {
    .id = "memory.steps-do-not-grow",
    .text = "After the second step no step allocates more often than "
            "the second.",
    .since = "1.0",
    .must = 0,
    .level = LEVEL_MEMORY,
    .needs = "run.shows-every-step memory.rest-after-step",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
