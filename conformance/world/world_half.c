/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world_half.c - the loops for any processor; and the choice of the loops on
 * this one.
 */
#include "world_half_loops.h"

#include <fsdp/model.h>

#if defined(__x86_64__)
#    include <cpuid.h>
#endif

const struct world_half world_half_plain[2] = WORLD_HALF_TABLE;

#if defined(__x86_64__)
/* clang has no name for it in __builtin_cpu_supports before 17. */
static bool has_f16c;

/* Asked once, before ranks are forked: on a virtual processor the host answers,
 * which takes as long as a thousand additions. */
__attribute__((constructor)) static void ask_f16c(void)
{
    unsigned a;
    unsigned b;
    unsigned c;
    unsigned d;

    has_f16c = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

const struct world_half *world_half_of(uint32_t dtype)
{
    const int format = dtype == FSDP_DTYPE_F16;

#if defined(__x86_64__)
    if (world_half_avx2[0].add && __builtin_cpu_supports("avx2") && has_f16c) {
        return &world_half_avx2[format];
    }
#endif
    return &world_half_plain[format];
}
