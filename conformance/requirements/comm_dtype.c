/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_dtype.c - a reduction in another type loses bits and halves traffic.
 */
#include "judge/compare/compare.h"

static bool check(const struct expect *e, const struct record_collective *c,
                  uint32_t index, struct finding at, struct finding *f)
{
    const struct compare_wording wording = {"moves",
                                            record_dtype_name(c->dtype),
                                            record_dtype_name(FSDP_DTYPE_F32)};

    return c->dtype == FSDP_DTYPE_F32 ||
           finding_collective(e, f, at, c, index, &wording);
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
    c->dtype = FSDP_DTYPE_BF16;
    return true;
}

REQUIREMENT(comm_dtype) = {
    .id = "comm.dtype",
    .text = "Every collective of a step moves float32.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_COMM,
    .needs = "comm.nothing-else",
    .applies = compare_case_communicates,
    .holds = holds,
    .spoil = spoil,
};
