/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_all_gather_count.c - a unit is gathered once for each of its windows.
 */
#include "judge/compare/compare.h"

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_kind_count(e, r, FSDP_ALL_GATHER, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    return compare_spoil_kind_count(e, r, FSDP_ALL_GATHER);
}

REQUIREMENT(comm_all_gather_count) = {
    .id = "comm.all-gather-count",
    .text = "Each step of each rank makes as many all-gathers as the "
            "windows of its units need, no more and no fewer.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_COMM,
    .needs = "comm.nothing-else",
    .applies = compare_case_communicates,
    .holds = holds,
    .spoil = spoil,
};
