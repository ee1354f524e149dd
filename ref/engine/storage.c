/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storage.c - the few functions around the device that all others use: one
 * allocation for each live value, from live to dead; the tensors that are lent
 * for parameters and gradients; and the device itself.
 */
#include "ref/ops/plain_device.h"
#include "sharded.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int ref_fail(const struct fsdp_env *env, int32_t status, const char *where,
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

/* Which device, and which stream: on the host each call has finished when it
 * returns. */
static const struct fsdp_device *device_of(const struct fsdp_sharded *s,
                                           uint32_t where)
{
    return where == REF_HOST ? s->host : s->env->device;
}

static struct fsdp_stream *stream_of(const struct fsdp_sharded *s,
                                     uint32_t where)
{
    return where == REF_HOST ? NULL : s->env->compute;
}

int ref_take(struct fsdp_sharded *s, uint32_t where, uint32_t kind,
             uint32_t unit, uint64_t n, uint32_t dtype, void *out)
{
    const struct fsdp_device *d = device_of(s, where);
    const uint64_t bytes = n * fsdp_dtype_bytes(dtype);
    void *p = NULL;
    void *held;
    int status;

    memcpy(&held, out, sizeof(held));
    assert(!held); /* it would be lost */
    status = d->alloc(d->self, bytes, &p);
    if (status != FSDP_OK) {
        return ref_fail(s->env, status, "ref.alloc",
                        "the %s has no %llu bytes for unit %u",
                        where == REF_HOST ? "host" : "device",
                        (unsigned long long)bytes, unit);
    }
    d->live(d->self, stream_of(s, where), kind, unit, p, bytes);
    memcpy(out, &p, sizeof(p));
    return FSDP_OK;
}

void ref_drop(struct fsdp_sharded *s, uint32_t where, void *p)
{
    const struct fsdp_device *d = device_of(s, where);
    struct fsdp_stream *stream = stream_of(s, where);
    void *what;

    memcpy(&what, p, sizeof(what));
    if (what) {
        d->dead(d->self, stream, what);
        (void)d->wait(d->self, NULL, stream, 0, "dead->free");
        d->free(d->self, what);
        what = NULL;
        memcpy(p, &what, sizeof(what));
    }
}

void *ref_at(void *p, uint32_t dtype, uint64_t i)
{
    return p ? (char *)p + i * fsdp_dtype_bytes(dtype) : NULL;
}

int ref_run(struct fsdp_sharded *s, uint32_t where, struct fsdp_op op)
{
    const struct fsdp_device *d = device_of(s, where);

    op.size = sizeof(op);
    return d->run(d->self, stream_of(s, where), &op);
}

/* Either copy has finished on return: the host may use what was copied to it,
 * or write to what was copied from it. */
int ref_cross(struct fsdp_sharded *s, uint32_t to_where, uint64_t bytes,
              const void *from, void *to)
{
    const struct fsdp_device *d = s->env->device;

    FSDP_TRY(d->copy(d->self, s->env->compute, to, from, bytes));
    return d->wait(d->self, NULL, s->env->compute, 0,
                   to_where == REF_HOST ? "device->host" : "host->device");
}

int ref_fill_zero(struct fsdp_sharded *s, uint32_t where, uint32_t unit,
                  uint32_t dtype, void *p, uint64_t n)
{
    return ref_run(s, where,
                   (struct fsdp_op){.kind = FSDP_OP_FILL,
                                    .unit = unit,
                                    .aux = {dtype},
                                    .dim = {n},
                                    .f = {0.0f},
                                    .n_out = 1,
                                    .out = {{p, n * fsdp_dtype_bytes(dtype)}}});
}

int ref_convert(struct fsdp_sharded *s, uint32_t where, uint32_t unit,
                uint64_t n, uint32_t from, const void *x, uint32_t to, void *y)
{
    const struct fsdp_device *d = device_of(s, where);

    if (from == to) {
        return d->copy(d->self, stream_of(s, where), y, x,
                       n * fsdp_dtype_bytes(to));
    }
    return ref_run(s, where,
                   (struct fsdp_op){.kind = FSDP_OP_CAST,
                                    .unit = unit,
                                    .aux = {from, to},
                                    .dim = {n},
                                    .n_in = 1,
                                    .in = {{x, n * fsdp_dtype_bytes(from)}},
                                    .n_out = 1,
                                    .out = {{y, n * fsdp_dtype_bytes(to)}}});
}

int ref_add_to(struct fsdp_sharded *s, uint32_t where, uint32_t unit,
               uint64_t n, uint32_t dtype, void *sum, uint32_t x_dtype,
               const void *x)
{
    const uint64_t bytes = n * fsdp_dtype_bytes(dtype);

    return ref_run(s, where,
                   (struct fsdp_op){
                       .kind = FSDP_OP_ADD,
                       .unit = unit,
                       .aux = {dtype, x_dtype},
                       .dim = {n},
                       .n_in = 2,
                       .in = {{sum, bytes}, {x, n * fsdp_dtype_bytes(x_dtype)}},
                       .n_out = 1,
                       .out = {{sum, bytes}}});
}

struct fsdp_tensor ref_tensor(const struct fsdp_env *env,
                              const struct fsdp_model *model, uint32_t p,
                              uint32_t dtype, void *data)
{
    struct fsdp_tensor t = {.data = data,
                            .dtype = dtype,
                            .place = env->device->place,
                            .n_dims = model->parameter_n_dims[p]};
    int64_t stride = 1;

    for (uint32_t d = t.n_dims; d-- > 0;) {
        t.shape[d] = model->parameter_shape[p][d];
        t.stride[d] = stride;
        stride *= (int64_t)t.shape[d];
    }
    return t;
}

int ref_open(struct fsdp_env *env)
{
    struct fsdp_device *device = malloc(sizeof(*device));

    if (!device) {
        return ref_fail(env, FSDP_ERR_NOMEM, "ref.open", "out of memory");
    }
    if (ref_device_open(device) != FSDP_OK) {
        free(device);
        return ref_fail(env, FSDP_ERR_NOMEM, "ref.open", "out of memory");
    }
    env->device = env->host = device; /* the same memory */
    env->engine = device;
    return FSDP_OK;
}

void ref_close(struct fsdp_env *env)
{
    if (env->engine) {
        ref_device_close(env->engine);
        free(env->engine);
        env->engine = NULL;
        env->device = env->host = NULL;
    }
}
