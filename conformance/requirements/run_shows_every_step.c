/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_shows_every_step.c - a record that breaks off cannot be judged by what
 * it lacks.
 */
#include "judge/compare/compare.h"

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    struct finding at = finding_at("run", -1, -1, k);

    if (rank->n_steps != e->c->steps || rank->step_sequence == NULL) {
        return finding_count(f, at, rank->n_steps, e->c->steps,
                             "steps recorded");
    }
    if (rank->n_losses != compare_n_losses(e) || rank->loss == NULL) {
        return finding_count(f, at, rank->n_losses, compare_n_losses(e),
                             "losses recorded");
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

    if (rank->n_losses == 0) {
        return false;
    }
    rank->n_losses--;
    return true;
}

REQUIREMENT(run_shows_every_step) = {
    .id = "run.shows-every-step",
    .text = "Every rank records each step and the loss of each "
            "microbatch.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_RUN,
    .needs = "run.completes",
    .applies = compare_case_trains,
    .holds = holds,
    .spoil = spoil,
};
