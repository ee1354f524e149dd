/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simd.c - the run-time choice of the instruction set.
 */
#include "simd.h"

#include <fsdp/status.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef HOST_X86
#    include <cpuid.h>
#endif

static const char *const names[SIMD_N_LEVELS] = {
    [SIMD_PORTABLE] = "portable",
    [SIMD_AVX2] = "avx2",
    [SIMD_AVX512] = "avx512",
};

const char *simd_name(enum simd_level level)
{
    return names[level];
}

#ifdef HOST_X86
/* __builtin_cpu_supports knows f16c in clang only from 17 on. AVX's registers
 * are saved where AVX2 is supported. */
static bool has_f16c;

/* Asked once, before ranks are forked: on a virtual processor its host answers,
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

bool simd_has(enum simd_level level)
{
#ifdef HOST_X86
    /* These ask the operating system too, which must save the registers. */
    bool avx2 = __builtin_cpu_supports("avx2") &&
                __builtin_cpu_supports("fma") && has_f16c;
    bool avx512 = __builtin_cpu_supports("avx512f") &&
                  __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512vl");

    return level == SIMD_PORTABLE || (level == SIMD_AVX2 && avx2) ||
           (level == SIMD_AVX512 && avx2 && avx512);
#else
    return level == SIMD_PORTABLE;
#endif
}

static enum simd_level best(void)
{
    if (simd_has(SIMD_AVX512)) {
        return SIMD_AVX512;
    }
    return simd_has(SIMD_AVX2) ? SIMD_AVX2 : SIMD_PORTABLE;
}

int simd_choose(const char *name, enum simd_level *out, char *message,
                size_t bytes)
{
    if (!name || name[0] == '\0') {
        *out = best();
        return FSDP_OK;
    }
    for (unsigned int i = 0; i < SIMD_N_LEVELS; i++) {
        if (strcmp(name, names[i]) != 0) {
            continue;
        }
        if (!simd_has((enum simd_level)i)) {
            snprintf(message, bytes,
                     "FSDP_SIMD=%s: this processor or this build lacks it",
                     name);
            return FSDP_ERR_UNSUPPORTED;
        }
        *out = (enum simd_level)i;
        return FSDP_OK;
    }
    snprintf(message, bytes,
             "FSDP_SIMD=%s: it must be portable, avx2 or avx512", name);
    return FSDP_ERR_INVALID;
}

int simd_choose_environment(enum simd_level *out, char *message, size_t bytes)
{
    return simd_choose(getenv("FSDP_SIMD"), out, message, bytes);
}
