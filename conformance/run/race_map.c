/* SPDX-License-Identifier: Apache-2.0 */
/*
 * race_map.c - a sorted array of disjoint ranges. A step touches the same
 * ranges as the step before, so that most puts find their range as it is, and
 * nothing is moved.
 */
#include "run/race_map.h"

#include <stdlib.h>
#include <string.h>

uint32_t race_map_find(const struct race_map *map, uintptr_t lo)
{
    uint32_t from = 0;
    uint32_t to = map->n;

    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (map->range[middle].hi > lo) {
            to = middle;
        } else {
            from = middle + 1;
        }
    }
    return from;
}

static bool make_room(struct race_map *map)
{
    uint32_t room = map->room ? 2 * map->room : 64;
    void *grown;

    if (map->n + 2 <= map->room) {
        return true;
    }
    grown = realloc(map->range, room * sizeof(*map->range));
    if (!grown) {
        return false;
    }
    map->range = grown;
    map->room = room;
    return true;
}

/* What overlaps [lo, hi) gives way to `access`, or to nothing; what sticks out
 * on either side stays. */
static bool replace(struct race_map *map, uintptr_t lo, uintptr_t hi,
                    const struct race_access *access)
{
    uint32_t first = race_map_find(map, lo);
    uint32_t behind = first;
    struct race_range made[3];
    uint32_t n = 0;

    while (behind < map->n && map->range[behind].lo < hi) {
        behind++;
    }
    if (behind > first && map->range[first].lo < lo) {
        made[n] = map->range[first];
        made[n++].hi = lo;
    }
    if (access) {
        made[n++] = (struct race_range){lo, hi, *access};
    }
    if (behind > first && map->range[behind - 1].hi > hi) {
        made[n] = map->range[behind - 1];
        made[n++].lo = hi;
    }
    if (!make_room(map)) {
        return false;
    }
    if (first + n != behind && behind < map->n) {
        memmove(&map->range[first + n], &map->range[behind],
                (map->n - behind) * sizeof(*map->range));
    }
    if (n > 0) {
        memcpy(&map->range[first], made, n * sizeof(*made));
    }
    map->n = map->n - (behind - first) + n;
    return true;
}

bool race_map_put(struct race_map *map, uintptr_t lo, uintptr_t hi,
                  const struct race_access *access)
{
    uint32_t i = race_map_find(map, lo);

    if (i < map->n && map->range[i].lo == lo && map->range[i].hi == hi) {
        map->range[i].access = *access;
        return true;
    }
    return replace(map, lo, hi, access);
}

bool race_map_cut(struct race_map *map, uintptr_t lo, uintptr_t hi)
{
    uint32_t i = race_map_find(map, lo);

    return i == map->n || map->range[i].lo >= hi || replace(map, lo, hi, NULL);
}

void race_map_sweep(struct race_map *map, const uint64_t *tick)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < map->n; i++) {
        const struct race_access *a = &map->range[i].access;
        if (a->tick > tick[a->stream]) {
            map->range[n++] = map->range[i];
        }
    }
    map->n = n;
}

void race_map_release(struct race_map *map)
{
    free(map->range);
    *map = (struct race_map){0};
}
