/* SPDX-License-Identifier: Apache-2.0 */
/*
 * race_access.c - which access touches which bytes: each access is compared
 * with the last ones to the same bytes, and then takes their place. The clocks
 * also tell, for one step, when each collective was issued, which work of the
 * model's stream it comes after, and from when on the model's stream comes
 * after it.
 *
 * A write that comes after all earlier accesses stands for them: an access that
 * is not ordered after one of these is not ordered after the write either. So
 * only the last write to a byte is kept, and the last read of each stream.
 * Reads that a later write covers do no harm, and are dropped when the host has
 * seen them finished.
 */
#include "run/witness/race.h"

#include <stdlib.h>
#include <string.h>

/* ---- Flights of collectives ---------------------------------------------- */

static void *grow(struct race *r, void *p, uint32_t n, uint32_t *room,
                  size_t size)
{
    uint32_t more = *room ? 2 * *room : 64;
    void *grown;

    if (n < *room) {
        return p;
    }
    grown = realloc(p, more * size);
    if (!grown) {
        r->out_of_memory = true;
        return NULL;
    }
    *room = more;
    return grown;
}

void race_watch_flights(struct race *r, uint32_t step)
{
    r->flight_step = step;
    r->flights_wanted = true;
}

static bool is_awaited(const struct race *r, const struct race_pending *x)
{
    const struct race_clock *compute = &r->stream[r->compute].clock;

    return x->stream == RACE_HOST || compute->tick[x->stream] >= x->tick ||
           r->host.tick[x->stream] >= x->tick;
}

/* Settles collectives that the model's stream comes after by now; a position
 * ends where the next one begins. */
static void settle(struct race *r)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < r->n_pending; i++) {
        struct race_pending *x = &r->pending[i];
        if (is_awaited(r, x)) {
            r->flights.flight[x->index].awaited = r->position;
        } else {
            r->pending[kept++] = *x;
        }
    }
    r->n_pending = kept;
}

void race_flight_place(struct race *r, uint32_t step, uint32_t point)
{
    bool inside = r->flights_wanted && step == r->flight_step &&
                  (point <= FSDP_CANCEL || point == RACE_AT_STEP ||
                   point == RACE_AT_ZERO_GRAD);
    uint64_t *grown;

    if (r->in_flight_step) {
        settle(r);
    }
    if (!inside) {
        return; /* collectives that are issued here belong to the position
                   before */
    }
    if (!r->in_flight_step) {
        r->in_flight_step = true;
        r->position = 0;
        r->flights.n = 0; /* flights of the life before, in the same step */
        r->n_pending = 0;
        r->n_ticks = 0;
    } else {
        r->position++;
    }
    grown = grow(r, r->tick_at, r->n_ticks, &r->tick_room, sizeof(*r->tick_at));
    if (grown) {
        r->tick_at = grown;
        r->tick_at[r->n_ticks++] =
            r->compute < RACE_STREAMS
                ? r->stream[r->compute].clock.tick[r->compute]
                : 0;
    }
}

void race_flight_end(struct race *r)
{
    if (r->in_flight_step) {
        settle(r);
    }
    r->in_flight_step = false;
}

/* The number of positions whose work lies before `tick` of the model's stream,
 * at least in part. */
static uint32_t behind(const struct race *r, uint64_t tick)
{
    uint32_t n = r->n_ticks;

    while (n > 0 && r->tick_at[n - 1] >= tick) {
        n--;
    }
    return n;
}

static void note_flight(struct race *r, uint32_t stream, uint64_t tick,
                        const struct race_clock *clock,
                        const struct fsdp_collective *c)
{
    struct record_flight x = {.kind = c->kind,
                              .unit = c->unit,
                              .issued = r->position,
                              .awaited = RECORD_NO_POSITION,
                              .on_stream = stream != RACE_HOST};
    struct record_flight *flight;
    struct race_pending *pending;

    if (!r->in_flight_step) {
        return;
    }
    flight = grow(r, r->flights.flight, r->flights.n, &r->flight_room,
                  sizeof(*flight));
    r->flights.flight = flight ? flight : r->flights.flight;
    pending =
        grow(r, r->pending, r->n_pending, &r->pending_room, sizeof(*pending));
    r->pending = pending ? pending : r->pending;
    if (!flight || !pending) {
        return;
    }
    x.behind = r->compute < RACE_STREAMS ? behind(r, clock->tick[r->compute])
                                         : r->n_ticks;
    r->pending[r->n_pending++] = (struct race_pending){
        r->flights.n, r->compute < RACE_STREAMS ? stream : RACE_HOST, tick};
    r->flights.flight[r->flights.n++] = x;
}

/* ---- Accesses ------------------------------------------------------------ */

/* An access that is being made. */
struct now {
    struct race *r;
    uint32_t stream; /* or RACE_HOST */
    const struct race_clock *clock;
    struct race_access access;
};

static void sweep(struct race *r)
{
    uint32_t n = r->written.n;

    for (uint32_t i = 0; i < r->n_streams; i++) {
        n += r->stream[i].read.n;
    }
    if (n < r->sweep_at) {
        return;
    }
    race_map_sweep(&r->written, r->host.tick);
    n = r->written.n;
    for (uint32_t i = 0; i < r->n_streams; i++) {
        race_map_sweep(&r->stream[i].read, r->host.tick);
        n += r->stream[i].read.n;
    }
    r->sweep_at = n < 512 ? 1024 : 2 * n;
}

static struct now begin_access(struct race *r, struct fsdp_stream *stream,
                               uint32_t what, uint32_t unit)
{
    struct now now = {.r = r,
                      .stream = RACE_HOST,
                      .clock = &r->host,
                      .access = {.stream = RACE_HOST,
                                 .what = (uint16_t)what,
                                 .unit = unit,
                                 .step = r->step,
                                 .point = r->point,
                                 .module = r->module}};
    uint32_t slot = stream ? race_slot(r, stream) : RACE_HOST;
    struct race_stream *s;

    if (slot == RACE_STREAMS || r->found.unfollowed) {
        return now;
    }
    s = &r->stream[slot];
    for (uint32_t i = 0; i < r->n_streams; i++) { /* the host comes before */
        if (r->host.tick[i] > s->clock.tick[i]) {
            s->clock.tick[i] = r->host.tick[i];
        }
    }
    now.access.tick = ++s->clock.tick[slot];
    now.access.stream = (uint16_t)slot;
    now.stream = slot;
    now.clock = &s->clock;
    sweep(r);
    return now;
}

/* At most one race for an access and a map: the first is enough. */
static bool find_race(const struct now *now, const struct race_map *map,
                      uintptr_t lo, uintptr_t hi)
{
    for (uint32_t i = race_map_find(map, lo);
         i < map->n && map->range[i].lo < hi; i++) {
        const struct race_range *x = &map->range[i];
        if (x->access.tick > now->clock->tick[x->access.stream]) {
            race_describe(now->r, x, &now->access, lo > x->lo ? lo : x->lo);
            return false;
        }
    }
    return true;
}

static void put_access(const struct now *now, struct race_map *map,
                       uintptr_t lo, uintptr_t hi)
{
    if (!race_map_put(map, lo, hi, &now->access)) {
        now->r->out_of_memory = true;
    }
}

static void reads(const struct now *now, const void *p, uint64_t bytes)
{
    struct race *r = now->r;
    uintptr_t lo = (uintptr_t)p;

    if (!p || bytes == 0 || bytes > UINTPTR_MAX - lo || r->found.unfollowed) {
        return;
    }
    (void)find_race(now, &r->written, lo, lo + bytes);
    if (now->stream != RACE_HOST) {
        put_access(now, &r->stream[now->stream].read, lo, lo + bytes);
    }
}

static void writes(const struct now *now, const void *p, uint64_t bytes)
{
    struct race *r = now->r;
    uintptr_t lo = (uintptr_t)p;
    bool good;

    if (!p || bytes == 0 || bytes > UINTPTR_MAX - lo || r->found.unfollowed) {
        return;
    }
    good = find_race(now, &r->written, lo, lo + bytes);
    for (uint32_t i = 0; good && i < r->n_streams; i++) {
        const struct race_stream *s = &r->stream[i];
        if (s->read.n > 0 && s->clock.tick[i] > now->clock->tick[i]) {
            good = find_race(now, &s->read, lo, lo + bytes);
        }
    }
    if (now->stream != RACE_HOST) {
        put_access(now, &r->written, lo, lo + bytes);
    }
}

/* ---- Operators --------------------------------------------------------- */

/* Accesses rows with gaps between them, which may belong to another stream. */
static void rows(const struct now *now, const struct fsdp_op *op, bool out)
{
    uint64_t n = op->dim[0];
    uint64_t row = op->dim[1];
    uint64_t stride = out ? op->dim[2] : op->dim[3];
    const unsigned char *p = out ? op->out[0].p : op->in[0].p;
    uint64_t bytes = out ? op->out[0].bytes : op->in[0].bytes;

    if (stride <= row || n > bytes) { /* dense, or not as it should be */
        n = 1;
        row = bytes;
    }
    for (uint64_t i = 0; i < n; i++, p += stride) {
        if (out) {
            writes(now, p, row);
        } else {
            reads(now, p, row);
        }
    }
}

static bool in_place(const struct fsdp_op *op, uint32_t i)
{
    for (uint32_t k = 0; k < op->n_out && k < FSDP_OP_MAX_OUT; k++) {
        if (op->out[k].p == op->in[i].p &&
            op->out[k].bytes == op->in[i].bytes) {
            return true;
        }
    }
    return false;
}

void race_operator(struct race *r, struct fsdp_stream *stream,
                   const struct fsdp_op *op)
{
    struct now now =
        begin_access(r, stream, RACE_OPERATOR + op->kind, op->unit);

    if (op->kind == FSDP_OP_COPY_2D && op->n_in > 0 && op->n_out > 0) {
        rows(&now, op, false);
        rows(&now, op, true);
        return;
    }
    for (uint32_t i = 0; i < op->n_in && i < FSDP_OP_MAX_IN; i++) {
        if (!in_place(op, i)) {
            reads(&now, op->in[i].p, op->in[i].bytes);
        }
    }
    for (uint32_t i = 0; i < op->n_out && i < FSDP_OP_MAX_OUT; i++) {
        writes(&now, op->out[i].p, op->out[i].bytes);
    }
}

/* ---- Everything else --------------------------------------------------- */

void race_collective(struct race *r, struct fsdp_stream *stream,
                     uint32_t extent, uint32_t me,
                     const struct fsdp_collective *c)
{
    struct now now =
        begin_access(r, stream, RACE_COLLECTIVE + c->kind, c->unit);
    uint64_t bytes = c->n * fsdp_dtype_bytes(c->dtype);
    bool gathers = c->kind == FSDP_ALL_GATHER;
    bool scatters = c->kind == FSDP_REDUCE_SCATTER;

    if (c->kind != FSDP_BROADCAST || c->root == me) {
        reads(&now, c->in, scatters ? bytes * extent : bytes);
    }
    writes(&now, c->out, gathers ? bytes * extent : bytes);
    note_flight(r, now.stream, now.access.tick, now.clock, c);
}

void race_copy(struct race *r, struct fsdp_stream *stream, void *to,
               const void *from, uint64_t bytes)
{
    struct now now = begin_access(r, stream, RACE_COPY, FSDP_NO_UNIT);

    reads(&now, from, bytes);
    writes(&now, to, bytes);
}

void race_value(struct race *r, struct fsdp_stream *stream, bool begins,
                uint32_t unit, void *p, uint64_t bytes)
{
    struct now now =
        begin_access(r, stream, begins ? RACE_LIVE : RACE_DEAD, unit);

    writes(&now, p, bytes);
}

void race_free(struct race *r, void *p, uint64_t bytes)
{
    struct now now = begin_access(r, NULL, RACE_FREE, FSDP_NO_UNIT);
    uintptr_t lo = (uintptr_t)p;
    bool cut;

    writes(&now, p, bytes);
    if (bytes == 0 || bytes > UINTPTR_MAX - lo) {
        return;
    }
    cut = race_map_cut(&r->written, lo, lo + bytes);
    for (uint32_t i = 0; i < r->n_streams; i++) {
        cut = race_map_cut(&r->stream[i].read, lo, lo + bytes) && cut;
    }
    r->out_of_memory = r->out_of_memory || !cut;
}

void race_record(struct race *r, bool behind_compute, const void *p,
                 uint64_t bytes)
{
    bool on_stream = behind_compute && r->compute < RACE_STREAMS;
    struct now now =
        begin_access(r, on_stream ? r->stream[r->compute].handle : NULL,
                     RACE_RECORD, FSDP_NO_UNIT);

    reads(&now, p, bytes);
}
