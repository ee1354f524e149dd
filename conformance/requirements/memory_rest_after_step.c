/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_rest_after_step.c - what a step leaves behind grows into the peak of
 * the next.
 */
#include "judge/compare/compare_memory.h"

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    for (uint32_t t = 0; t < e->c->steps; t++) {
        struct finding at = finding_at("memory", t, -1, k);

        if (rank->memory.after_step == NULL || t >= rank->n_steps) {
            return finding_text(f, at,
                                "memory after this step is not recorded");
        }
        if (!compare_rest(e, &rank->memory.after_step[t], at, f)) {
            return false;
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

    if (rank->memory.after_step == NULL || rank->n_steps == 0) {
        return false;
    }
    rank->memory.after_step[rank->n_steps - 1].live[FSDP_GRAD_SHARD]++;
    return true;
}

REQUIREMENT(memory_rest_after_step) = {
    .id = "memory.rest-after-step",
    .text = "After every step and zero_grad the live bytes of each kind "
            "are back at rest, to the byte.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_MEMORY,
    .needs = "memory.rest-after-shard run.shows-every-step",
    .applies = compare_case_trains,
    .holds = holds,
    .spoil = spoil,
};
