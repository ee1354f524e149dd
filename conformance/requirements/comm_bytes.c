/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_bytes.c - what crosses the network is the price of sharding.
 */
#include "judge/compare/compare.h"

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

/* How many of the all-gathers that a cancelled pass may have made ahead were
 * made: as many as there are beyond the step's own. */
static uint32_t made_ahead(const struct expect *e,
                           const struct record_sequence *sequence)
{
    uint64_t got = compare_count(sequence, FSDP_ALL_GATHER);
    uint64_t want = compare_count(&e->step, FSDP_ALL_GATHER);

    return got <= want               ? 0
           : got - want < e->ahead.n ? (uint32_t)(got - want)
                                     : e->ahead.n;
}

static bool check(const struct expect *e,
                  const struct record_sequence *sequence, struct finding at,
                  struct finding *f)
{
    /* They are made in order: those are the first ones. */
    const struct record_sequence ahead = {.n = made_ahead(e, sequence),
                                          .c = e->ahead.c};

    for (uint32_t kind = 0; kind <= FSDP_ALL_REDUCE; kind++) {
        for (uint32_t u = 0; u < e->units->n_units; u++) {
            uint64_t got = bytes_of(sequence, kind, u);
            uint64_t want =
                bytes_of(&e->step, kind, u) + bytes_of(&ahead, kind, u);

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
