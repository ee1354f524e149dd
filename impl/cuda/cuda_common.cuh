/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_common.cuh - what kernels share: how they are launched, loops over
 * elements, lanes() and maximum of op.h in a warp.
 *
 * Everything is compiled with --fmad=false: a product and a sum are one
 * operation only where fmaf says so.
 */
#ifndef FSDP_CTS_CUDA_COMMON_CUH
#define FSDP_CTS_CUDA_COMMON_CUH

#include "cuda_kernels.h"

#include <cuda_runtime.h>
#include <fsdp/arith/bits.h>
#include <math.h>

enum {
    WARP = 32,
    THREADS = 256,  /* of a block, unless said otherwise */
    RESIDENT = 8,   /* blocks of THREADS that a multiprocessor holds */
    IN_FLIGHT = 4,  /* elements that a thread has loaded at once */
    TURNS = 16,     /* blocks for each that is resident, so that the last ones
                     * end together even where fewer than RESIDENT are */
    LAUNCHES = 2047 /* millions of blocks: more than any operator has */
};

#define WHOLE_WARP 0xffffffffu

/* The grid has one dimension: kernels divide. No block, no launch. */
template <class... Parameters, class... Arguments>
static cudaError_t launch(const struct cuda_target *target, uint64_t blocks,
                          unsigned int threads, void (*kernel)(Parameters...),
                          Arguments... arguments)
{
    cudaLaunchConfig_t config = {};

    if (blocks == 0) {
        return cudaSuccess;
    }
    if (blocks > (uint64_t)LAUNCHES << 20) {
        return cudaErrorInvalidConfiguration;
    }
    config.gridDim = dim3((unsigned int)blocks, 1, 1);
    config.blockDim = dim3(threads, 1, 1);
    config.stream = target->stream;
    return cudaLaunchKernelEx(&config, kernel,
                              static_cast<Parameters>(arguments)...);
}

/*
 * Loads kernels to the GPU. Otherwise the runtime does so at a kernel's first
 * launch, in the middle of a step: it then takes memory, and may wait for work
 * that waits for other ranks.
 */
template <class... Kernels> static cudaError_t load(Kernels... kernels)
{
    const void *const all[] = {reinterpret_cast<const void *>(kernels)...};
    struct cudaFuncAttributes attributes;
    cudaError_t status = cudaSuccess;

    for (const void *one : all) {
        if (status == cudaSuccess) {
            status = cudaFuncGetAttributes(&attributes, one);
        }
    }
    return status;
}

static inline uint64_t divide_up(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

/* How many blocks make a loop over n elements fill the GPU once. */
static inline uint64_t blocks_for(const struct cuda_target *target, uint64_t n)
{
    uint64_t want = divide_up(n, THREADS);
    uint64_t most = (uint64_t)target->processors * RESIDENT;

    return want < most ? want : most;
}

/* Division by a number that the host knows: where both numbers have 32 bits, by
 * a few products instead of a loop. */
struct divisor {
    uint64_t n, magic; /* magic: 2^64 / n, rounded up; 0 if there is none */

    __device__ __forceinline__ uint64_t quotient(uint64_t i) const
    {
        const uint64_t low = (uint32_t)i;

        if (magic == 0 || i != low) {
            return i / n;
        }
        return ((magic >> 32) * low + ((uint32_t)magic * low >> 32)) >> 32;
    }
};

static inline struct divisor divisor_of(uint64_t n)
{
    return {n, n > 1 && n >> 32 == 0 ? UINT64_MAX / n + 1 : 0};
}

/*
 * A loop over elements. F has a type `in`, `load(i)` that reads what element i
 * needs, and `store(i, in)` that computes and writes it. Several elements are
 * loaded before the first is stored: a store could, for all that the compiler
 * knows, change what a later load reads.
 */
template <class F>
__global__ void __launch_bounds__(THREADS) each(const uint64_t n, const F f)
{
    constexpr uint64_t at_once = IN_FLIGHT * THREADS;

    for (uint64_t first = blockIdx.x * at_once; first < n;
         first += gridDim.x * at_once) {
        const uint64_t i = first + threadIdx.x;

        if (n - first >= at_once) {
            typename F::in a = f.load(i);
            typename F::in b = f.load(i + THREADS);
            typename F::in c = f.load(i + 2 * THREADS);
            typename F::in d = f.load(i + 3 * THREADS);

            f.store(i, a);
            f.store(i + THREADS, b);
            f.store(i + 2 * THREADS, c);
            f.store(i + 3 * THREADS, d);
        } else {
            for (uint64_t j = i; j < n; j += THREADS) {
                f.store(j, f.load(j));
            }
        }
    }
}

template <class F>
static cudaError_t launch_each(const struct cuda_target *target, uint64_t n,
                               F f)
{
    const uint64_t want = divide_up(n, IN_FLIGHT * THREADS);
    const uint64_t most = (uint64_t)target->processors * RESIDENT * TURNS;

    return launch(target, want < most ? want : most, THREADS, each<F>, n, f);
}

/* The end of lanes(): every lane has the sum. */
static __device__ __forceinline__ float warp_sum(float x)
{
#pragma unroll
    for (int o = WARP / 2; o > 0; o /= 2) {
        x = x + __shfl_xor_sync(WHOLE_WARP, x, o);
    }
    return x;
}

/* maximum: NaN if either is NaN; +0 is above -0. */
static __device__ __forceinline__ float maximum(float a, float b)
{
    if (a != a || b != b) {
        return a + b;
    }
    if (a == b) {
        return (fsdp_f32_bits(a) & FSDP_F32_SIGN) != 0 ? b : a;
    }
    return a > b ? a : b;
}

static __device__ __forceinline__ float warp_maximum(float x)
{
#pragma unroll
    for (int o = WARP / 2; o > 0; o /= 2) {
        x = maximum(x, __shfl_xor_sync(WHOLE_WARP, x, o));
    }
    return x;
}

/* For kernels with a warp a row: the row, and the lane. */
static __device__ __forceinline__ uint64_t warp_row(void)
{
    return (uint64_t)blockIdx.x * (THREADS / WARP) + threadIdx.x / WARP;
}

static __device__ __forceinline__ unsigned int warp_lane(void)
{
    return threadIdx.x % WARP;
}

static inline uint64_t blocks_for_rows(uint64_t rows)
{
    return divide_up(rows, THREADS / WARP);
}

template <class T> static inline const T *in_of(const struct fsdp_op *op, int i)
{
    return static_cast<const T *>(op->in[i].p);
}

template <class T> static inline T *out_of(const struct fsdp_op *op, int i)
{
    return static_cast<T *>(op->out[i].p);
}

#endif
