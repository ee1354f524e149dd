/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_device.c - struct fsdp_device over host_stream.h and host_ops.h.
 */
#include "host_device.h"

#include "host_check.h"
#include "host_duration.h"
#include "host_memory.h"
#include "host_ops.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    STAMP_NS = 50
};

struct fsdp_stream {
    struct host_stream *queue;
    struct host_ops *ops; /* scratch memory of its own */
    struct fsdp_stream *next;
};

struct host_device {
    enum simd_level level;
    struct host_ops *ops; /* of calls without a stream */
    struct fsdp_stream *streams;
    struct host_memory memory;
};

struct copy {
    void *to;
    const void *from;
    uint64_t bytes;
};

struct operation {
    struct host_ops *ops;
    struct fsdp_op op;
};

_Static_assert(sizeof(struct operation) <= HOST_STREAM_ARGUMENT,
               "an operator fits an item of a queue");

/* ---- Memory ------------------------------------------------------------ */

static int device_alloc(void *self, uint64_t bytes, void **out)
{
    struct host_device *d = self;

    return host_memory_alloc(&d->memory, bytes, out);
}

static void device_free(void *self, void *p)
{
    struct host_device *d = self;

    host_memory_free(&d->memory, p);
}

/* Only wrappers of a device use what is said to be live. */
static void device_live(void *self, struct fsdp_stream *stream, uint32_t kind,
                        uint32_t unit, void *p, uint64_t bytes)
{
    (void)self;
    (void)stream;
    (void)kind;
    (void)unit;
    (void)p;
    (void)bytes;
}

static void device_dead(void *self, struct fsdp_stream *stream, void *p)
{
    (void)self;
    (void)stream;
    (void)p;
}

/* ---- Work -------------------------------------------------------------- */

static int do_copy(void *argument, int failed)
{
    const struct copy *c = argument;

    if (failed == FSDP_OK) {
        memcpy(c->to, c->from, c->bytes);
    }
    return failed;
}

static int device_copy(void *self, struct fsdp_stream *stream, void *to,
                       const void *from, uint64_t bytes)
{
    struct copy c = {to, from, bytes};

    (void)self;
    if (bytes == 0) {
        return FSDP_OK;
    }
    if (!to || !from || bytes > SIZE_MAX) {
        return FSDP_ERR_INVALID;
    }
    return stream ? host_stream_push(stream->queue, do_copy, &c, sizeof(c),
                                     host_duration_of_copy(bytes))
                  : do_copy(&c, FSDP_OK);
}

static int do_operation(void *argument, int failed)
{
    const struct operation *o = argument;

    return failed != FSDP_OK ? failed : host_ops_run(o->ops, &o->op);
}

/* Whether the operator reads ids: these are there only once the stream has come
 * that far, so that they cannot be checked earlier. */
static bool reads_ids(uint32_t kind)
{
    return kind == FSDP_OP_EMBEDDING || kind == FSDP_OP_EMBEDDING_GRAD ||
           kind == FSDP_OP_CROSS_ENTROPY;
}

static int device_run(void *self, struct fsdp_stream *stream,
                      const struct fsdp_op *op)
{
    const struct host_device *d = self;
    struct operation o;

    if (!op || op->size < sizeof(*op)) {
        return FSDP_ERR_INVALID;
    }
    if (!stream) {
        return host_ops_run(d->ops, op);
    }
    if (!reads_ids(op->kind)) {
        FSDP_TRY(host_check(op));
    }
    o.ops = stream->ops;
    o.op = *op;
    return host_stream_push(stream->queue, do_operation, &o, sizeof(o),
                            host_duration_of(op));
}

struct host_stream *host_device_queue(struct fsdp_stream *stream)
{
    return stream->queue;
}

/* ---- Streams ----------------------------------------------------------- */

static int device_stream_open(void *self, const char *name,
                              struct fsdp_stream **out)
{
    struct host_device *d = self;
    struct fsdp_stream *s;
    int status;

    if (!out) {
        return FSDP_ERR_INVALID;
    }
    *out = NULL;
    s = calloc(1, sizeof(*s));
    if (!s) {
        return FSDP_ERR_NOMEM;
    }
    status = host_ops_create(d->level, &s->ops);
    if (status == FSDP_OK) {
        status = host_stream_open(name, &s->queue);
    }
    if (status != FSDP_OK) {
        host_ops_destroy(s->ops);
        free(s);
        return status;
    }
    s->next = d->streams;
    d->streams = s;
    *out = s;
    return FSDP_OK;
}

static void device_stream_close(void *self, struct fsdp_stream *stream)
{
    struct host_device *d = self;
    struct fsdp_stream **link = &d->streams;

    while (*link && *link != stream) {
        link = &(*link)->next;
    }
    if (*link) {
        *link = stream->next;
        host_stream_close(stream->queue);
        host_ops_destroy(stream->ops);
        free(stream);
    }
}

static int device_mark(void *self, struct fsdp_stream *stream,
                       uint64_t *out_ticket)
{
    (void)self;
    if (!out_ticket) {
        return FSDP_ERR_INVALID;
    }
    *out_ticket = stream ? host_stream_mark(stream->queue) : 1;
    return FSDP_OK;
}

static int device_wait(void *self, struct fsdp_stream *later,
                       struct fsdp_stream *earlier, uint64_t ticket,
                       const char *edge)
{
    (void)self;
    (void)edge;
    if (!earlier) {
        return FSDP_OK;
    }
    return later ? host_stream_order(later->queue, earlier->queue, ticket)
                 : host_stream_wait(earlier->queue, ticket);
}

/* All are waited for, even when one has failed. */
static int device_sync(void *self, struct fsdp_stream *stream)
{
    const struct host_device *d = self;
    int first = FSDP_OK;

    if (stream) {
        return host_stream_wait(stream->queue, 0);
    }
    for (struct fsdp_stream *s = d->streams; s; s = s->next) {
        int status = host_stream_wait(s->queue, 0);
        first = first != FSDP_OK ? first : status;
    }
    return first;
}

static int do_stamp(void *argument, int failed)
{
    uint64_t **ns = argument;
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    **ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    return failed;
}

static int device_stamp(void *self, struct fsdp_stream *stream, uint64_t *ns)
{
    (void)self;
    return stream ? host_stream_push(stream->queue, do_stamp, &ns, sizeof(ns),
                                     STAMP_NS)
                  : do_stamp(&ns, FSDP_OK);
}

/* ---- The device -------------------------------------------------------- */

int host_device_open(enum simd_level level, struct fsdp_device *out)
{
    struct host_device *d;
    int status;

    if (!out) {
        return FSDP_ERR_INVALID;
    }
    *out = (struct fsdp_device){0};
    d = calloc(1, sizeof(*d));
    if (!d) {
        return FSDP_ERR_NOMEM;
    }
    d->level = level;
    status = host_ops_create(level, &d->ops);
    if (status != FSDP_OK) {
        free(d);
        return status;
    }
    *out = (struct fsdp_device){
        .size = sizeof(*out),
        .place = FSDP_PLACE_HOST,
        .self = d,
        .profile = "f32-fma",
        .alloc = device_alloc,
        .free = device_free,
        .live = device_live,
        .dead = device_dead,
        .copy = device_copy,
        .run = device_run,
        .stream_open = device_stream_open,
        .stream_close = device_stream_close,
        .mark = device_mark,
        .wait = device_wait,
        .sync = device_sync,
        .stamp = device_stamp,
    };
    return FSDP_OK;
}

void host_device_close(struct fsdp_device *device)
{
    struct host_device *d = device ? device->self : NULL;

    if (!d) {
        return;
    }
    while (d->streams) {
        device_stream_close(d, d->streams);
    }
    host_ops_destroy(d->ops);
    free(d);
    *device = (struct fsdp_device){0};
}
