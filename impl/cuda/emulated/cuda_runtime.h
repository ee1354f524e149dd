/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_runtime.h - TEST ONLY: the words of CUDA C++ that the kernels of
 * impl/cuda use, for an ordinary C++ compiler. The threads of a block are
 * fibers (emulated_block.h), blocks run one after the other.
 */
#ifndef FSDP_CTS_CUDA_RUNTIME_H
#define FSDP_CTS_CUDA_RUNTIME_H

#include "cuda_runtime_api.h"
#include "emulated_block.h"

#include <math.h>
#include <new>
#include <stdlib.h>
#include <string.h>
#include <tuple>

#define __global__
#define __device__
#define __constant__
#define __host__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
/* A block runs on one thread of the CPU, and no two run at once on the same
 * thread. */
#define __shared__ static __thread

/* Vectors lie at multiples of their size: to read or write one elsewhere is an
 * error. The compiler must not know that they always do. */
static inline void emulated_vector_at(const void *p, uintptr_t bytes)
{
    uintptr_t at = reinterpret_cast<uintptr_t>(p);

    __asm__("" : "+r"(at));
    if (at % bytes != 0) {
        emulated_misaligned();
    }
}

struct alignas(8) float2 {
    float x, y;

    float2() = default;
    float2(float a, float b) : x(a), y(b)
    {
    }
    float2(const float2 &o) : x(o.x), y(o.y)
    {
        emulated_vector_at(&o, 8);
    }
    float2 &operator=(const float2 &o)
    {
        emulated_vector_at(this, 8);
        x = o.x;
        y = o.y;
        return *this;
    }
};

struct alignas(16) float4 {
    float x, y, z, w;

    float4() = default;
    float4(float a, float b, float c, float d) : x(a), y(b), z(c), w(d)
    {
    }
    float4(const float4 &o) : x(o.x), y(o.y), z(o.z), w(o.w)
    {
        emulated_vector_at(&o, 16);
    }
    float4 &operator=(const float4 &o)
    {
        emulated_vector_at(this, 16);
        x = o.x;
        y = o.y;
        z = o.z;
        w = o.w;
        return *this;
    }
};

static inline void __syncthreads(void)
{
    emulated_barrier(0);
}

static inline void __syncwarp(unsigned int mask = 0xffffffffu)
{
    (void)mask;
    emulated_barrier(1);
}

static inline float __shfl_xor_sync(unsigned int mask, float x, int with)
{
    uint32_t bits;

    (void)mask;
    memcpy(&bits, &x, sizeof(bits));
    bits = emulated_from_lane(bits, emulated_lane() ^ (unsigned int)with);
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static inline unsigned int __ballot_sync(unsigned int mask, int predicate)
{
    (void)mask;
    return emulated_ballot(predicate != 0);
}

/* The real function is within two units in the last place; so is this neighbour
 * of the quotient. */
static inline float __fdividef(float a, float b)
{
    return nextafterf(a / b, 0.0f);
}

/* As in PTX: a NaN gives way to a number, and +0 is above -0. */
static inline float emulated_maximum(float a, float b)
{
    if (a != a || a == b) {
        return a != a || __builtin_signbit(a) ? b : a;
    }
    return b > a ? b : a;
}
static inline float emulated_minimum(float a, float b)
{
    return -emulated_maximum(-a, -b);
}
#define fmaxf emulated_maximum
#define fminf emulated_minimum

template <class V> static inline void __stwb(V *to, V v)
{
    *to = v;
}

static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}

/* A launch; its arguments are copied, and wait until the stream has come that
 * far. */
template <class... P> struct emulated_call {
    void (*kernel)(P...);
    std::tuple<P...> arguments;

    static void run(void *self)
    {
        emulated_call *c = static_cast<emulated_call *>(self);
        std::apply(c->kernel, c->arguments);
    }
};

template <class... P, class... A>
static inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config,
                                             void (*kernel)(P...),
                                             A &&...arguments)
{
    static_assert(sizeof(std::tuple<P...>) <= 4096,
                  "parameters of a kernel have 4 KiB");
    void *memory = malloc(sizeof(emulated_call<P...>));

    if (!memory) {
        return cudaErrorMemoryAllocation;
    }
    new (memory) emulated_call<P...>{kernel, std::tuple<P...>(arguments...)};
    return emulated_launch(config, reinterpret_cast<const void *>(kernel),
                           emulated_call<P...>::run, memory);
}

#endif
