/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lanes.h - the 32 accumulators of lanes() (op.h), as vectors.
 *
 * A loop takes whole rounds of 32 elements as vectors, then the rest one by
 * one, then folds.
 */
#ifndef FSDP_CTS_LANES_H
#define FSDP_CTS_LANES_H

#include "vec.h"

enum {
    LANES = 32,
    LANES_VECS = LANES / VEC_WIDTH,
};

struct lanes {
    vec v[LANES_VECS];
};

/* How many of n elements are in whole rounds. */
HOST_INLINE uint64_t lanes_whole(uint64_t n)
{
    return n - n % LANES;
}

/* acc + x */
HOST_INLINE void lanes_add(struct lanes *acc, int v, vec x)
{
    acc->v[v] = acc->v[v] + x;
}

/* fma(a, b, acc) */
HOST_INLINE void lanes_fma(struct lanes *acc, int v, vec a, vec b)
{
    acc->v[v] = vec_fma(a, b, acc->v[v]);
}

HOST_INLINE void lanes_store(const struct lanes *acc, float lane[LANES])
{
    HOST_UNROLL
    for (int v = 0; v < LANES_VECS; v++) {
        vec_store(lane + (uint64_t)v * VEC_WIDTH, acc->v[v]);
    }
}

/* A lane beyond `o` is not read again, so it need not be written. */
HOST_INLINE float lanes_fold(float lane[LANES])
{
    for (int o = LANES / 2; o > 0; o /= 2) {
        for (int l = 0; l < o; l++) {
            lane[l] = lane[l] + lane[l ^ o];
        }
    }
    return lane[0];
}

/* lanes(c; acc + x): the sum of n numbers. */
HOST_INLINE float lanes_sum(const float *x, uint64_t n)
{
    uint64_t whole = lanes_whole(n);
    struct lanes acc = {0};
    float lane[LANES];

    for (uint64_t c = 0; c < whole; c += LANES) {
        HOST_UNROLL
        for (int v = 0; v < LANES_VECS; v++) {
            lanes_add(&acc, v, vec_load(x + c + (uint64_t)v * VEC_WIDTH));
        }
    }
    lanes_store(&acc, lane);
    for (uint64_t c = whole; c < n; c++) {
        lane[c - whole] = lane[c - whole] + x[c];
    }
    return lanes_fold(lane);
}

#endif
