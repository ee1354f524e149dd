/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_place.h - finds places for values whose lifetimes are known beforehand.
 */
#ifndef FSDP_CTS_IMPL_PLACE_H
#define FSDP_CTS_IMPL_PLACE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    IMPL_GRAIN = 16
}; /* elements: ranges begin at multiples of 64 bytes */

/* n elements, rounded up to whole grains. */
static inline uint64_t impl_room(uint64_t n)
{
    return (n + IMPL_GRAIN - 1) / IMPL_GRAIN * IMPL_GRAIN;
}

#define IMPL_NO_LIFE UINT32_MAX

/* A value that lives from moment `begin` up to, not including, `end`. */
struct impl_life {
    uint64_t size; /* elements; 0: nothing, placed anywhere */
    uint32_t begin, end;

    uint64_t offset; /* elements, from the start of the storage */
    /* The one that ended last of the values that had its place before. */
    uint32_t after;
    uint64_t died; /* the engine sets it: ticket of its end */
};

/* The most that lives at once, in whole grains: no placement needs less. */
uint64_t impl_place_load(const struct impl_life *life, uint32_t n);

/* How long impl_place looks for a better placement: tries for each of three
 * orders. */
enum {
    IMPL_QUICKLY = 64,
    IMPL_THOROUGHLY = 3000,
};

/* Sets offset and after of n lives so that no two overlap in time and place;
 * *room is how much they need together. NOMEM. */
int impl_place(struct impl_life *life, uint32_t n, uint32_t effort,
               uint64_t *room);

#endif
