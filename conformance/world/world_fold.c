/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world_fold.c - the three folds, elementwise, one rounding an addition.
 *
 * They work on blocks of elements, so that the inner loops are plain vector
 * additions and the partial sums of a tree stay in the first level cache.
 * Blocking does not change a bit: no element ever meets another one.
 */
#include "world_fold.h"

#include "world_half.h"

#include <assert.h>
#include <string.h>

enum {
    BLOCK = 1024
};

/* Elements [at, at + n) of the inputs. */
struct block {
    const struct world_sum *how;
    const void *const *in;
    uint64_t at, n;
};

/* `sum` is never one of the inputs, which is what lets these be vectors. */
static void add_block(float *restrict sum, const float *restrict x, uint64_t n)
{
    assert((uintptr_t)(sum + n) <= (uintptr_t)x ||
           (uintptr_t)(x + n) <= (uintptr_t)sum);
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

/* Rounds a sum as the caller wants it. */
static void round_to(uint32_t dtype, float *x, uint64_t n)
{
    if (dtype != FSDP_DTYPE_F32) {
        world_half_of(dtype)->round(x, n);
    }
}

/* Input r as float32: where it is, or widened into `room`. */
static const float *input(const struct block *b, uint32_t r, float *room)
{
    if (b->how->dtype == FSDP_DTYPE_F32) {
        return (const float *)b->in[r] + b->at;
    }
    world_half_of(b->how->dtype)
        ->widen((const uint16_t *)b->in[r] + b->at, b->n, room);
    return room;
}

static void begin_sum(const struct block *b, uint32_t r, float *sum)
{
    const float *x = input(b, r, sum);

    if (x != sum) {
        memcpy(sum, x, b->n * sizeof(*sum));
    }
}

static void add_input(const struct block *b, uint32_t r, float *sum)
{
    float room[BLOCK];

    add_block(sum, input(b, r, room), b->n);
    round_to(b->how->sum_dtype, sum, b->n);
}

static void begin_with_two(const struct block *b, uint32_t r, uint32_t other,
                           float *sum)
{
    if (b->how->dtype == FSDP_DTYPE_F32) {
        add_two(sum, (const float *)b->in[r] + b->at,
                (const float *)b->in[other] + b->at, b->n);
        return;
    }
    begin_sum(b, r, sum);
    add_input(b, other, sum);
}

/* ((x[first] + x[first+1]) + ...) over all inputs, indices modulo n_in.
 * first = 0 is RANK; first = owner + 1 is RING, where the owner is last. */
static void fold_chain(const struct block *b, uint32_t first, uint32_t n_in,
                       float *sum)
{
    if (n_in == 1) {
        begin_sum(b, 0, sum);
        return;
    }
    begin_with_two(b, first % n_in, (first + 1) % n_in, sum);
    for (uint32_t k = 2; k < n_in; k++) {
        add_input(b, (first + k) % n_in, sum);
    }
}

/* tree(first, end) of comm.h. The depth is log2 of the number of inputs.
 * NOLINTNEXTLINE(misc-no-recursion): comm.h defines it so. */
static void fold_tree(const struct block *b, uint32_t first, uint32_t end,
                      float *sum)
{
    if (end - first == 1) {
        begin_sum(b, first, sum);
        return;
    }
    if (end - first == 2) {
        begin_with_two(b, first, first + 1, sum);
        return;
    }
    uint32_t mid = first + (end - first + 1) / 2;
    float right[BLOCK];
    fold_tree(b, first, mid, sum);
    fold_tree(b, mid, end, right);
    add_block(sum, right, b->n);
    round_to(b->how->sum_dtype, sum, b->n);
}

/* Adds two inputs of 16 bits: one addition, rounded once whatever sum_dtype is.
 * Their order does not matter but for which of two NaNs is handed on. */
static void fold_two(const struct world_sum *how, const void *const *in,
                     uint64_t n, void *out)
{
    const uint32_t first =
        how->fold == FSDP_FOLD_RING ? (how->owner + 1) % 2 : 0;

    world_half_of(how->dtype)->add(in[first], in[1 - first], n, out);
}

void world_fold(const struct world_sum *how, const void *const *in,
                uint32_t n_in, uint64_t n, void *out)
{
    if (n_in == 2 && how->dtype != FSDP_DTYPE_F32) {
        fold_two(how, in, n, out);
        return;
    }
    for (uint64_t at = 0; at < n; at += BLOCK) {
        struct block b = {how, in, at, n - at < BLOCK ? n - at : BLOCK};
        /* The sum is not made in `out`, which may be an input that is still to
         * be read. */
        float sum[BLOCK];
        if (how->fold == FSDP_FOLD_TREE) {
            fold_tree(&b, 0, n_in, sum);
        } else {
            uint32_t first = how->fold == FSDP_FOLD_RING ? how->owner + 1 : 0;
            fold_chain(&b, first, n_in, sum);
        }
        if (how->dtype == FSDP_DTYPE_F32) {
            memcpy((float *)out + at, sum, b.n * sizeof(*sum));
        } else {
            world_half_of(how->dtype)->narrow(sum, b.n, (uint16_t *)out + at);
        }
    }
}
