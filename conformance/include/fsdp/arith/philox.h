/* SPDX-License-Identifier: Apache-2.0 */
/*
 * philox.h - random numbers that are a pure function of (seed, stream, index),
 * so that any rank can make any slice of any tensor without making the rest.
 *
 * The generator is Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random
 * numbers: as easy as 1, 2, 3, SC 2011): ten rounds of multiplication and
 * exclusive or turn a 128-bit counter into four 32-bit words under a 64-bit
 * key.
 */
#ifndef FSDP_ARITH_PHILOX_H
#define FSDP_ARITH_PHILOX_H

#include <stdint.h>

#include "qualify.h"

struct fsdp_philox_out {
    uint32_t word[4];
};

FSDP_ARITH struct fsdp_philox_out fsdp_philox4x32(const uint32_t key[2],
                                                  const uint32_t counter[4])
{
    uint32_t k0 = key[0];
    uint32_t k1 = key[1];
    struct fsdp_philox_out c = {
        {counter[0], counter[1], counter[2], counter[3]}};

    for (int round = 0; round < 10; round++) {
        uint64_t product0 = (uint64_t)0xd2511f53u * c.word[0];
        uint64_t product1 = (uint64_t)0xcd9e8d57u * c.word[2];

        c.word[0] = (uint32_t)(product1 >> 32) ^ c.word[1] ^ k0;
        c.word[1] = (uint32_t)product1;
        c.word[2] = (uint32_t)(product0 >> 32) ^ c.word[3] ^ k1;
        c.word[3] = (uint32_t)product0;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    return c;
}

/*
 * Words 4 block .. 4 block + 3 of a stream. The key is (low, high) of seed,
 * the counter (low of block, high of block, stream, 0).
 */
FSDP_ARITH struct fsdp_philox_out
fsdp_random_block(uint64_t seed, uint32_t stream, uint64_t block)
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32),
                                 stream, 0};

    return fsdp_philox4x32(key, counter);
}

/* Word number index of a stream: word index mod 4 of block index / 4. */
FSDP_ARITH uint32_t fsdp_random_bits(uint64_t seed, uint32_t stream,
                                     uint64_t index)
{
    return fsdp_random_block(seed, stream, index / 4).word[index % 4];
}

/*
 * The upper 24 bits b of a word as b / 2^23 - 1, which lies in [-1, 1) on the
 * grid of multiples of 2^-23: every value is exact in float32, and each of the
 * 2^24 is equally likely.
 */
FSDP_ARITH float fsdp_uniform_from_bits(uint32_t bits)
{
    return (float)((int32_t)(bits >> 8) - 0x800000) * 0x1p-23f;
}

FSDP_ARITH float fsdp_random_uniform(uint64_t seed, uint32_t stream,
                                     uint64_t index)
{
    return fsdp_uniform_from_bits(fsdp_random_bits(seed, stream, index));
}

#endif
