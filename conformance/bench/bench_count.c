/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_count.c - hands everything on, and counts.
 */
#include "bench/bench_count.h"

#include <string.h>

static const struct fsdp_device *real(void *self)
{
    return ((struct bench_count *)self)->real;
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
        x->bytes += bytes;
        x->peak = x->bytes > x->peak ? x->bytes : x->peak;
    }
    return FSDP_OK;
}

static void count_free(void *self, void *p)
{
    struct bench_count *x = self;

    for (int i = 0; i < BENCH_COUNT_BLOCKS && p; i++) {
        if (x->block[i].p == p) {
            x->bytes -= x->block[i].bytes;
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
    ((struct bench_count *)self)->calls++;
    return real(self)->copy(real(self)->self, stream, to, from, bytes);
}

static int count_run(void *self, struct fsdp_stream *stream,
                     const struct fsdp_op *op)
{
    ((struct bench_count *)self)->calls++;
    return real(self)->run(real(self)->self, stream, op);
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

    x->calls++;
    return x->real_comm->run(x->real_comm->self, stream, c);
}

static void count_abort(void *self, int32_t status)
{
    struct bench_count *x = self;

    x->real_comm->abort(x->real_comm->self, status);
}

void bench_count_open(struct bench_count *x, struct fsdp_env *env)
{
    memset(x, 0, sizeof *x);
    x->real = env->device;
    x->real_comm = env->comm;
    x->device = (struct fsdp_device){.size = sizeof x->device,
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
