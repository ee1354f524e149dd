/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_bytes.c - what crosses the network is the price of sharding.
 */
#include "judge/compare.h"

/* What a rank gives or gets of one kind and unit. */
static uint64_t bytes_of(const struct record_sequence *s, uint32_t kind,
                         uint32_t unit)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < s->n; i++) {
        if (s->c[i].kind == kind && s->c[i].unit == unit) {
            bytes += s->c[i].n * fsdp_dtype_bytes(s->c[i].dtype);
        }
    }
    return bytes;
}

static bool check(const struct expect *e,
                  const struct record_sequence *sequence, struct finding at,
                  struct finding *f)
{
    for (uint32_t kind = 0; kind <= FSDP_ALL_REDUCE; kind++) {
        for (uint32_t u = 0; u < e->units->n_units; u++) {
            uint64_t got = bytes_of(sequence, kind, u);
            uint64_t want = bytes_of(&e->step, kind, u);

            if (got != want) {
                at.unit = u;
                return finding_bytes(f, at, got, want,
                                     kind == FSDP_ALL_GATHER
                                         ? "all-gathered in this step"
                                     : kind == FSDP_REDUCE_SCATTER
                                         ? "reduce-scattered in this step"
                                         : "all-reduced in this step");
            }
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
    c->n++;
    return true;
}

REQUIREMENT(comm_bytes) = {
    .id = "comm.bytes",
    .text = "In each step every unit moves the expected bytes in each "
            "kind of collective.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_COMM,
    .needs = "comm.all-gather-count comm.reduce-scatter-count "
             "comm.all-reduce-count comm.message-size comm.dtype",
    .applies = compare_case_communicates,
    .holds = holds,
    .spoil = spoil,
};
