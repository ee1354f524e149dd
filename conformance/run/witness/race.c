/* SPDX-License-Identifier: Apache-2.0 */
/*
 * race.c - vector clocks of streams, which say what comes after what; and the
 * sorted array of disjoint ranges that streams have touched. A step touches the
 * same ranges as the step before, so that most puts find their range as it is,
 * and nothing moves.
 */
#include "run/witness/race.h"
#include "run/witness/race_map.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Host and streams know no more than RACE_STREAMS ticks; those of slots that
 * were never in use are 0. */
static void join(const struct race *r, struct race_clock *to,
                 const struct race_clock *from)
{
    for (uint32_t i = 0; i < r->n_streams; i++) {
        if (from->tick[i] > to->tick[i]) {
            to->tick[i] = from->tick[i];
        }
    }
}

static bool covers(const struct race *r, const struct race_clock *a,
                   const struct race_clock *b)
{
    for (uint32_t i = 0; i < r->n_streams; i++) {
        if (b->tick[i] > a->tick[i]) {
            return false;
        }
    }
    return true;
}

/* ---- Streams ----------------------------------------------------------- */

/* Takes a slot for a stream; RACE_STREAMS: none is free. A slot that was in use
 * before goes on counting, so that its earlier accesses stay older. */
static uint32_t take_slot(struct race *r, struct fsdp_stream *handle,
                          const char *name)
{
    uint32_t i = 0;
    struct race_stream *s;

    while (i < RACE_STREAMS && r->stream[i].open) {
        i++;
    }
    if (i == RACE_STREAMS) {
        r->found.unfollowed++;
        return i;
    }
    r->n_streams = i < r->n_streams ? r->n_streams : i + 1;
    s = &r->stream[i];
    s->handle = handle;
    s->open = true;
    s->n_tickets = 0;
    s->clock = r->host;
    snprintf(s->name, sizeof(s->name), "%s", name ? name : "stream");
    return i;
}

/* A stream that the recorder did not see being opened begins when it is seen
 * first. */
uint32_t race_slot(struct race *r, struct fsdp_stream *handle)
{
    for (uint32_t i = 0; i < r->n_streams; i++) {
        if (r->stream[i].open && r->stream[i].handle == handle) {
            return i;
        }
    }
    return take_slot(r, handle, NULL);
}

struct race *race_open(struct fsdp_stream *compute)
{
    struct race *r = calloc(1, sizeof(*r));

    if (r) {
        r->sweep_at = 1024;
        r->compute = compute ? take_slot(r, compute, "compute") : RACE_STREAMS;
    }
    return r;
}

void race_close(struct race *r)
{
    if (!r) {
        return;
    }
    for (uint32_t i = 0; i < RACE_STREAMS; i++) {
        free(r->stream[i].ticket);
        race_map_release(&r->stream[i].read);
    }
    race_map_release(&r->written);
    free(r->tick_at);
    free(r->pending);
    free(r->flights.flight);
    free(r);
}

void race_place(struct race *r, uint32_t step, uint32_t point, uint32_t module)
{
    race_flight_place(r, step, point);
    r->step = step;
    r->point = (uint8_t)point;
    r->module = module;
}

void race_stream_open(struct race *r, struct fsdp_stream *stream,
                      const char *name)
{
    if (stream) {
        (void)take_slot(r, stream, name);
    }
}

/* A stream that is closed has finished all, and the host knows it. */
void race_stream_close(struct race *r, struct fsdp_stream *stream)
{
    uint32_t i;

    if (stream && (i = race_slot(r, stream)) < RACE_STREAMS) {
        join(r, &r->host, &r->stream[i].clock);
        r->stream[i].open = false;
        r->stream[i].read.n = 0;
    }
}

/* ---- Order ------------------------------------------------------------- */

/* Drops tickets that the host has seen finished: a wait for them orders nothing
 * new. */
static bool make_room(struct race *r, struct race_stream *s)
{
    uint32_t kept = 0;
    uint32_t room = s->ticket_room ? 2 * s->ticket_room : 16;
    void *grown;

    if (s->n_tickets < s->ticket_room) {
        return true;
    }
    for (uint32_t i = 0; i < s->n_tickets; i++) {
        if (!covers(r, &r->host, &s->ticket[i].clock)) {
            s->ticket[kept++] = s->ticket[i];
        }
    }
    s->n_tickets = kept;
    if (2 * kept < s->ticket_room) {
        return true;
    }
    grown = realloc(s->ticket, room * sizeof(*s->ticket));
    if (!grown) {
        r->out_of_memory = true;
        return false;
    }
    s->ticket = grown;
    s->ticket_room = room;
    return true;
}

void race_mark(struct race *r, struct fsdp_stream *stream, uint64_t ticket)
{
    uint32_t i;
    struct race_stream *s;

    if (!stream || (i = race_slot(r, stream)) == RACE_STREAMS) {
        return;
    }
    s = &r->stream[i];
    if (s->n_tickets > 0 && s->ticket[s->n_tickets - 1].ticket >= ticket) {
        s->n_tickets--; /* nothing was given in between */
    }
    if (make_room(r, s)) {
        s->ticket[s->n_tickets++] = (struct race_ticket){ticket, s->clock};
    }
}

/* The clock of what the stream had been given up to a ticket; NULL: the host
 * knows of all that. */
static const struct race_clock *clock_at(const struct race_stream *s,
                                         uint64_t ticket)
{
    uint32_t i = s->n_tickets;

    if (ticket == 0) {
        return &s->clock;
    }
    while (i > 0 && s->ticket[i - 1].ticket > ticket) {
        i--;
    }
    return i > 0 ? &s->ticket[i - 1].clock : NULL;
}

void race_wait(struct race *r, struct fsdp_stream *later,
               struct fsdp_stream *earlier, uint64_t ticket)
{
    const struct race_clock *known;
    uint32_t from;
    uint32_t to;

    if (!earlier || (from = race_slot(r, earlier)) == RACE_STREAMS) {
        return;
    }
    known = clock_at(&r->stream[from], ticket);
    if (!known) {
        return;
    }
    if (!later) {
        join(r, &r->host, known);
    } else if ((to = race_slot(r, later)) < RACE_STREAMS) {
        join(r, &r->stream[to].clock, known);
    }
}

void race_sync(struct race *r, struct fsdp_stream *stream)
{
    for (uint32_t i = 0; i < r->n_streams; i++) {
        if (r->stream[i].open && (!stream || r->stream[i].handle == stream)) {
            join(r, &r->host, &r->stream[i].clock);
        }
    }
}

/* ---- Ranges ---------------------------------------------------------------
 */

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

static bool make_place(struct race_map *map)
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

/* Replaces what overlaps [lo, hi) by `access`, or by nothing; the parts that
 * stick out on either side stay. */
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
    if (!make_place(map)) {
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
    assert(first == 0 || n == 0 ||
           map->range[first - 1].hi <= map->range[first].lo);
    assert(n == 0 || first + n == map->n ||
           map->range[first + n - 1].hi <= map->range[first + n].lo);
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
