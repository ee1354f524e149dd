/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arith_cuda_test.cu - shows that nvcc compiles the shared arithmetic for the
 * device and for the host. A program that links it may run both and compare
 * bits.
 */
#include "bf16.h"
#include "exp.h"
#include "f16.h"
#include "log.h"
#include "philox.h"
#include "rsqrt.h"
#include "tanh.h"

/* The bits of every function at x; seven words for each input. */
#define ARITH_WORDS 7

__host__ __device__ static void arith_words(uint32_t x, uint32_t *words)
{
    float value = fsdp_f32_from_bits(x);

    words[0] = fsdp_f32_bits(fsdp_expf(value));
    words[1] = fsdp_f32_bits(fsdp_logf(value));
    words[2] = fsdp_f32_bits(fsdp_tanhf(value));
    words[3] = fsdp_f32_bits(fsdp_rsqrtf(value));
    words[4] = fsdp_f32_bits(fsdp_bf16_to_f32(fsdp_bf16_from_f32(value)));
    words[5] = fsdp_f32_bits(fsdp_random_uniform(x, x + 1, x + 2));
    words[6] = fsdp_f32_bits(fsdp_f16_to_f32(fsdp_f16_from_f32(value)));
}

extern "C" __global__ void arith_kernel(const uint32_t *x, uint32_t *words,
                                        uint64_t count)
{
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < count) {
        arith_words(x[i], words + ARITH_WORDS * i);
    }
}

extern "C" void arith_host(const uint32_t *x, uint32_t *words, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        arith_words(x[i], words + ARITH_WORDS * i);
    }
}
