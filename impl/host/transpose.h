/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transpose.h - transposes a matrix in blocks of 4 x 4, for which every level
 * has registers.
 */
#ifndef FSDP_CTS_TRANSPOSE_H
#define FSDP_CTS_TRANSPOSE_H

#include "level.h"

#include <stdint.h>

typedef float vec_4 __attribute__((vector_size(16)));
typedef float vec_4_at __attribute__((vector_size(16), aligned(4), may_alias));

/* Four of the eight elements of a and b. gcc has __builtin_shufflevector since
 * 12, and __builtin_shuffle always; clang has the first alone. */
#if defined(__clang__) || __GNUC__ >= 12
#    define SHUFFLE_4(a, b, i, j, k, l) \
        __builtin_shufflevector(a, b, i, j, k, l)
#else
typedef int32_t index_4 __attribute__((vector_size(16)));
#    define SHUFFLE_4(a, b, i, j, k, l) \
        __builtin_shuffle(a, b, (index_4){i, j, k, l})
#endif

HOST_INLINE void transpose_4x4(float *to, uint64_t to_stride, const float *from,
                               uint64_t from_stride)
{
    vec_4 a = *(const vec_4_at *)from;
    vec_4 b = *(const vec_4_at *)(from + from_stride);
    vec_4 c = *(const vec_4_at *)(from + 2 * from_stride);
    vec_4 d = *(const vec_4_at *)(from + 3 * from_stride);
    vec_4 ab_low = SHUFFLE_4(a, b, 0, 4, 1, 5);
    vec_4 ab_high = SHUFFLE_4(a, b, 2, 6, 3, 7);
    vec_4 cd_low = SHUFFLE_4(c, d, 0, 4, 1, 5);
    vec_4 cd_high = SHUFFLE_4(c, d, 2, 6, 3, 7);

    *(vec_4_at *)to = SHUFFLE_4(ab_low, cd_low, 0, 1, 4, 5);
    *(vec_4_at *)(to + to_stride) = SHUFFLE_4(ab_low, cd_low, 2, 3, 6, 7);
    *(vec_4_at *)(to + 2 * to_stride) = SHUFFLE_4(ab_high, cd_high, 0, 1, 4, 5);
    *(vec_4_at *)(to + 3 * to_stride) = SHUFFLE_4(ab_high, cd_high, 2, 3, 6, 7);
}

/* to[j, i] = from[i, j] for i < rows, j < columns. Blocks at the far edges
 * reach back over their neighbours rather than being smaller. */
static inline void transpose(float *to, uint64_t to_stride, const float *from,
                             uint64_t from_stride, uint64_t rows,
                             uint64_t columns)
{
    if (rows < 4 || columns < 4) {
        for (uint64_t j = 0; j < columns; j++) {
            for (uint64_t i = 0; i < rows; i++) {
                to[j * to_stride + i] = from[i * from_stride + j];
            }
        }
        return;
    }
    for (uint64_t j = 0; j < columns; j += 4) {
        j = j + 4 > columns ? columns - 4 : j;
        for (uint64_t i = 0; i < rows; i += 4) {
            i = i + 4 > rows ? rows - 4 : i;
            transpose_4x4(to + j * to_stride + i, to_stride,
                          from + i * from_stride + j, from_stride);
        }
    }
}

#endif
