/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_device.c - the few lines around device, streams and communicator that
 * everything else uses.
 */
#include "impl_calls.h"

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

const struct fsdp_device *impl_place_of(const struct fsdp_sharded *s,
                                        bool on_host)
{
    return on_host ? fsdp_host_of(s->env) : s->env->device;
}

/* An empty range is never live: another one may begin at its address. */
void impl_live(const struct fsdp_sharded *s, struct fsdp_stream *stream,
               const struct impl_value *what, void *p)
{
    const struct fsdp_device *d = impl_place_of(s, what->on_host);

    if (what->n > 0) {
        d->live(d->self, what->on_host ? NULL : stream, what->kind, what->unit,
                p, what->n * fsdp_dtype_bytes(what->dtype));
    }
}

int impl_take(struct fsdp_sharded *s, struct fsdp_stream *stream,
              struct impl_value what, void *slot, void **out)
{
    float *own = s->rest.p; /* empty ranges are anywhere */

    if (!slot && what.n > 0) {
        FSDP_TRY(
            impl_arena_take(&s->arena, impl_words(what.dtype, what.n), &own));
    }
    *out = slot ? slot : own;
    impl_live(s, stream, &what, *out);
    return FSDP_OK;
}

void impl_over(struct fsdp_sharded *s, struct fsdp_stream *stream, void *p,
               uint64_t n)
{
    const struct fsdp_device *d = s->env->device;

    if (p && n > 0) {
        d->dead(d->self, stream, p);
        impl_arena_give(&s->arena, stream, p);
    }
}

void impl_over_at(struct fsdp_sharded *s, bool on_host,
                  struct fsdp_stream *stream, void *p, uint64_t n)
{
    const struct fsdp_device *host = fsdp_host_of(s->env);

    if (!on_host) {
        impl_over(s, stream, p, n);
    } else if (p && n > 0) {
        host->dead(host->self, NULL, p);
    }
}

void impl_dead(struct fsdp_sharded *s, struct fsdp_stream *stream, void **p,
               uint64_t n)
{
    impl_over(s, stream, *p, n);
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

int impl_run_at(const struct fsdp_sharded *s, bool on_host,
                struct fsdp_stream *stream, struct fsdp_op op)
{
    const struct fsdp_device *d = impl_place_of(s, on_host);

    op.size = sizeof(op);
    return d->run(d->self, on_host ? NULL : stream, &op);
}

int impl_run(const struct fsdp_sharded *s, struct fsdp_stream *stream,
             struct fsdp_op op)
{
    return impl_run_at(s, false, stream, op);
}

int impl_copy(const struct fsdp_sharded *s, struct fsdp_stream *stream,
              void *to, const void *from, uint64_t bytes)
{
    const struct fsdp_device *d = s->env->device;

    return d->copy(d->self, stream, to, from, bytes);
}

/* Operators that have said nothing of dtypes are of float32. */
static uint32_t aux_of(uint32_t dtype)
{
    return dtype != FSDP_DTYPE_F32 ? dtype : FSDP_DTYPE_NONE;
}

int impl_fill_zero_at(const struct fsdp_sharded *s, struct fsdp_stream *stream,
                      const struct impl_value *what, void *p)
{
    uint64_t bytes = what->n * fsdp_dtype_bytes(what->dtype);

    if (what->n == 0) {
        return FSDP_OK;
    }
    return impl_run_at(s, what->on_host, stream,
                       (struct fsdp_op){.kind = FSDP_OP_FILL,
                                        .unit = what->unit,
                                        .aux = {aux_of(what->dtype)},
                                        .dim = {what->n},
                                        .f = {0.0f},
                                        .n_out = 1,
                                        .out = {{p, bytes}}});
}

int impl_fill_zero(const struct fsdp_sharded *s, struct fsdp_stream *stream,
                   uint32_t unit, uint32_t dtype, void *p, uint64_t n)
{
    return impl_fill_zero_at(
        s, stream, &(struct impl_value){.unit = unit, .dtype = dtype, .n = n},
        p);
}

int impl_cast(const struct fsdp_sharded *s, struct fsdp_stream *stream,
              const struct impl_cast *c)
{
    uint64_t bytes = c->n * fsdp_dtype_bytes(c->from_dtype);

    if (c->n == 0) {
        return FSDP_OK;
    }
    return impl_run_at(
        s, c->on_host, stream,
        (struct fsdp_op){
            .kind = FSDP_OP_CAST,
            .unit = c->unit,
            .aux = {c->from_dtype, c->to_dtype},
            .dim = {c->n},
            .n_in = 1,
            .in = {{c->from, bytes}},
            .n_out = 1,
            .out = {{c->to, c->n * fsdp_dtype_bytes(c->to_dtype)}}});
}

int impl_add(const struct fsdp_sharded *s, struct fsdp_stream *stream,
             const struct impl_sum *x)
{
    uint64_t bytes = x->n * fsdp_dtype_bytes(x->to_dtype);
    uint64_t what_bytes = x->n * fsdp_dtype_bytes(x->dtype);

    return impl_run_at(
        s, x->on_host, stream,
        (struct fsdp_op){.kind = FSDP_OP_ADD,
                         .unit = x->unit,
                         .aux = {aux_of(x->to_dtype), aux_of(x->dtype)},
                         .dim = {x->n},
                         .n_in = 2,
                         .in = {{x->to, bytes}, {x->what, what_bytes}},
                         .n_out = 1,
                         .out = {{x->to, bytes}}});
}

int impl_scale(const struct fsdp_sharded *s, struct fsdp_stream *stream,
               const struct impl_value *what, void *p, float factor)
{
    uint64_t bytes = what->n * fsdp_dtype_bytes(what->dtype);

    if (factor == 1.0f || what->n == 0) {
        return FSDP_OK;
    }
    return impl_run_at(s, what->on_host, stream,
                       (struct fsdp_op){.kind = FSDP_OP_SCALE,
                                        .unit = what->unit,
                                        .aux = {aux_of(what->dtype)},
                                        .dim = {what->n},
                                        .f = {factor},
                                        .n_in = 1,
                                        .in = {{p, bytes}},
                                        .n_out = 1,
                                        .out = {{p, bytes}}});
}

int impl_collective(const struct fsdp_sharded *s, struct fsdp_stream *stream,
                    const struct impl_call *call)
{
    const struct fsdp_comm *comm = s->env->comm;
    const struct impl_unit *x = &s->unit[call->unit];
    struct fsdp_collective c = {
        .size = sizeof(c),
        .kind = call->kind,
        .dim = call->dim,
        .dtype = call->dtype,
        .fold = s->options.fold,
        .unit = call->unit,
        .n = call->kind == FSDP_ALL_GATHER ? x->chunk : x->grad_chunk,
        .in = call->in,
        .out = call->out};

    if (call->kind != FSDP_ALL_GATHER && x->dtype.sum != call->dtype) {
        c.sum_dtype = x->dtype.sum;
    }
    if (!comm->takes_streams) {
        FSDP_TRY(impl_wait(s, NULL, stream, 0, "stream->communicator"));
    }
    return comm->run(comm->self, stream, &c);
}
