/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unsharded_fold.c - the folds of the specification (comm.h), literally, over
 * what the ranks of the baseline left behind.
 */
#include "unsharded.h"

#include <fsdp/arith/cast.h>
#include <stddef.h>

/* The specification (comm.h) is recursive. Each sum is rounded to the dtype.
 * NOLINTNEXTLINE(misc-no-recursion) */
static float tree(uint32_t dtype, const float *x, uint32_t n)
{
    uint32_t half = n - n / 2;

    return n == 1 ? x[0]
                  : fsdp_round(dtype, tree(dtype, x, half) +
                                          tree(dtype, x + half, n - half));
}

/* x[0..n-1] in a fold (comm.h), rounded to the dtype of the wire. RANK starts
 * at 0; RING behind the owner, who comes last. */
static float fold(uint32_t how, const struct ref_dtypes *d, const float *x,
                  uint32_t n, uint32_t owner)
{
    uint32_t start = how == FSDP_FOLD_RING ? (owner + 1) % n : 0;
    /* There is always an x[0].
     * NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign) */
    float sum = x[start];

    if (how == FSDP_FOLD_TREE) {
        return fsdp_round(d->reduce, tree(d->sum, x, n));
    }
    for (uint32_t i = 1; i < n; i++) {
        sum = fsdp_round(d->sum, sum + x[(start + i) % n]);
    }
    return fsdp_round(d->reduce, sum);
}

/* Within each shard group, then across replicas. The element lies at `local`
 * in shard `owner`, which is `chunk` long. */
static float fold_mesh(const struct fsdp_sharded *s, const struct ref_dtypes *d,
                       const float *x, uint64_t owner, uint64_t local,
                       uint64_t chunk)
{
    uint64_t part = (chunk + s->replicas - 1) / s->replicas;
    float replica[REF_MAX_RANKS];

    for (uint32_t r = 0; r < s->replicas; r++) {
        replica[r] = fold(s->options.fold, d, x + (uint64_t)r * s->shards,
                          s->shards, (uint32_t)owner);
    }
    return fold(s->options.fold, d, replica, s->replicas,
                (uint32_t)(local / part));
}

static void fold_parameter(struct fsdp_sharded *s, uint32_t p, uint32_t c)
{
    uint32_t u = unsharded_unit(s, p);
    const struct ref_dtypes *d = &s->dtype[u];
    const struct ref_factors *factor = &s->factor[u];
    float x[REF_MAX_RANKS];

    for (uint64_t i = 0; i < fsdp_numel(s->model, p); i++) {
        float *to = &s->reduced[s->start[p] + i];
        uint64_t flat = s->offset[p] + i;
        uint64_t owner = s->block[p] ? i / s->block[p] : flat / s->chunk[u];
        uint64_t local =
            s->block[p] ? s->offset[p] + i % s->block[p] : flat % s->chunk[u];
        float scaled;
        for (uint32_t r = 0; r < s->ranks; r++) {
            float sent = s->rank[r].sum[c][s->start[p] + i] * factor->before;
            x[r] = fsdp_round(d->reduce, fsdp_round(d->accumulate, sent));
        }
        scaled = fsdp_round(d->reduce,
                            fold_mesh(s, d, x, owner, local, s->chunk[u]) *
                                factor->behind);
        *to = s->has_reduced ? *to + scaled : scaled;
    }
}

/* What has been folded; gradients that are pending stay. */
static void forget(struct fsdp_sharded *s, struct rank_gradients *x)
{
    for (uint32_t c = 0; c < x->n; c++) {
        unsharded_drop(s, &x->sum[c]);
    }
    if (x->n > 0 && x->n < x->room) {
        x->sum[0] = x->sum[x->n];
        x->sum[x->n] = NULL;
    }
    x->n = 0;
}

int unsharded_reduce(struct fsdp_sharded *s)
{
    uint32_t n = s->rank[0].n;

    for (uint32_t r = 0; r < s->ranks; r++) {
        if (s->rank[r].n != n) {
            return ref_fail(s->env, FSDP_ERR_INVALID, "unsharded.reduce",
                            "rank %u has made another number of passes", r);
        }
    }
    for (uint32_t c = 0; c < n; c++) {
        for (uint32_t p = 0; p < s->model->n_parameters; p++) {
            if (!unsharded_is_frozen(s, p)) {
                fold_parameter(s, p, c);
            }
        }
        s->has_reduced = true;
    }
    for (uint32_t r = 0; r < s->ranks; r++) {
        forget(s, &s->rank[r]);
    }
    return FSDP_OK;
}
