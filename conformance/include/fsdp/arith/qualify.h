/* SPDX-License-Identifier: Apache-2.0 */
/*
 * qualify.h - how a function of the shared arithmetic is declared.
 *
 * The headers of this folder define the arithmetic that a C loop and a GPU
 * kernel have in common, so gcc and nvcc compile the same text. All of it is
 * pure: no state, no errno, no dependence on libm but for sqrt(), which IEEE
 * 754 defines exactly.
 *
 * Build without value-changing flags (-ffp-contract=off, --fmad=false, never
 * fast-math): error terms are computed with sums that reassociation breaks.
 */
#ifndef FSDP_ARITH_QUALIFY_H
#define FSDP_ARITH_QUALIFY_H

#ifdef __CUDACC__
#    define FSDP_ARITH __host__ __device__ static inline
#else
#    define FSDP_ARITH static inline
#endif

#endif
