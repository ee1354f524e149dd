/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_chance.c - the random numbers of drawn scripts.
 */
#include "script/script_chance.h"

#include <fsdp/arith/philox.h>

enum {
    SCRIPT_STREAM = 0x12000000, /* of random numbers; cases have another */
};

uint32_t chance_below(struct chance *c, uint32_t n)
{
    const uint32_t word = fsdp_random_bits(c->seed, SCRIPT_STREAM, c->at++);

    return (uint32_t)(((uint64_t)word * n) >> 32);
}

bool chance_one_in(struct chance *c, uint32_t n)
{
    return chance_below(c, n) == 0;
}

uint32_t chance_weighted(struct chance *c, const uint32_t *weights, uint32_t n)
{
    uint32_t total = 0;
    uint32_t at;
    uint32_t i = 0;

    for (uint32_t k = 0; k < n; k++) {
        total += weights[k];
    }
    at = chance_below(c, total);
    while (at >= weights[i]) {
        at -= weights[i++];
    }
    return i;
}
