/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unsharded_fold.c - the folds of the specification (comm.h), literally, over
 * what the ranks of the baseline left behind.
 */
#include "unsharded.h"

#include <fsdp/arith/cast.h>
#include <string.h>

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

/* Where an element lies: at `local` in shard `owner`, which is `chunk` long. */
struct place {
    uint64_t owner, local, chunk;
};

static struct place find_place(const struct fsdp_sharded *s, uint32_t p,
                               uint64_t i)
{
    const uint64_t chunk = s->chunk[unsharded_unit(s, p)];
    const uint64_t block = s->block[p];
    const uint64_t flat = s->offset[p] + i;

    return block ? (struct place){i / block, s->offset[p] + i % block, chunk}
                 : (struct place){flat / chunk, flat % chunk, chunk};
}

/* Element i of p in the c-th contribution, within each replica's shard group.
 */
static void fold_shards(const struct fsdp_sharded *s, uint32_t p, uint64_t i,
                        uint32_t c, uint64_t owner, float *replica)
{
    const uint32_t u = unsharded_unit(s, p);
    const struct ref_dtypes *d = &s->dtype[u];
    float x[REF_MAX_RANKS];

    for (uint32_t r = 0; r < s->ranks; r++) {
        const struct contribution *of = &s->rank[r].of[c];
        float sent = of->sum[s->start[p] + i] * of->factor[u].before;
        x[r] = fsdp_round(d->reduce, fsdp_round(d->accumulate, sent));
    }
    for (uint32_t r = 0; r < s->replicas; r++) {
        replica[r] = fold(s->options.fold, d, x + (uint64_t)r * s->shards,
                          s->shards, (uint32_t)owner);
    }
}

/* Contributions [first, last] of one element: each is folded over the shards,
 * these sums add up, the replicas meet once. */
static float fold_element(const struct fsdp_sharded *s, uint32_t p, uint64_t i,
                          uint32_t first, uint32_t last)
{
    const struct ref_dtypes *d = &s->dtype[unsharded_unit(s, p)];
    const struct place at = find_place(s, p, i);
    uint64_t part = (at.chunk + s->replicas - 1) / s->replicas;
    float sum[REF_MAX_RANKS];
    float next[REF_MAX_RANKS];

    fold_shards(s, p, i, first, at.owner, sum);
    for (uint32_t c = first + 1; c <= last; c++) {
        fold_shards(s, p, i, c, at.owner, next);
        for (uint32_t r = 0; r < s->replicas; r++) {
            sum[r] = fsdp_round(d->reduce, sum[r] + next[r]);
        }
    }
    return fold(s->options.fold, d, sum, s->replicas,
                (uint32_t)(at.local / part));
}

static void fold_parameter(struct fsdp_sharded *s, uint32_t p, uint32_t first,
                           uint32_t last)
{
    const uint32_t u = unsharded_unit(s, p);
    const float behind = s->rank[0].of[last].factor[u].behind;

    for (uint64_t i = 0; i < fsdp_numel(s->model, p); i++) {
        float *to = &s->reduced[s->start[p] + i];
        float scaled = fsdp_round(s->dtype[u].reduce,
                                  fold_element(s, p, i, first, last) * behind);
        *to = s->folded[u] ? *to + scaled : scaled;
    }
}

static void fold_unit(struct fsdp_sharded *s, uint32_t u, uint32_t n)
{
    uint32_t first = 0;

    for (uint32_t c = 0; c < n; c++) {
        if (!s->rank[0].of[c].completes[u]) {
            continue;
        }
        for (uint32_t p = 0; p < s->model->n_parameters; p++) {
            if (unsharded_unit(s, p) == u && unsharded_is_stepped(s, p)) {
                fold_parameter(s, p, first, c);
            }
        }
        s->folded[u] = true;
        first = c + 1;
    }
}

int unsharded_reduce(struct fsdp_sharded *s)
{
    for (uint32_t u = 0; u < s->units->n_units; u++) {
        const uint32_t n = unsharded_n_complete(s, &s->rank[0], u);

        for (uint32_t r = 0; r < s->ranks; r++) {
            if (unsharded_n_complete(s, &s->rank[r], u) != n) {
                return ref_fail(s->env, FSDP_ERR_INVALID, "unsharded.reduce",
                                "rank %u has made another number of passes", r);
            }
        }
        if (n > 0 && !s->has_reduced) { /* of what has no backward it is +0 */
            memset(s->reduced, 0, s->total * sizeof(*s->reduced));
            s->has_reduced = true;
        }
        fold_unit(s, u, n);
        for (uint32_t r = 0; r < s->ranks; r++) {
            unsharded_forget(s, &s->rank[r], u, n);
        }
    }
    return FSDP_OK;
}

int unsharded_reduce_all(struct fsdp_sharded *s, const char *where)
{
    if (unsharded_is_pending(s)) {
        return ref_fail(s->env, FSDP_ERR_INVALID, where,
                        "a rank has gradients that were not reduced, or "
                        "not across replicas");
    }
    return unsharded_reduce(s);
}
