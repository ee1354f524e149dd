/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_number.cuh - how a number lies in memory, and the type that it is
 * computed in: a class for each dtype.
 */
#ifndef FSDP_CTS_CUDA_NUMBER_CUH
#define FSDP_CTS_CUDA_NUMBER_CUH

#include <fsdp/arith/bf16.h>
#include <fsdp/arith/f16.h>

struct f32 {
    typedef float type;

    static __device__ float wide(float x)
    {
        return x;
    }
    static __device__ float narrow(float x)
    {
        return x;
    }
};

struct bf16 {
    typedef uint16_t type;

    static __device__ float wide(uint16_t x)
    {
        return fsdp_bf16_to_f32(x);
    }
    static __device__ uint16_t narrow(float x)
    {
        return fsdp_bf16_from_f32(x);
    }
};

struct f16 {
    typedef uint16_t type;

    static __device__ float wide(uint16_t x)
    {
        return fsdp_f16_to_f32(x);
    }
    static __device__ uint16_t narrow(float x)
    {
        return fsdp_f16_from_f32(x);
    }
};

#endif
