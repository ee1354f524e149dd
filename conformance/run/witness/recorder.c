/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorder.c - the wrapped communicator, tensors, and the end of a record.
 * The wrapped device is in meter.c.
 */
#include "run/witness/recorder.h"
#include "run/witness/crossing.h"
#include "run/witness/meter.h"
#include "run/witness/meter_refusal.h"
#include "run/witness/sequences.h"

#include <fsdp/arith/cast.h>
#include <stdlib.h>
#include <string.h>

struct recorder {
    struct record_rank *out;
    const struct fsdp_env *env;
    struct meter meter;
    struct meter host; /* of env->host; unused if there is none */
    const struct fsdp_device *real_device;
    struct fsdp_comm comm;
    const struct fsdp_comm *real_comm;
    struct wire *wire;           /* NULL: messages are not looked at */
    uint64_t before[2], base[2]; /* of recorder_watch_peak: live, storage */
    struct sequences_open open;
    struct crossing *crossing; /* NULL: nothing crosses */
};

static uint32_t extent_of(const struct fsdp_env *env, uint32_t dim)
{
    return dim < env->mesh->n_dims ? env->mesh->extent[dim] : env->world;
}

static void follow(struct recorder *r, struct fsdp_stream *stream,
                   const struct fsdp_collective *c)
{
    const struct fsdp_env *env = r->env;
    uint32_t shards = env->mesh->extent[FSDP_DIM_SHARD];
    uint32_t extent = extent_of(env, c->dim);
    uint32_t me = env->rank;

    if (c->dim < env->mesh->n_dims && shards > 0) {
        me = c->dim == FSDP_DIM_SHARD ? env->rank % shards : env->rank / shards;
    }
    race_collective(r->meter.race, r->comm.takes_streams ? stream : NULL,
                    extent, me, c);
}

static void note_collective(struct recorder *r, struct record_collective c)
{
    sequences_add(&r->open, c);
    if (r->crossing) {
        crossing_collective(r->crossing, &c);
    }
}

/* An engine that was built against earlier headers gives a shorter struct;
 * from here on it is whole. */
static int watch_collective(void *self, struct fsdp_stream *stream,
                            const struct fsdp_collective *given)
{
    struct recorder *r = self;
    struct trace *trace = r->meter.trace;
    const struct fsdp_collective whole = fsdp_collective_of(given);
    const struct fsdp_collective *c = &whole;
    struct trace_event *event = NULL;
    int status;

    FSDP_TRY(refusal_of_collective(&r->meter, extent_of(r->env, c->dim), c));
    if (r->meter.race) {
        follow(r, stream, c);
    }
    if (r->wire && c->kind == FSDP_REDUCE_SCATTER) {
        FSDP_TRY(wire_look(r->wire, r->real_device, stream, c, c->in));
    }
    if (!sequences_have_room(&r->open)) {
        return FSDP_ERR_NOMEM;
    }
    if (trace) {
        event =
            trace_begin(trace, stream, RACE_COLLECTIVE + c->kind, c->unit,
                        trace_collective_bytes(c, extent_of(r->env, c->dim)));
    }
    status = r->real_comm->run(r->real_comm->self, stream, c);
    if (event) {
        trace_end(trace, stream, event);
    }
    if (status == FSDP_ERR_MISMATCH && r->crossing) {
        crossing_mismatch(r->crossing);
    }
    if (status == FSDP_OK && r->wire && c->kind == FSDP_ALL_GATHER) {
        status = wire_look(r->wire, r->real_device, stream, c, c->out);
    }
    if (status == FSDP_OK) {
        note_collective(r, (struct record_collective){c->kind, c->dim, c->dtype,
                                                      c->fold, c->root, c->unit,
                                                      c->n});
    }
    return status;
}

static void abort_all(void *self, int32_t status)
{
    struct recorder *r = self;

    r->real_comm->abort(r->real_comm->self, status);
}

int recorder_open(struct fsdp_env *env, struct record_rank *out,
                  struct recorder **recorder)
{
    struct recorder *r = calloc(1, sizeof(*r));

    *recorder = r;
    if (!r) {
        return FSDP_ERR_NOMEM;
    }
    r->out = out;
    r->env = env;
    r->real_device = env->device;
    r->real_comm = env->comm;
    r->comm = (struct fsdp_comm){.size = sizeof(r->comm),
                                 .place = env->comm->place,
                                 .takes_streams = env->comm->takes_streams,
                                 .self = r,
                                 .run = watch_collective,
                                 .abort = abort_all};
    meter_open(&r->meter, env->device);
    r->meter.env = env;
    env->device = &r->meter.engine.device;
    if (env->host) {
        meter_open(&r->host, env->host);
        meter_beside(&r->meter, &r->host);
        r->host.env = env;
        env->host = &r->host.engine.device;
    }
    env->comm = &r->comm;
    return FSDP_OK;
}

void recorder_cross(struct recorder *r, struct crossing *crossing)
{
    r->crossing = crossing;
}

void recorder_watch(struct recorder *r, struct wire *wire)
{
    r->wire = wire;
}

int recorder_watch_races(struct recorder *r)
{
    FSDP_TRY(meter_watch_races(&r->meter, r->env->compute));
    r->host.race = r->meter.race;
    return FSDP_OK;
}

int recorder_watch_time(struct recorder *r)
{
    r->meter.trace = trace_open(r->real_device, r->meter.race);
    return r->meter.trace ? FSDP_OK : FSDP_ERR_NOMEM;
}

int recorder_write_trace(struct recorder *r, const struct expect *e,
                         const char *path)
{
    (void)r->real_device->sync(r->real_device->self, NULL);
    return r->meter.trace ? trace_write(r->meter.trace, e, path, r->env->rank)
                          : FSDP_OK;
}

void recorder_watch_flights(struct recorder *r, uint32_t step)
{
    if (r->meter.race) {
        race_watch_flights(r->meter.race, step);
    }
}

void recorder_end_flights(struct recorder *r)
{
    if (r->meter.race) {
        race_flight_end(r->meter.race);
    }
}

void recorder_place(struct recorder *r, uint32_t step, uint32_t point,
                    uint32_t module)
{
    if (r->meter.race) {
        race_place(r->meter.race, step, point, module);
    }
    if (r->meter.trace) {
        trace_place(r->meter.trace, step, point, module);
    }
}

int recorder_finish_compute(struct recorder *r)
{
    const struct fsdp_device *d = r->real_device;

    return d->wait(d->self, NULL, r->env->compute, 0, "compute->recorder");
}

const struct fsdp_device *recorder_model_device(struct recorder *r)
{
    return &r->meter.model.device;
}

int64_t recorder_mark(struct recorder *r)
{
    if (r->crossing) {
        crossing_mark(r->crossing);
    }
    return sequences_mark(&r->open, r->out);
}

int recorder_status(const struct recorder *r)
{
    bool followed = !r->meter.race || !r->meter.race->out_of_memory;

    return r->meter.out_of_memory || r->host.out_of_memory || !followed
               ? FSDP_ERR_NOMEM
               : FSDP_OK;
}

void recorder_rest(const struct recorder *r, struct record_rest *out)
{
    memcpy(out->live, r->meter.live, sizeof(r->meter.live));
    memcpy(out->live + RECORD_HOST, r->host.live, sizeof(r->host.live));
}

uint64_t recorder_storage(const struct recorder *r)
{
    return r->meter.storage + r->host.storage;
}

uint64_t recorder_allocations(struct recorder *r)
{
    uint64_t n = r->meter.allocations + r->host.allocations;

    r->meter.allocations = r->host.allocations = 0;
    return n;
}

uint64_t recorder_launches(struct recorder *r)
{
    uint64_t n = r->meter.launches + r->host.launches;

    r->meter.launches = r->host.launches = 0;
    return n;
}

struct record_hosted recorder_hosted(struct recorder *r)
{
    const struct record_hosted since = r->meter.hosted;

    r->meter.hosted = (struct record_hosted){0};
    return since;
}

int recorder_moment(struct recorder *r, struct record_rank *out, uint32_t point,
                    uint32_t module)
{
    struct record_moment moment = {.point = point, .module = module};
    struct record_memory *m = out ? &out->memory : NULL;
    struct record_moment *grown;

    meter_fullest(&r->meter, moment.live);
    meter_fullest(&r->host, moment.live + RECORD_HOST);
    if (!m) {
        return FSDP_OK;
    }
    grown = realloc(m->moment, (m->n_moments + 1u) * sizeof(*grown));
    if (!grown) {
        return FSDP_ERR_NOMEM;
    }
    m->moment = grown;
    m->moment[m->n_moments++] = moment;
    return FSDP_OK;
}

void recorder_hold_nothing(struct recorder *r)
{
    r->meter.holds_nothing = r->host.holds_nothing = true;
}

void recorder_give_room(struct recorder *r, bool gives)
{
    r->meter.gives_room = gives;
}

static uint64_t live_now(const struct meter *m)
{
    uint64_t sum = 0;

    for (uint32_t k = 0; k < FSDP_N_KINDS; k++) {
        sum += k == FSDP_ACTIVATION ? 0 : m->live[k];
    }
    return sum;
}

/* The peaks begin anew here, and recorder_watched_peak puts old and new
 * together. */
void recorder_watch_peak(struct recorder *r)
{
    struct meter *m = &r->meter;

    r->before[0] = m->peak_engine;
    r->before[1] = m->peak_storage;
    r->base[0] = m->peak_engine = live_now(m);
    r->base[1] = m->peak_storage = m->storage;
}

uint64_t recorder_watched_peak(struct recorder *r)
{
    struct meter *m = &r->meter;
    uint64_t live = m->peak_engine - r->base[0];
    uint64_t storage = m->peak_storage - r->base[1];

    if (m->peak_engine < r->before[0]) {
        m->peak_engine = r->before[0];
    }
    if (m->peak_storage < r->before[1]) {
        m->peak_storage = r->before[1];
    }
    return live > storage ? live : storage;
}

static struct record_tensor *find_tensor(const struct record_rank *out,
                                         const struct record_tensor *key)
{
    for (uint32_t i = out->n_tensors; i-- > 0;) {
        struct record_tensor *t = &out->tensor[i];
        if (t->stage == key->stage && t->step == key->step &&
            t->microbatch == key->microbatch &&
            t->parameter == key->parameter && t->first == key->first) {
            return t;
        }
    }
    return NULL;
}

/* Tensors that the model sees are read behind its stream; pieces, when the host
 * reads them. */
static void note_read(struct recorder *r, uint32_t stage, const void *p,
                      uint64_t bytes)
{
    bool seen = stage == RECORD_UNSHARDED || stage == RECORD_LOCAL_GRADIENT ||
                stage == RECORD_SUMMONED || stage == RECORD_BUFFER_SEEN ||
                stage == RECORD_BUFFER_LEFT;

    if (r->meter.race) {
        race_record(r->meter.race, seen, p, bytes);
    }
}

/* Widens element i, or 16 bits of an integer, in place: the last element goes
 * first. */
static float widened(uint32_t dtype, const void *data, uint64_t i)
{
    uint16_t bits;

    if (dtype == FSDP_DTYPE_U8) {
        return ((const uint8_t *)data)[i];
    }
    memcpy(&bits, (const char *)data + i * sizeof(bits), sizeof(bits));
    return fsdp_is_float(dtype) ? fsdp_load(dtype, &bits, 0) : (float)bits;
}

bool recorder_has(const struct record_rank *out, uint32_t stage, uint32_t step,
                  uint32_t microbatch, uint32_t parameter, uint64_t first)
{
    const struct record_tensor key = {.stage = stage,
                                      .step = step,
                                      .microbatch = microbatch,
                                      .parameter = parameter,
                                      .first = first};

    return find_tensor(out, &key) != NULL;
}

/* Owns the values of *t from now on, whatever it returns. */
static int add_tensor(struct record_rank *out, const struct record_tensor *t)
{
    struct record_tensor *const grown =
        realloc(out->tensor, (out->n_tensors + 1u) * sizeof(*grown));

    if (!grown) {
        free(t->data);
        return FSDP_ERR_NOMEM;
    }
    out->tensor = grown;
    out->tensor[out->n_tensors++] = *t;
    return FSDP_OK;
}

int recorder_tensor(struct recorder *r, struct record_rank *out, uint32_t stage,
                    uint32_t step, uint32_t microbatch, uint32_t parameter,
                    uint64_t first, uint64_t n, uint32_t dtype,
                    const void *device_data)
{
    const struct fsdp_device *d = r->real_device;
    const uint64_t digits = n * record_digits(dtype);
    struct record_tensor t = {stage,
                              step,
                              microbatch,
                              parameter,
                              first,
                              digits,
                              malloc(digits * sizeof(float) + 1),
                              dtype};
    struct record_tensor *known = find_tensor(out, &t);
    int status;

    if (!t.data) {
        return FSDP_ERR_NOMEM;
    }
    if (record_digits(dtype) == 0) {
        free(t.data);
        return FSDP_ERR_INVALID;
    }
    note_read(r, stage, device_data, n * fsdp_dtype_bytes(dtype));
    if (out->unsampled && record_is_sampled(stage)) {
        free(t.data); /* a tensor without values is added, for recorder_has */
        t.data = NULL;
        return known ? FSDP_OK : add_tensor(out, &t);
    }
    status = d->copy(d->self, NULL, t.data, device_data,
                     n * fsdp_dtype_bytes(dtype));
    for (uint64_t i = digits; dtype != FSDP_DTYPE_F32 && i > 0; i--) {
        t.data[i - 1] = widened(dtype, t.data, i - 1);
    }
    if (status == FSDP_OK && r->crossing) {
        crossing_tensor(r->crossing, &t);
        free(t.data);
        t.data = NULL;
    }
    if (status == FSDP_OK && known && known->n == digits && known->data) {
        for (uint64_t i = 0; i < digits; i++) {
            known->data[i] = known->data[i] + t.data[i];
        }
    }
    if (status != FSDP_OK || known) {
        free(t.data);
        return status;
    }
    return add_tensor(out, &t);
}

void recorder_close(struct recorder *r)
{
    if (r) {
        if (r->meter.race) {
            r->out->races = r->meter.race->found;
            r->out->flights = r->meter.race->flights;
            r->meter.race->flights = (struct record_flights){0, NULL};
        }
        meter_close(&r->meter, &r->out->memory);
        meter_close_host(&r->host, &r->out->memory);
        if (r->wire) {
            r->out->memory.dirty_padding = r->wire->dirty;
            r->out->memory.dirty_frozen = r->wire->frozen;
            r->out->memory.misplaced = r->wire->misplaced;
        }
        sequences_release(&r->open);
        free(r);
    }
}
