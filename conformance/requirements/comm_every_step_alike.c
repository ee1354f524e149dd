/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_every_step_alike.c - a step that communicates otherwise than the first
 * shows a cache, a leak or a counter.
 */
#include "judge/compare/compare.h"

static bool applies(const struct expect *e)
{
    return compare_case_communicates(e) && e->c->steps > 1;
}

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    const struct record_sequence *first = NULL;

    for (uint32_t t = 0; t < e->c->steps; t++) {
        struct finding at = finding_at("collectives", t, -1, k);
        const struct record_sequence *s = compare_step_sequence(rank, t);

        if (s == NULL) {
            return finding_text(f, at,
                                "this step's collectives are not recorded");
        }
        first = t == 0 ? s : first;
        if (s->n != first->n) {
            return finding_count(f, at, s->n, first->n,
                                 "collectives in this step");
        }
        for (uint32_t i = 0; i < s->n; i++) {
            if (!compare_same_collective(&s->c[i], &first->c[i])) {
                at.unit = s->c[i].unit;
                return finding_count(
                    f, at, s->c[i].kind, first->c[i].kind,
                    "a collective that differs from the first step's");
            }
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

    /* Only steps that do not share one sequence can be told apart. */
    if (rank->step_sequence == NULL || rank->n_steps < 2 ||
        compare_sequence(rank, rank->step_sequence[0]) == NULL ||
        rank->sequence[rank->step_sequence[0]].n == 0) {
        return false;
    }
    rank->step_sequence[rank->n_steps - 1] = rank->shard_sequence;
    return true;
}

REQUIREMENT(comm_every_step_alike) = {
    .id = "comm.every-step-alike",
    .text = "Every step of a rank makes the same collectives in the "
            "same order as its first.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_COMM,
    .needs = "comm.bytes comm.order",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
