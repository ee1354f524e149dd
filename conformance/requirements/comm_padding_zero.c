/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_padding_zero.c - what pads shards on the wire is +0, so that
 * nothing that was there before can reach a result by way of a reduction.
 */
#include "judge/compare/compare.h"

static bool applies(const struct expect *e)
{
    return compare_case_trains(e) && e->shards > 1;
}

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    uint64_t got = rank->memory.dirty_padding;

    (void)e;
    return got == 0 ||
           finding_count(f, finding_at("wire", -1, -1, k), got, 0,
                         "elements of padding in all-gathers and "
                         "reduce-scatters that were not +0: fill the tail of "
                         "each flat parameter, or block of rows, and gradient");
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
    rank->memory.dirty_padding++;
    return true;
}

REQUIREMENT(comm_padding_zero) = {
    .id = "comm.padding-zero",
    .text = "The padding of parameters and gradients is +0 on the wire.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_COMM,
    .needs = "run.completes stream.no-race comm.message-size "
             "comm.packing-order",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
