/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meter_hand_on.c - the calls that the metered device hands on to the real one,
 * after a look at ranges and at the order of streams: copies, operators, and
 * the streams themselves.
 */
#include "run/witness/meter.h"
#include "run/witness/meter_refusal.h"

static const struct fsdp_device *real(void *self)
{
    return ((struct meter_handle *)self)->meter->real;
}

static struct race *race_of(void *self)
{
    return ((struct meter_handle *)self)->meter->race;
}

static struct trace *trace_of(void *self)
{
    return ((struct meter_handle *)self)->meter->trace;
}

/* Counts a copy from storage of one device to storage of the other. */
static void count_copy(struct meter *m, const void *to, const void *from,
                       uint64_t bytes)
{
    struct meter *device = m->is_host ? m->beside : m;
    struct meter *host = m->is_host ? m : m->beside;

    if (bytes == 0) {
        return;
    }
    if (host && meter_find_block(device, to, bytes) &&
        meter_find_block(host, from, bytes)) {
        device->hosted.to_device++;
        device->hosted.to_device_bytes += bytes;
    } else if (host && meter_find_block(host, to, bytes) &&
               meter_find_block(device, from, bytes)) {
        device->hosted.to_host++;
        device->hosted.to_host_bytes += bytes;
    }
}

static int device_copy(void *self, struct fsdp_stream *stream, void *to,
                       const void *from, uint64_t bytes)
{
    struct meter_handle *h = self;
    struct race *race = race_of(self);
    struct trace *trace = trace_of(self);
    struct trace_event *event = NULL;
    int status;

    FSDP_TRY(refusal_of_copy_ranges(h->meter, h->is_model, to, from, bytes));
    if (race) {
        race_copy(race, stream, to, from, bytes);
    }
    if (trace) {
        event = trace_begin(trace, stream, RACE_COPY, FSDP_NO_UNIT, bytes);
    }
    status = real(self)->copy(real(self)->self, stream, to, from, bytes);
    if (event) {
        trace_end(trace, stream, event);
    }
    if (status == FSDP_OK && !h->is_model && bytes > 0) {
        count_copy(h->meter, to, from, bytes);
    }
    if (status == FSDP_ERR_INVALID) {
        refusal_of_copy(h->meter, h->is_model, to, from, bytes);
    }
    return status;
}

/* Counts the elements of an optimizer's operator. */
static void count_step(const struct meter_handle *h, const struct fsdp_op *op)
{
    struct meter *m = h->meter;

    if (h->is_model ||
        (op->kind != FSDP_OP_SGD && op->kind != FSDP_OP_MOMENTUM &&
         op->kind != FSDP_OP_ADAMW)) {
        return;
    }
    if (m->is_host) {
        m->beside->hosted.stepped_on_host += op->dim[0];
    } else {
        m->hosted.stepped_on_device += op->dim[0];
    }
}

static int device_run(void *self, struct fsdp_stream *stream,
                      const struct fsdp_op *op)
{
    struct meter_handle *h = self;
    struct race *race = race_of(self);
    struct trace *trace = trace_of(self);
    struct trace_event *event = NULL;
    int status;

    h->meter->launches += !h->is_model;
    count_step(h, op);
    FSDP_TRY(refusal_of_operator_ranges(h->meter, h->is_model, op));
    if (h->is_model && h->meter->holds_nothing) {
        return FSDP_OK;
    }
    if (race) {
        race_operator(race, stream, op);
    }
    if (trace) {
        event = trace_begin(trace, stream, RACE_OPERATOR + op->kind, op->unit,
                            trace_operator_bytes(op));
    }
    status = real(self)->run(real(self)->self, stream, op);
    if (event) {
        trace_end(trace, stream, event);
    }
    if (status == FSDP_ERR_INVALID) {
        refusal_by_device(h->meter, h->is_model, op);
    }
    return status;
}

static int device_stream_open(void *self, const char *name,
                              struct fsdp_stream **out)
{
    int status = real(self)->stream_open(real(self)->self, name, out);

    if (status == FSDP_OK && race_of(self)) {
        race_stream_open(race_of(self), *out, name);
    }
    return status;
}

static void device_stream_close(void *self, struct fsdp_stream *stream)
{
    struct race *race = race_of(self);

    if (race) {
        race_stream_close(race, stream);
    }
    real(self)->stream_close(real(self)->self, stream);
}

static int device_mark(void *self, struct fsdp_stream *stream,
                       uint64_t *out_ticket)
{
    int status = real(self)->mark(real(self)->self, stream, out_ticket);

    if (status == FSDP_OK && race_of(self)) {
        race_mark(race_of(self), stream, *out_ticket);
    }
    if (status == FSDP_OK && trace_of(self)) {
        trace_mark(trace_of(self), stream, *out_ticket);
    }
    return status;
}

static int device_wait(void *self, struct fsdp_stream *later,
                       struct fsdp_stream *earlier, uint64_t ticket,
                       const char *edge)
{
    struct race *race = race_of(self);

    if (race) {
        race_wait(race, later, earlier, ticket);
    }
    if (trace_of(self)) {
        trace_wait(trace_of(self), later, earlier, ticket, edge);
    }
    return real(self)->wait(real(self)->self, later, earlier, ticket, edge);
}

static int device_sync(void *self, struct fsdp_stream *stream)
{
    struct race *race = race_of(self);

    if (race) {
        race_sync(race, stream);
    }
    return real(self)->sync(real(self)->self, stream);
}

void meter_hand_on(struct fsdp_device *d)
{
    d->copy = device_copy;
    d->run = device_run;
    d->stream_open = device_stream_open;
    d->stream_close = device_stream_close;
    d->mark = device_mark;
    d->wait = device_wait;
    d->sync = device_sync;
}
