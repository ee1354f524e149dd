/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_device.c - the few lines around device, streams and communicator that
 * everything else uses.
 */
#include "impl_state.h"

#include <stdarg.h>
#include <stdio.h>

int impl_fail(const struct fsdp_env *env, int32_t status, const char *where,
              const char *format, ...)
{
    struct fsdp_error *e = env->error;
    va_list arguments;

    if (e && e->status == FSDP_OK) {
        e->status = status;
        e->rank = (int32_t)env->rank;
        snprintf(e->where, sizeof(e->where), "%s", where);
        va_start(arguments, format);
        vsnprintf(e->message, sizeof(e->message), format, arguments);
        va_end(arguments);
    }
    return status;
}

int impl_out_of_memory(const struct fsdp_env *env)
{
    return impl_fail(env, FSDP_ERR_NOMEM, "impl.shard", "out of host memory");
}

/* An empty range is never live: another one may begin at its address. */
void impl_live(const struct fsdp_sharded *s, struct fsdp_stream *stream,
               uint32_t kind, uint32_t unit, float *p, uint64_t n)
{
    const struct fsdp_device *d = s->env->device;

    if (n > 0) {
        d->live(d->self, stream, kind, unit, p, n * sizeof(*p));
    }
}

int impl_take(struct fsdp_sharded *s, struct fsdp_stream *stream, uint32_t kind,
              uint32_t unit, uint64_t n, float *slot, float **out)
{
    *out = slot ? slot : s->rest.p; /* empty ranges are anywhere */
    if (!slot && n > 0) {
        FSDP_TRY(impl_arena_take(&s->arena, n, out));
    }
    impl_live(s, stream, kind, unit, *out, n);
    return FSDP_OK;
}

void impl_dead(struct fsdp_sharded *s, struct fsdp_stream *stream, float **p,
               uint64_t n)
{
    const struct fsdp_device *d = s->env->device;

    if (*p && n > 0) {
        d->dead(d->self, stream, *p);
        impl_arena_give(&s->arena, stream, *p);
    }
    *p = NULL;
}

int impl_wait(const struct fsdp_sharded *s, struct fsdp_stream *later,
              struct fsdp_stream *earlier, uint64_t ticket, const char *edge)
{
    const struct fsdp_device *d = s->env->device;

    if (later == earlier && later) {
        return FSDP_OK; /* its work happens in order */
    }
    return d->wait(d->self, later, earlier, ticket, edge);
}

int impl_mark(const struct fsdp_sharded *s, struct fsdp_stream *stream,
              uint64_t *ticket)
{
    return s->env->device->mark(s->env->device->self, stream, ticket);
}

int impl_run(const struct fsdp_sharded *s, struct fsdp_stream *stream,
             struct fsdp_op op)
{
    op.size = sizeof(op);
    return s->env->device->run(s->env->device->self, stream, &op);
}

int impl_fill_zero(const struct fsdp_sharded *s, struct fsdp_stream *stream,
                   uint32_t unit, float *p, uint64_t n)
{
    if (n == 0) {
        return FSDP_OK;
    }
    return impl_run(s, stream,
                    (struct fsdp_op){.kind = FSDP_OP_FILL,
                                     .unit = unit,
                                     .dim = {n},
                                     .f = {0.0f},
                                     .n_out = 1,
                                     .out = {{p, n * sizeof(*p)}}});
}

int impl_collective(const struct fsdp_sharded *s, struct fsdp_stream *stream,
                    uint32_t kind, uint32_t dim, uint32_t unit, const float *in,
                    float *out)
{
    const struct fsdp_comm *comm = s->env->comm;
    struct fsdp_collective c = {.size = sizeof(c),
                                .kind = kind,
                                .dim = dim,
                                .dtype = FSDP_DTYPE_F32,
                                .fold = s->options.fold,
                                .unit = unit,
                                .n = s->unit[unit].chunk,
                                .in = in,
                                .out = out};

    if (!comm->takes_streams) {
        FSDP_TRY(impl_wait(s, NULL, stream, 0, "stream->communicator"));
    }
    return comm->run(comm->self, stream, &c);
}
