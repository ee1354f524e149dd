/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_dims.c - a reduction over the wrong group gives plausible values.
 */
#include "judge/compare/compare.h"

static bool check(const struct expect *e, const struct record_collective *c,
                  uint32_t index, struct finding at, struct finding *f)
{
    uint32_t want =
        c->kind == FSDP_ALL_REDUCE ? FSDP_DIM_REPLICATE : FSDP_DIM_SHARD;
    const struct compare_wording wording = {
        "runs over", record_dim_name(c->dim), record_dim_name(want)};

    return c->dim == want || finding_collective(e, f, at, c, index, &wording);
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_collectives(e, r, check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    struct record_collective *c = compare_collective_to_spoil(r);

    (void)e;
    if (c == NULL) {
        return false;
    }
    c->dim = c->dim == FSDP_DIM_SHARD ? FSDP_DIM_REPLICATE : FSDP_DIM_SHARD;
    return true;
}

REQUIREMENT(comm_dims) = {
    .id = "comm.dims",
    .text = "All-gather and reduce-scatter run over the shard "
            "dimension, all-reduce over the replicate dimension.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_COMM,
    .needs = "comm.nothing-else",
    .applies = compare_case_communicates,
    .holds = holds,
    .spoil = spoil,
};
