/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simd.h - which instruction set the operators use: the same sources are
 * compiled once per level, give the same bits, and one is taken at run time.
 */
#ifndef FSDP_CTS_SIMD_H
#define FSDP_CTS_SIMD_H

#include <stdbool.h>
#include <stddef.h>

enum simd_level {
    SIMD_PORTABLE = 0,
    SIMD_AVX2 = 1, /* with FMA and F16C */
    SIMD_AVX512 = 2,
    SIMD_N_LEVELS = 3,
};

/* "portable", "avx2" or "avx512". */
const char *simd_name(enum simd_level level);

/* Whether this build has the level, and this processor its instructions. */
bool simd_has(enum simd_level level);

/*
 * The level called `name`, or the best if that is NULL or empty. INVALID for an
 * unknown name, UNSUPPORTED for a level that this build or processor does not
 * have; a sentence that names it is written to `message`.
 */
int simd_choose(const char *name, enum simd_level *out, char *message,
                size_t bytes);

/* The same, with the name from the environment variable FSDP_SIMD. */
int simd_choose_environment(enum simd_level *out, char *message, size_t bytes);

#endif
