/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_count.c - hands everything on, and counts. A span's times are taken in
 * its stream, right before it and right behind it.
 */
#include "tools/bench/bench_count.h"

#include "tools/bench/shares.h"

#include <stddef.h>
#include <string.h>

static const struct fsdp_device *real(void *self)
{
    return ((struct bench_count *)self)->real;
}

/* ---- When it ran -------------------------------------------------------- */

bool bench_count_times(const struct fsdp_device *d)
{
    return d->size >= offsetof(struct fsdp_device, stamp) + sizeof(d->stamp) &&
           d->stamp;
}

static int stamp(const struct bench_count *x, struct fsdp_stream *stream,
                 uint64_t *ns)
{
    return x->real->stamp(x->real->self, stream, ns);
}

/* *out is NULL unless times are wanted. */
static int begin(struct bench_count *x, struct fsdp_stream *stream,
                 uint32_t share, struct bench_span **out)
{
    struct bench_span *s = NULL;

    *out = NULL;
    x->calls++;
    if (!x->span) {
        return FSDP_OK;
    }
    if (x->n_spans == x->room) {
        return FSDP_ERR_NOMEM;
    }
    s = &x->span[x->n_spans++];
    *s = (struct bench_span){.share = share};
    *out = s;
    return stamp(x, stream, &s->begin);
}

static int end(const struct bench_count *x, struct fsdp_stream *stream,
               struct bench_span *s)
{
    return s ? stamp(x, stream, &s->end) : FSDP_OK;
}

/* ---- Handed on ---------------------------------------------------------- */

static uint64_t rounded(uint64_t bytes)
{
    uint64_t pieces = (bytes + BENCH_COUNT_PIECE - 1) / BENCH_COUNT_PIECE;

    return bytes < BENCH_COUNT_SMALL ? bytes : pieces * BENCH_COUNT_PIECE;
}

static void count_bytes(struct bench_count *x, uint64_t bytes)
{
    x->bytes += bytes;
    x->rounded += rounded(bytes);
    x->rounded_peak =
        x->rounded > x->rounded_peak ? x->rounded : x->rounded_peak;
    if (x->bytes > x->peak) {
        x->peak = x->bytes;
        if (x->more) {
            x->more(x->more_self);
        }
    }
}

static int count_alloc(void *self, uint64_t bytes, void **out)
{
    struct bench_count *x = self;
    int i = 0;

    FSDP_TRY(x->real->alloc(x->real->self, bytes, out));
    while (i < BENCH_COUNT_BLOCKS && x->block[i].p) {
        i++;
    }
    if (i < BENCH_COUNT_BLOCKS) {
        x->block[i].p = *out;
        x->block[i].bytes = bytes;
        count_bytes(x, bytes);
    }
    return FSDP_OK;
}

static void count_free(void *self, void *p)
{
    struct bench_count *x = self;

    for (int i = 0; i < BENCH_COUNT_BLOCKS && p; i++) {
        if (x->block[i].p == p) {
            x->bytes -= x->block[i].bytes;
            x->rounded -= rounded(x->block[i].bytes);
            x->block[i].p = NULL;
            break;
        }
    }
    x->real->free(x->real->self, p);
}

static void count_live(void *self, struct fsdp_stream *stream, uint32_t kind,
                       uint32_t unit, void *p, uint64_t bytes)
{
    real(self)->live(real(self)->self, stream, kind, unit, p, bytes);
}

static void count_dead(void *self, struct fsdp_stream *stream, void *p)
{
    real(self)->dead(real(self)->self, stream, p);
}

static int count_copy(void *self, struct fsdp_stream *stream, void *to,
                      const void *from, uint64_t bytes)
{
    struct bench_count *x = self;
    struct bench_span *span;

    FSDP_TRY(begin(x, stream, SHARE_REST, &span));
    FSDP_TRY(x->real->copy(x->real->self, stream, to, from, bytes));
    return end(x, stream, span);
}

static int count_run(void *self, struct fsdp_stream *stream,
                     const struct fsdp_op *op)
{
    struct bench_count *x = self;
    struct bench_span *span;

    FSDP_TRY(begin(x, stream, share_of_operator(op->kind), &span));
    FSDP_TRY(x->real->run(x->real->self, stream, op));
    return end(x, stream, span);
}

static int count_stream_open(void *self, const char *name,
                             struct fsdp_stream **out)
{
    return real(self)->stream_open(real(self)->self, name, out);
}

static void count_stream_close(void *self, struct fsdp_stream *stream)
{
    real(self)->stream_close(real(self)->self, stream);
}

static int count_mark(void *self, struct fsdp_stream *stream, uint64_t *ticket)
{
    return real(self)->mark(real(self)->self, stream, ticket);
}

static int count_wait(void *self, struct fsdp_stream *later,
                      struct fsdp_stream *earlier, uint64_t ticket,
                      const char *edge)
{
    return real(self)->wait(real(self)->self, later, earlier, ticket, edge);
}

static int count_sync(void *self, struct fsdp_stream *stream)
{
    return real(self)->sync(real(self)->self, stream);
}

static int count_collective(void *self, struct fsdp_stream *stream,
                            const struct fsdp_collective *c)
{
    struct bench_count *x = self;
    struct bench_span *span;

    FSDP_TRY(begin(x, stream, SHARE_COMMUNICATION, &span));
    FSDP_TRY(x->real_comm->run(x->real_comm->self, stream, c));
    return end(x, stream, span);
}

static void count_abort(void *self, int32_t status)
{
    struct bench_count *x = self;

    x->real_comm->abort(x->real_comm->self, status);
}

void bench_count_open(struct bench_count *x, struct fsdp_env *env)
{
    memset(x, 0, sizeof(*x));
    x->real = env->device;
    x->real_comm = env->comm;
    x->device = (struct fsdp_device){.size = sizeof(x->device),
                                     .place = x->real->place,
                                     .self = x,
                                     .profile = x->real->profile,
                                     .alloc = count_alloc,
                                     .free = count_free,
                                     .live = count_live,
                                     .dead = count_dead,
                                     .copy = count_copy,
                                     .run = count_run,
                                     .stream_open = count_stream_open,
                                     .stream_close = count_stream_close,
                                     .mark = count_mark,
                                     .wait = count_wait,
                                     .sync = count_sync};
    x->comm = *x->real_comm;
    x->comm.self = x;
    x->comm.run = count_collective;
    x->comm.abort = count_abort;
    env->device = &x->device;
    env->comm = &x->comm;
}
