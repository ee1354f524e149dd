/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meter.c - counts storage and live bytes, finds ranges that are wrong, and
 * fills memory without a value with NaN. Tables are searched linearly: an
 * engine has a few hundred ranges at most.
 */
#include "run/witness/meter.h"
#include "run/witness/meter_refusal.h"

#include <assert.h>
#include <fsdp/arith/bits.h>
#include <fsdp/op.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum {
    HELD_BYTES = 1 << 20
}; /* held back in all; larger blocks are not */

static void raise_to(uint64_t *peak, uint64_t now)
{
    if (now > *peak) {
        *peak = now;
    }
}

/* Small numbers, whether they are read as float32, bf16 or f16, for a run in
 * which the model computes nothing: an engine need not bear gradients of NaN,
 * and zeros would tell it that nothing is computed. */
static float any_number(struct meter *m)
{
    const uint32_t half = UINT32_C(0x3c00) + (m->n_fills++ & 0x7f);

    return fsdp_f32_from_bits(half << 16 | half);
}

/* Fills with NaN, in the order of the stream, whether it is read as float32,
 * bf16 or f16. A last byte that makes no number is kept, and so is memory at an
 * odd address. */
static void poison(struct meter *m, struct fsdp_stream *stream, void *p,
                   uint64_t bytes)
{
    const bool whole = bytes % 4 == 0 && (uintptr_t)p % 4 == 0;
    const uint64_t n = whole ? bytes / 4 : bytes / 2;
    const float nan = fsdp_f32_from_bits(UINT32_C(0x7fc07fc0));
    struct fsdp_op fill = {.size = sizeof(fill),
                           .kind = FSDP_OP_FILL,
                           .unit = FSDP_NO_UNIT,
                           .dim = {n},
                           .aux = {whole ? FSDP_DTYPE_NONE : FSDP_DTYPE_BF16},
                           .f = {m->holds_nothing ? any_number(m) : nan},
                           .n_out = 1,
                           .out = {{p, n * (whole ? 4 : 2)}}};

    if (n > 0 && (uintptr_t)p % 2 == 0) {
        (void)m->real->run(m->real->self, stream, &fill);
    }
}

/* ---- Storage ----------------------------------------------------------- */

struct meter_block *meter_find_block(struct meter *m, const void *p,
                                     uint64_t bytes)
{
    const unsigned char *b = p;

    for (uint32_t i = 0; i < m->n_blocks; i++) {
        struct meter_block *x = &m->block[i];
        if (b >= x->p && b <= x->p + x->bytes &&
            bytes <= (uint64_t)(x->p + x->bytes - b)) {
            return x;
        }
    }
    return NULL;
}

/* Bytes of the pages of a block, with what lies around it. */
static uint64_t room_of(uint64_t bytes)
{
    return (bytes + 3 * 4096 - 1) & ~(uint64_t)4095;
}

static void give_room(const struct meter_handle *h, uint64_t bytes, bool more)
{
    struct rlimit limit;

    if (h->is_model && h->meter->gives_room &&
        getrlimit(RLIMIT_DATA, &limit) == 0) {
        limit.rlim_cur += more ? room_of(bytes) : -room_of(bytes);
        (void)setrlimit(RLIMIT_DATA, &limit);
    }
}

static int device_alloc(void *self, uint64_t bytes, void **out)
{
    struct meter_handle *h = self;
    struct meter *m = h->meter;
    int status;

    *out = NULL;
    if (m->n_blocks == m->block_capacity) {
        uint32_t capacity = m->block_capacity ? 2 * m->block_capacity : 64;
        void *grown = realloc(m->block, capacity * sizeof(*m->block));
        if (!grown) {
            return FSDP_ERR_NOMEM;
        }
        m->block = grown;
        m->block_capacity = capacity;
    }
    give_room(h, bytes, true);
    status = m->real->alloc(m->real->self, bytes, out);
    if (status != FSDP_OK) {
        give_room(h, bytes, false);
        return status;
    }
    m->block[m->n_blocks++] = (struct meter_block){*out, bytes, h->is_model};
    poison(m, NULL, *out, bytes);
    if (!h->is_model) {
        m->allocations++;
        m->storage += bytes;
        raise_to(&m->peak_storage, m->storage);
    }
    return FSDP_OK;
}

/* Holds a block back; the oldest ones are freed when room is needed. */
static void hold_back(struct meter *m, void *p, uint64_t bytes)
{
    if (bytes > HELD_BYTES || m->holds_nothing) {
        m->real->free(m->real->self, p);
        return;
    }
    for (uint32_t i = 0; i < METER_HELD; i++) {
        uint32_t k = (m->next_held + i) % METER_HELD;
        if (m->held[k] && (i == 0 || m->held_bytes + bytes > HELD_BYTES)) {
            m->real->free(m->real->self, m->held[k]);
            m->held_bytes -= m->held_size[k];
            m->held[k] = NULL;
        }
    }
    m->held[m->next_held] = p;
    m->held_size[m->next_held] = bytes;
    m->held_bytes += bytes;
    m->next_held = (m->next_held + 1) % METER_HELD;
}

static void device_free(void *self, void *p)
{
    struct meter_handle *h = self;
    struct meter *m = h->meter;

    for (uint32_t i = 0; p && i < m->n_blocks; i++) {
        struct meter_block x = m->block[i];
        if (x.p != p) {
            continue;
        }
        m->block[i] = m->block[--m->n_blocks];
        if (m->race) {
            race_free(m->race, x.p, x.bytes);
        }
        if (!x.is_model) {
            assert(m->storage >= x.bytes);
            m->storage -= x.bytes;
        }
        for (uint32_t k = m->n_ranges; k-- > 0;) {
            struct meter_range live = m->range[k];
            if (live.p >= x.p && live.p < x.p + x.bytes) {
                m->bad_ranges++; /* freed while live */
                assert(m->live[live.kind] >= live.bytes);
                m->live[live.kind] -= live.bytes;
                m->range[k] = m->range[--m->n_ranges];
            }
        }
        hold_back(m, p, x.bytes);
        give_room(h, x.bytes, false);
        return;
    }
    m->bad_ranges += p != NULL; /* freed what was never allocated */
}

/* ---- Values ------------------------------------------------------------ */

static uint64_t engine_bytes(const struct meter *m)
{
    uint64_t engine = 0;

    for (uint32_t k = 0; k < FSDP_N_KINDS; k++) {
        engine += k == FSDP_ACTIVATION ? 0 : m->live[k];
    }
    return engine;
}

/* Keeps the fullest moment; of two that are as full, the one with more
 * activations. */
static void note_fullest(struct meter *m, uint64_t engine)
{
    if (engine > m->fullest_engine ||
        (engine == m->fullest_engine &&
         m->live[FSDP_ACTIVATION] > m->fullest[FSDP_ACTIVATION])) {
        m->fullest_engine = engine;
        memcpy(m->fullest, m->live, sizeof(m->fullest));
    }
}

void meter_fullest(struct meter *m, uint64_t out[FSDP_N_KINDS])
{
    memcpy(out, m->fullest, sizeof(m->fullest));
    m->fullest_engine = engine_bytes(m);
    memcpy(m->fullest, m->live, sizeof(m->fullest));
}

static void count(struct meter *m)
{
    uint64_t engine = engine_bytes(m);

    for (uint32_t k = 0; k < FSDP_N_KINDS; k++) {
        raise_to(&m->peak[k], m->live[k]);
    }
    raise_to(&m->peak_parameters,
             m->live[FSDP_PARAM_SHARD] + m->live[FSDP_PARAM_FULL]);
    raise_to(&m->peak_engine, engine);
    note_fullest(m, engine);
    if (engine > m->storage) {
        raise_to(&m->peak_over, engine - m->storage);
    }
}

static void device_live(void *self, struct fsdp_stream *stream, uint32_t kind,
                        uint32_t unit, void *p, uint64_t bytes)
{
    struct meter_handle *h = self;
    struct meter *m = h->meter;
    unsigned char *b = p;

    m->real->live(m->real->self, stream, kind, unit, p, bytes);
    if (bytes == 0) {
        return;
    }
    if (m->race) {
        race_value(m->race, stream, true, unit, p, bytes);
    }
    if (kind >= FSDP_N_KINDS || !meter_find_block(m, p, bytes)) {
        m->bad_ranges++;
        return;
    }
    for (uint32_t i = 0; i < m->n_ranges; i++) {
        if (b < m->range[i].p + m->range[i].bytes &&
            m->range[i].p < b + bytes) {
            m->bad_ranges++; /* overlaps another live range */
        }
    }
    if (m->n_ranges == m->range_capacity) {
        uint32_t capacity = m->range_capacity ? 2 * m->range_capacity : 64;
        void *grown = realloc(m->range, capacity * sizeof(*m->range));
        if (!grown) {
            m->out_of_memory = true; /* the engine is not to blame */
            return;
        }
        m->range = grown;
        m->range_capacity = capacity;
    }
    m->range[m->n_ranges++] = (struct meter_range){b, bytes, kind, unit};
    m->live[kind] += bytes;
    count(m);
    if (m->trace) {
        trace_live(m->trace, m->live);
    }
}

static void device_dead(void *self, struct fsdp_stream *stream, void *p)
{
    struct meter_handle *h = self;
    struct meter *m = h->meter;

    for (uint32_t i = 0; p && i < m->n_ranges; i++) {
        struct meter_range x = m->range[i];
        if (x.p == p) {
            if (m->race) {
                race_value(m->race, stream, false, x.unit, p, x.bytes);
            }
            m->range[i] = m->range[--m->n_ranges];
            assert(m->live[x.kind] >= x.bytes);
            m->live[x.kind] -= x.bytes;
            if (m->trace) {
                trace_live(m->trace, m->live);
            }
            poison(m, stream, p, x.bytes);
            break;
        }
    }
    m->real->dead(m->real->self, stream, p);
}

static void open_handle(struct meter *m, struct meter_handle *h, bool is_model)
{
    h->meter = m;
    h->is_model = is_model;
    h->device = (struct fsdp_device){.size = sizeof(h->device),
                                     .place = m->real->place,
                                     .self = h,
                                     .profile = m->real->profile,
                                     .alloc = device_alloc,
                                     .free = device_free,
                                     .live = device_live,
                                     .dead = device_dead};
    meter_hand_on(&h->device);
}

void meter_open(struct meter *m, const struct fsdp_device *real_device)
{
    *m = (struct meter){.real = real_device};
    open_handle(m, &m->engine, false);
    open_handle(m, &m->model, true);
}

void meter_beside(struct meter *device, struct meter *host)
{
    device->beside = host;
    host->beside = device;
    host->is_host = true;
}

/* Finds what is live at an address. */
static void look_up(void *self, uintptr_t p, uint32_t *kind, uint32_t *unit)
{
    const struct meter *m = self;

    if (!m->is_host && m->beside) {
        look_up(m->beside, p, kind, unit);
    }
    for (uint32_t i = 0; i < m->n_ranges; i++) {
        const struct meter_range *x = &m->range[i];
        if (p - (uintptr_t)x->p < x->bytes) {
            *kind = x->kind;
            *unit = x->unit;
        }
    }
}

int meter_watch_races(struct meter *m, struct fsdp_stream *compute)
{
    m->race = race_open(compute);
    if (!m->race) {
        return FSDP_ERR_NOMEM;
    }
    m->race->look_up = look_up;
    m->race->self = m;
    return FSDP_OK;
}

/* Frees what the engine left, which is counted, and what was held back. */
static void give_back(struct meter *m, struct record_memory *out)
{
    for (uint32_t i = 0; i < m->n_ranges; i++) {
        out->left_live += m->range[i].bytes;
    }
    for (uint32_t i = 0; i < m->n_blocks; i++) {
        out->left_storage += m->block[i].bytes;
        m->real->free(m->real->self, m->block[i].p);
    }
    for (uint32_t i = 0; i < METER_HELD && m->real; i++) {
        m->real->free(m->real->self, m->held[i]);
    }
    free(m->block);
    free(m->range);
}

void meter_close_host(struct meter *m, struct record_memory *out)
{
    memcpy(out->peak + RECORD_HOST, m->peak, sizeof(m->peak));
    raise_to(&out->peak_live_over_storage, m->peak_over);
    out->bad_ranges += m->bad_ranges;
    give_back(m, out);
}

void meter_close(struct meter *m, struct record_memory *out)
{
    memcpy(out->peak, m->peak, sizeof(m->peak));
    out->peak_parameters = m->peak_parameters;
    out->peak_engine = m->peak_engine;
    out->peak_storage = m->peak_storage;
    out->peak_live_over_storage = m->peak_over;
    out->bad_ranges = m->bad_ranges;
    out->left_live = 0;
    out->left_storage = 0;
    give_back(m, out);
    if (m->trace) {
        trace_close(m->trace);
    }
    race_close(m->race);
}
