/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world_fold.c - the three folds, elementwise, one rounding an addition.
 *
 * They work on blocks of elements, so that the inner loops are plain vector
 * additions and the partial sums of a tree stay in the first level cache.
 * Blocking does not change a bit: no element ever meets another one.
 */
#include "world_fold.h"

#include <string.h>

enum {
    BLOCK = 1024
};

/* `sum` is never one of the inputs, which is what lets these be vectors. */
static void add(float *restrict sum, const float *restrict x, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        sum[i] = sum[i] + x[i];
    }
}

static void add_two(float *restrict sum, const float *x, const float *y,
                    uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        sum[i] = x[i] + y[i];
    }
}

/* ((x[first] + x[first+1]) + ...) over all inputs, indices modulo n_in.
 * first = 0 is RANK; first = owner + 1 is RING, where the owner is last. */
static void fold_chain(uint32_t first, const float *const *in, uint32_t n_in,
                       uint64_t at, uint64_t n, float *sum)
{
    if (n_in == 1) {
        memcpy(sum, in[0] + at, n * sizeof(float));
        return;
    }
    add_two(sum, in[first % n_in] + at, in[(first + 1) % n_in] + at, n);
    for (uint32_t k = 2; k < n_in; k++) {
        add(sum, in[(first + k) % n_in] + at, n);
    }
}

/* tree(a, b) of comm.h. The depth is log2 of the number of inputs.
 * NOLINTNEXTLINE(misc-no-recursion): comm.h defines it so. */
static void fold_tree(const float *const *in, uint32_t a, uint32_t b,
                      uint64_t at, uint64_t n, float *sum)
{
    if (b - a == 1) {
        memcpy(sum, in[a] + at, n * sizeof(float));
        return;
    }
    if (b - a == 2) {
        add_two(sum, in[a] + at, in[a + 1] + at, n);
        return;
    }
    uint32_t mid = a + (b - a + 1) / 2;
    float right[BLOCK];
    fold_tree(in, a, mid, at, n, sum);
    fold_tree(in, mid, b, at, n, right);
    add(sum, right, n);
}

void world_fold(uint32_t fold, uint32_t owner, const float *const *in,
                uint32_t n_in, uint64_t n, float *out)
{
    for (uint64_t at = 0; at < n; at += BLOCK) {
        uint64_t m = n - at < BLOCK ? n - at : BLOCK;
        /* Not in `out`, which may be an input that is still to be read. */
        float sum[BLOCK];
        if (fold == FSDP_FOLD_TREE) {
            fold_tree(in, 0, n_in, at, m, sum);
        } else {
            uint32_t first = fold == FSDP_FOLD_RING ? owner + 1 : 0;
            fold_chain(first, in, n_in, at, m, sum);
        }
        memcpy(out + at, sum, m * sizeof(float));
    }
}
