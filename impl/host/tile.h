/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tile.h - the one inner loop of GEMM, its gradient and attention: a tile of
 * chains that stay in registers for all of `depth`.
 *
 * A chain may be cut anywhere: its sum goes to memory and comes back without
 * being rounded, so blocks of depth, taken in order, change no bit.
 */
#ifndef FSDP_CTS_TILE_H
#define FSDP_CTS_TILE_H

#include "vec.h"

#include <stdbool.h>

enum {
    TILE_REGISTERS = 32
};

/* Element (r, k) of the left factor is a[r * row + k * step]; the right one
 * has a row of vectors for each k; c has `rows` rows of them. */
struct tile {
    uint64_t depth;
    const float *a;
    uint64_t row, step;
    const float *b;
    uint64_t b_stride;
    float *c;
    uint64_t c_stride;
};

/* c = c + a b, each element a chain; `fresh`: from +0. `rows` and `vecs` are
 * constants where this is called, so that the loops over them disappear. */
HOST_INLINE void tile_chains(const int rows, const int vecs,
                             const struct tile *t, bool fresh)
{
    vec acc[TILE_REGISTERS];
    const float *a = t->a;
    const float *b = t->b;
    const uint64_t row = t->row;
    const uint64_t step = t->step;
    const uint64_t b_stride = t->b_stride;

    HOST_UNROLL
    for (int r = 0; r < rows; r++) {
        HOST_UNROLL
        for (int v = 0; v < vecs; v++) {
            float *c =
                t->c + (uint64_t)r * t->c_stride + (uint64_t)v * VEC_WIDTH;

            acc[r * vecs + v] = fresh ? vec_splat(0.0f) : vec_load(c);
        }
    }
    for (uint64_t k = t->depth; k > 0; k--) {
        vec right[8];

        HOST_UNROLL
        for (int v = 0; v < vecs; v++) {
            right[v] = vec_load(b + (uint64_t)v * VEC_WIDTH);
        }
        HOST_UNROLL
        for (int r = 0; r < rows; r++) {
            vec left = vec_splat(a[(uint64_t)r * row]);

            HOST_UNROLL
            for (int v = 0; v < vecs; v++) {
                acc[r * vecs + v] = vec_fma(left, right[v], acc[r * vecs + v]);
            }
        }
        a += step;
        b += b_stride;
    }
    HOST_UNROLL
    for (int r = 0; r < rows; r++) {
        HOST_UNROLL
        for (int v = 0; v < vecs; v++) {
            vec_store(t->c + (uint64_t)r * t->c_stride +
                          (uint64_t)v * VEC_WIDTH,
                      acc[r * vecs + v]);
        }
    }
}

#endif
