/* SPDX-License-Identifier: Apache-2.0 */
/*
 * race_map.h - the last access to each byte: disjoint ranges, sorted by
 * address.
 */
#ifndef FSDP_CTS_RACE_MAP_H
#define FSDP_CTS_RACE_MAP_H

#include <stdbool.h>
#include <stdint.h>

/* One access, by an operator, a collective, a copy or a declaration, as far as
 * it is remembered. `tick` counts what its stream has been given. */
struct race_access {
    uint64_t tick;
    uint16_t stream; /* index in struct race */
    uint16_t what;   /* race.c knows the names */
    uint32_t unit;   /* or FSDP_NO_UNIT */
    uint32_t step;
    uint8_t point; /* race.c knows the names */
    uint32_t module;
};

struct race_range {
    uintptr_t lo, hi; /* [lo, hi) */
    struct race_access access;
};

struct race_map {
    struct race_range *range;
    uint32_t n, room;
};

/* The first range that ends behind lo; n if there is none. */
uint32_t race_map_find(const struct race_map *map, uintptr_t lo);
/* [lo, hi) belongs to this access now; lo < hi. False: out of memory, and
 * nothing has changed. */
bool race_map_put(struct race_map *map, uintptr_t lo, uintptr_t hi,
                  const struct race_access *access);
/* Forgets all accesses to [lo, hi). False: as above. */
bool race_map_cut(struct race_map *map, uintptr_t lo, uintptr_t hi);
/* Forgets accesses up to tick[stream]. */
void race_map_sweep(struct race_map *map, const uint64_t *tick);
void race_map_release(struct race_map *map);

#endif
