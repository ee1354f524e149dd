/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_all_reduce_count.c - only replicas all-reduce, and only shards.
 */
#include "judge/compare/compare.h"

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_kind_count(e, r, FSDP_ALL_REDUCE, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    return compare_spoil_kind_count(e, r, FSDP_ALL_REDUCE);
}

REQUIREMENT(comm_all_reduce_count) = {
    .id = "comm.all-reduce-count",
    .text = "Each step of each rank makes as many all-reduces as the "
            "windows of its units need, no more and no fewer.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_COMM,
    .needs = "comm.nothing-else",
    .applies = compare_case_communicates,
    .holds = holds,
    .spoil = spoil,
};
