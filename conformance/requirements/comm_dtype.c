/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_dtype.c - a reduction in another type loses bits and halves traffic.
 */
#include "judge/compare.h"

static bool check(const struct expect *e,
                  const struct record_sequence *sequence, struct finding at,
                  struct finding *f)
{
    for (uint32_t i = 0; i < sequence->n; i++) {
        const struct record_collective *c = &sequence->c[i];

        if (c->dtype != FSDP_DTYPE_F32) {
            struct compare_wording wording = {
                "moves", record_dtype_name(c->dtype),
                record_dtype_name(FSDP_DTYPE_F32)};

            return finding_collective(e, f, at, c, i, &wording);
        }
    }
    return true;
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_steps(e, r, check, f);
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
