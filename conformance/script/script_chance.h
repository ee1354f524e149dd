/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_chance.h - the random numbers of drawn scripts: whole numbers alone,
 * so that a seed gives the same script on every machine.
 */
#ifndef FSDP_CTS_SCRIPT_CHANCE_H
#define FSDP_CTS_SCRIPT_CHANCE_H

#include <stdbool.h>
#include <stdint.h>

struct chance {
    uint64_t seed, at;
};

/* 0 .. n - 1; n > 0 */
uint32_t chance_below(struct chance *c, uint32_t n);
/* True with a chance of 1 in n. */
bool chance_one_in(struct chance *c, uint32_t n);
/* An index of `weights`; each comes as often as its weight says. Not all may be
 * 0. */
uint32_t chance_weighted(struct chance *c, const uint32_t *weights, uint32_t n);

#endif
