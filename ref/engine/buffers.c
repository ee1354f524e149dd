/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffers.c - 8. Buffers: what a model keeps besides its parameters. Each is
 * whole on every rank, in a dtype of its own, and never sent; between shard and
 * destroy its values are the model's.
 */
#include "sharded.h"

#include <fsdp/arith/cast.h>
#include <stdlib.h>
#include <string.h>

void ref_convert_host(uint64_t n, uint32_t from, const void *x, uint32_t to,
                      void *y)
{
    if (from == to) {
        memcpy(y, x, n * fsdp_dtype_bytes(to));
        return;
    }
    for (uint64_t i = 0; i < n; i++) {
        fsdp_store(to, y, i, fsdp_load(from, x, i));
    }
}

void *ref_rest_buffer(struct fsdp_sharded *s, uint32_t b, void *stored)
{
    const struct ref_buffer *x = &s->buffer[b];
    void *resting = malloc(x->numel * fsdp_dtype_bytes(x->dtype) + 1);

    if (resting) {
        ref_convert_host(x->numel, s->model->buffer_dtype[b], stored, x->dtype,
                         resting);
    }
    free(stored);
    return resting;
}

int ref_write_buffer(struct fsdp_sharded *s, uint32_t b, const void *resting)
{
    const struct fsdp_device *d = s->env->device;
    const struct ref_buffer *x = &s->buffer[b];

    FSDP_TRY(d->copy(d->self, s->env->compute, x->data, resting,
                     x->numel * fsdp_dtype_bytes(x->dtype)));
    return d->sync(d->self, s->env->compute);
}

int ref_read_buffer(struct fsdp_sharded *s, uint32_t b, void *stored)
{
    const struct fsdp_device *d = s->env->device;
    const struct ref_buffer *x = &s->buffer[b];
    const uint64_t bytes = x->numel * fsdp_dtype_bytes(x->dtype);
    void *resting = malloc(bytes + 1);
    int status;

    if (!resting) {
        return ref_fail(s->env, FSDP_ERR_NOMEM, "ref.buffer", "out of memory");
    }
    status = d->sync(d->self, s->env->compute);
    if (status == FSDP_OK) {
        status = d->copy(d->self, NULL, resting, x->data, bytes);
    }
    if (status == FSDP_OK) {
        ref_convert_host(x->numel, x->dtype, resting, s->model->buffer_dtype[b],
                         stored);
    }
    free(resting);
    return status;
}

static int make(struct fsdp_sharded *s, uint32_t b)
{
    const struct fsdp_model *model = s->model;
    struct ref_buffer *x = &s->buffer[b];
    const uint32_t stored = model->buffer_dtype[b];
    void *value = malloc(x->numel * fsdp_dtype_bytes(stored) + 1);
    int status;

    if (!value) {
        return ref_fail(s->env, FSDP_ERR_NOMEM, "ref.buffer", "out of memory");
    }
    status = ref_take(s, REF_DEVICE, FSDP_BUFFER,
                      s->units->unit_of_module[model->buffer_module[b]],
                      x->numel, x->dtype, &x->data);
    if (status == FSDP_OK) {
        status = model->initial_buffer(model->context, b, 0, x->numel, value);
    }
    if (status == FSDP_OK) {
        value = ref_rest_buffer(s, b, value);
        status = value ? ref_write_buffer(s, b, value)
                       : ref_fail(s->env, FSDP_ERR_NOMEM, "ref.buffer",
                                  "out of memory");
    }
    free(value);
    return status;
}

int ref_make_buffers(struct fsdp_sharded *s, const struct fsdp_units *units)
{
    const struct fsdp_model *model = s->model;

    s->buffer = calloc(model->n_buffers + 1u, sizeof(*s->buffer));
    if (!s->buffer) {
        return ref_fail(s->env, FSDP_ERR_NOMEM, "ref.buffer", "out of memory");
    }
    for (uint32_t b = 0; b < model->n_buffers; b++) {
        s->buffer[b].numel = model->buffer_numel[b];
        s->buffer[b].dtype = ref_buffer_dtype(&s->options, units, model, b);
    }
    for (uint32_t b = 0; b < model->n_buffers; b++) {
        FSDP_TRY(make(s, b));
    }
    return FSDP_OK;
}

void ref_drop_buffers(struct fsdp_sharded *s)
{
    for (uint32_t b = 0; b < s->model->n_buffers; b++) {
        ref_drop(s, REF_DEVICE, &s->buffer[b].data);
    }
    free(s->buffer);
}

int ref_buffer(struct fsdp_sharded *s, uint32_t b, struct fsdp_tensor *out)
{
    *out = (struct fsdp_tensor){0};
    if (b >= s->model->n_buffers) {
        return ref_fail(s->env, FSDP_ERR_INVALID, "ref.buffer",
                        "buffer %u of %u", b, s->model->n_buffers);
    }
    *out = (struct fsdp_tensor){.data = s->buffer[b].data,
                                .dtype = s->buffer[b].dtype,
                                .place = s->env->device->place,
                                .n_dims = 1,
                                .shape = {s->buffer[b].numel},
                                .stride = {1}};
    return FSDP_OK;
}
