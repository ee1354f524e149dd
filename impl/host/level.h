/* SPDX-License-Identifier: Apache-2.0 */
/*
 * level.h - what tells the several compilations of one operator source apart:
 * the build defines HOST_LEVEL as portable, avx2 or avx512, and
 * HOST_NAME(host_gemm) is then host_gemm_avx2.
 */
#ifndef FSDP_CTS_LEVEL_H
#define FSDP_CTS_LEVEL_H

#ifndef HOST_LEVEL
#    define HOST_LEVEL portable
#endif

#define HOST_PASTE(name, level)  name##_##level
#define HOST_EXPAND(name, level) HOST_PASTE(name, level)
#define HOST_NAME(name)          HOST_EXPAND(name, HOST_LEVEL)

/*
 * In front of a loop whose rounds do not depend on one another although what
 * it reads and what it writes may be the same range.
 */
#ifdef __clang__
#    define HOST_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#    define HOST_INDEPENDENT _Pragma("GCC ivdep")
#endif

#define HOST_UNROLL _Pragma("GCC unroll 32")

#define HOST_INLINE static inline __attribute__((always_inline))

#endif
