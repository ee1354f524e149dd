/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_buffers.c - the model's buffers: on every rank each has a place of its
 * own, which no stream but the model's ever uses. In host memory, from which
 * they come and to which a checkpoint takes them, they are in the dtypes that
 * they are stored in.
 */
#include "impl_calls.h"

#include <fsdp/arith/cast.h>
#include <stdlib.h>
#include <string.h>

static bool is_float(uint32_t dtype)
{
    return dtype >= FSDP_DTYPE_F32 && dtype <= FSDP_DTYPE_F16;
}

uint32_t impl_buffer_dtype(const struct fsdp_sharded *s, uint32_t b)
{
    const uint32_t stored = s->model->buffer_dtype[b];
    const uint32_t u = s->units.unit_of_module[s->model->buffer_module[b]];
    uint32_t asked = s->options.buffer_dtype;

    if (u != FSDP_NO_UNIT && s->units.buffer_dtype &&
        s->units.buffer_dtype[u] != FSDP_DTYPE_NONE) {
        asked = s->units.buffer_dtype[u];
    }
    return is_float(stored) && asked != FSDP_DTYPE_NONE ? asked : stored;
}

static uint64_t stored_bytes(const struct fsdp_sharded *s, uint32_t b)
{
    return s->model->buffer_numel[b] *
           fsdp_dtype_bytes(s->model->buffer_dtype[b]);
}

static uint64_t resting_bytes(const struct fsdp_sharded *s, uint32_t b)
{
    return s->model->buffer_numel[b] * fsdp_dtype_bytes(s->buffer[b].dtype);
}

static void cast(uint64_t n, uint32_t from, const void *x, uint32_t to, void *y)
{
    for (uint64_t i = 0; i < n; i++) {
        fsdp_store(to, y, i, fsdp_load(from, x, i));
    }
}

static int copy(struct fsdp_sharded *s, uint32_t b, void *resting, bool out)
{
    const struct fsdp_device *d = s->env->device;
    const struct impl_buffer *x = &s->buffer[b];

    /* The model's last write to the buffer may still be on its way. */
    FSDP_TRY(d->copy(d->self, s->env->compute, out ? resting : x->p,
                     out ? x->p : resting, resting_bytes(s, b)));
    return d->sync(d->self, s->env->compute);
}

void *impl_rest_buffer(struct fsdp_sharded *s, uint32_t b, void *stored)
{
    const uint32_t dtype = s->model->buffer_dtype[b];
    void *resting;

    if (s->buffer[b].dtype == dtype) {
        return stored;
    }
    resting = malloc(resting_bytes(s, b) + 1);
    if (resting) {
        cast(s->model->buffer_numel[b], dtype, stored, s->buffer[b].dtype,
             resting);
    }
    free(stored);
    return resting;
}

static int make(struct fsdp_sharded *s, uint32_t b)
{
    const struct fsdp_model *model = s->model;
    const struct fsdp_device *d = s->env->device;
    const uint64_t bytes = resting_bytes(s, b);
    void *stored = malloc(stored_bytes(s, b) + 1);
    int status = stored ? d->alloc(d->self, bytes, &s->buffer[b].p)
                        : impl_out_of_memory(s->env);

    if (status == FSDP_OK) {
        d->live(d->self, NULL, FSDP_BUFFER,
                s->units.unit_of_module[model->buffer_module[b]],
                s->buffer[b].p, bytes);
        status = model->initial_buffer(model->context, b, 0,
                                       model->buffer_numel[b], stored);
    }
    if (status == FSDP_OK) {
        stored = impl_rest_buffer(s, b, stored);
        status =
            stored ? copy(s, b, stored, false) : impl_out_of_memory(s->env);
    }
    free(stored);
    return status;
}

int impl_make_buffers(struct fsdp_sharded *s)
{
    s->buffer = calloc(s->model->n_buffers + (size_t)1, sizeof(*s->buffer));
    if (!s->buffer) {
        return impl_out_of_memory(s->env);
    }
    for (uint32_t b = 0; b < s->model->n_buffers; b++) {
        s->buffer[b].dtype = impl_buffer_dtype(s, b);
        FSDP_TRY(make(s, b));
    }
    return FSDP_OK;
}

void impl_release_buffers(struct fsdp_sharded *s)
{
    const struct fsdp_device *d = s->env->device;

    for (uint32_t b = 0; s->buffer && b < s->model->n_buffers; b++) {
        if (s->buffer[b].p && s->model->buffer_numel[b] > 0) {
            d->dead(d->self, NULL, s->buffer[b].p);
        }
        d->free(d->self, s->buffer[b].p);
    }
    free(s->buffer);
}

int impl_buffer(struct fsdp_sharded *s, uint32_t b, struct fsdp_tensor *out)
{
    memset(out, 0, sizeof(*out));
    if (b >= s->model->n_buffers) {
        return impl_fail(s->env, FSDP_ERR_INVALID, "impl.buffer",
                         "there is no buffer %u: the model has %u", b,
                         s->model->n_buffers);
    }
    out->data = s->buffer[b].p;
    out->dtype = s->buffer[b].dtype;
    out->place = s->env->device->place;
    out->n_dims = 1;
    out->shape[0] = s->model->buffer_numel[b];
    out->stride[0] = 1;
    return FSDP_OK;
}

/* ---- Checkpoints -------------------------------------------------------- */

bool impl_persists(const struct fsdp_sharded *s, uint32_t b)
{
    return (s->model->buffer_flags[b] & FSDP_NOT_PERSISTED) == 0;
}

void *impl_stored_buffer(struct fsdp_sharded *s, uint32_t b)
{
    return malloc(stored_bytes(s, b) + 1);
}

int impl_read_buffer(struct fsdp_sharded *s, uint32_t b, void *stored)
{
    const uint32_t dtype = s->model->buffer_dtype[b];
    void *resting =
        s->buffer[b].dtype == dtype ? stored : malloc(resting_bytes(s, b) + 1);
    int status =
        resting ? copy(s, b, resting, true) : impl_out_of_memory(s->env);

    if (resting && resting != stored) {
        if (status == FSDP_OK) {
            cast(s->model->buffer_numel[b], s->buffer[b].dtype, resting, dtype,
                 stored);
        }
        free(resting);
    }
    return status;
}

int impl_write_buffer(struct fsdp_sharded *s, uint32_t b, void *resting)
{
    return copy(s, b, resting, false);
}
