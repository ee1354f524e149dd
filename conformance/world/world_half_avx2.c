/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world_half_avx2.c - the loops for AVX2 and F16C, where the build has them.
 */
#if defined(__AVX2__) && defined(__F16C__)
#    include "world_half_loops.h"
const struct world_half world_half_avx2[2] = WORLD_HALF_TABLE;
#else
#    include "world_half.h"
const struct world_half world_half_avx2[2];
#endif
