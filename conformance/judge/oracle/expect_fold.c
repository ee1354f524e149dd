/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect_fold.c - the order in which values of ranks meet, as comm.h writes it.
 * These loops are the judge's own: code that it shared with an engine or a
 * communicator would be wrong in both at once.
 */
#include "judge/oracle/expect.h"

#include <fsdp/arith/cast.h>
#include <math.h>

/* tree(a, b) of comm.h, which defines it by recursion; each sum is rounded.
 * NOLINTNEXTLINE(misc-no-recursion) */
static float fold_tree(uint32_t sum, const float *x, uint32_t a, uint32_t b)
{
    uint32_t mid = a + (b - a + 1) / 2;

    if (b - a == 1) {
        return x[a];
    }
    return fsdp_round(sum,
                      fold_tree(sum, x, a, mid) + fold_tree(sum, x, mid, b));
}

/* Folds n >= 1 values; `owner` < n is the coordinate of the element's owner. */
static float fold_group(uint32_t fold, const struct expect_dtypes *d,
                        const float *x, uint32_t n, uint32_t owner)
{
    uint32_t first = fold == FSDP_FOLD_RING && n > 1 ? (owner + 1) % n : 0;
    float sum = x[first];

    if (fold == FSDP_FOLD_TREE) {
        return fsdp_round(d->reduce, fold_tree(d->sum, x, 0, n));
    }
    for (uint32_t i = 1; i < n; i++) {
        sum = fsdp_round(d->sum, sum + x[(first + i) % n]);
    }
    return fsdp_round(d->reduce, sum);
}

/* Rank = replica * S + shard: first the ranks of each replica, then the
 * replicas. Only the shard owner's reduction survives the reduce-scatter. */
static float fold_mesh(const struct expect *e, const struct expect_dtypes *d,
                       const float *x, uint32_t shard_owner,
                       uint32_t replica_owner)
{
    float replica[WORLD_MAX_RANKS]; /* of each element: not cleared */

    for (uint32_t r = 0; r < e->replicas; r++) {
        replica[r] = fold_group(e->c->fold, d, x + (size_t)r * e->shards,
                                e->shards, shard_owner);
        if (d->between != FSDP_DTYPE_NONE) {
            replica[r] = fsdp_round(d->between, replica[r]);
        }
    }
    return fold_group(e->c->fold, d, replica, e->replicas, replica_owner);
}

float expect_fold(const struct expect *e, uint32_t unit, uint64_t place,
                  const float *x)
{
    uint64_t chunk = e->unit[unit].grad_chunk;
    uint64_t part = chunk / e->replicas + (chunk % e->replicas != 0 ? 1 : 0);

    if (e->c->ranks > WORLD_MAX_RANKS) {
        return NAN; /* no run has so many */
    }
    /* Padding, and units without elements, have no owner. */
    if (chunk == 0 || place >= e->unit[unit].grad_padded) {
        return fold_mesh(e, &e->unit[unit].dtype, x, 0, 0);
    }
    return fold_mesh(e, &e->unit[unit].dtype, x, (uint32_t)(place / chunk),
                     (uint32_t)(place % chunk / part));
}

void expect_partials(const struct expect *e, uint32_t unit, uint64_t place,
                     const float *x, struct expect_factors factor,
                     float partial[WORLD_MAX_RANKS])
{
    const struct expect_dtypes *const d = &e->unit[unit].dtype;
    const uint64_t chunk = e->unit[unit].grad_chunk;
    float sent[WORLD_MAX_RANKS];

    for (uint32_t k = 0; k < e->c->ranks && k < WORLD_MAX_RANKS; k++) {
        sent[k] = fsdp_round(d->reduce,
                             fsdp_round(d->accumulate, x[k] * factor.before));
    }
    for (uint32_t r = 0; r < e->replicas && r < WORLD_MAX_RANKS; r++) {
        partial[r] =
            fold_group(e->c->fold, d, sent + (size_t)r * e->shards, e->shards,
                       chunk > 0 ? (uint32_t)(place / chunk) : 0);
    }
}

float expect_reduce(const struct expect *e, uint32_t unit, uint64_t place,
                    const float *x, struct expect_factors factor)
{
    const uint32_t wire = e->unit[unit].dtype.reduce;
    const uint32_t pending = e->unit[unit].dtype.accumulate;
    float sent[WORLD_MAX_RANKS];

    for (uint32_t k = 0; k < e->c->ranks && k < WORLD_MAX_RANKS; k++) {
        sent[k] = fsdp_round(wire, fsdp_round(pending, x[k] * factor.before));
    }
    return fsdp_round(wire, expect_fold(e, unit, place, sent) * factor.behind);
}

float expect_fold_loss(const struct expect *e, const float *x)
{
    static const struct expect_dtypes f32 = {.reduce = FSDP_DTYPE_F32,
                                             .sum = FSDP_DTYPE_F32};
    float inverse = 1.0f / (float)e->c->ranks;

    if (e->c->ranks > WORLD_MAX_RANKS) {
        return NAN;
    }
    return fold_mesh(e, &f32, x, 0, 0) * inverse;
}
