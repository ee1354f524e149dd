/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_reduce_scatter_count.c - a unit is reduced once for each synchronised
 * microbatch, and not at all without sync.
 */
#include "judge/compare/compare.h"

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_kind_count(e, r, FSDP_REDUCE_SCATTER, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    return compare_spoil_kind_count(e, r, FSDP_REDUCE_SCATTER);
}

REQUIREMENT(comm_reduce_scatter_count) = {
    .id = "comm.reduce-scatter-count",
    .text = "Each step of each rank makes as many reduce-scatters as "
            "the windows of its units need, no more and no fewer.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_COMM,
    .needs = "comm.nothing-else",
    .applies = compare_case_communicates,
    .holds = holds,
    .spoil = spoil,
};
