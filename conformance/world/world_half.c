/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world_half.c - the loops that every processor has, and which are taken.
 */
#include "world_half_loops.h"

#include <fsdp/model.h>

const struct world_half world_half_plain[2] = WORLD_HALF_TABLE;

const struct world_half *world_half_of(uint32_t dtype)
{
    const int format = dtype == FSDP_DTYPE_F16;

#if defined(__x86_64__)
    if (world_half_avx2[0].add && __builtin_cpu_supports("avx2") &&
        __builtin_cpu_supports("f16c")) {
        return &world_half_avx2[format];
    }
#endif
    return &world_half_plain[format];
}
