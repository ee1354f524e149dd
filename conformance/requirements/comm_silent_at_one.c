/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_silent_at_one.c - one rank has nobody to talk to.
 */
#include "judge/compare/compare.h"

#include <stdlib.h>

static bool applies(const struct expect *e)
{
    return compare_case_trains(e) && e->c->ranks == 1;
}

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    (void)e;
    for (uint32_t i = 0; i < rank->n_sequences; i++) {
        const struct record_sequence *s = compare_sequence(rank, i);

        if (s == NULL || s->n != 0) {
            return finding_count(f, finding_at("collectives", -1, -1, k),
                                 s == NULL ? 1 : s->n, 0,
                                 "collectives of one rank");
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

    if (rank->sequence == NULL || rank->n_sequences == 0 ||
        rank->sequence[0].n != 0) {
        return false;
    }
    free(rank->sequence[0].c);
    rank->sequence[0].c = calloc(1, sizeof(*rank->sequence[0].c));
    rank->sequence[0].n = rank->sequence[0].c != NULL;
    return rank->sequence[0].n == 1;
}

REQUIREMENT(comm_silent_at_one) = {
    .id = "comm.silent-at-one",
    .text = "With one rank nothing is communicated at all.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_COMM,
    .needs = "run.completes",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
