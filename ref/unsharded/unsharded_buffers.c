/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unsharded_buffers.c - buffers of the baseline: each logical rank has its own,
 * side by side in one block of memory, buffer after buffer.
 */
#include "unsharded.h"

#include <stdlib.h>
#include <string.h>

static uint32_t resting_dtype(const struct fsdp_sharded *s, uint32_t b)
{
    return s->buffer_dtype[b];
}

/* Bytes of one rank's, in whole lines, so that any element is aligned. */
static uint64_t room_of(const struct fsdp_sharded *s, uint32_t b)
{
    const uint64_t line = 64;
    const uint64_t bytes =
        s->model->buffer_numel[b] * fsdp_dtype_bytes(resting_dtype(s, b));

    return (bytes + line - 1) / line * line;
}

static char *of_rank(const struct fsdp_sharded *s, uint32_t rank, uint32_t b)
{
    char *at = s->buffers + rank * s->buffer_room;

    for (uint32_t i = 0; i < b; i++) {
        at += room_of(s, i);
    }
    return at;
}

/* Gives a stored value to every rank. */
static void spread(struct fsdp_sharded *s, uint32_t b, const void *stored)
{
    for (uint32_t r = 0; r < s->ranks; r++) {
        ref_convert_host(s->model->buffer_numel[b], s->model->buffer_dtype[b],
                         stored, resting_dtype(s, b), of_rank(s, r, b));
    }
}

static int initialise(struct fsdp_sharded *s, uint32_t b)
{
    const struct fsdp_model *model = s->model;
    const uint64_t n = model->buffer_numel[b];
    void *stored = malloc(n * fsdp_dtype_bytes(model->buffer_dtype[b]) + 1);
    int status = FSDP_ERR_NOMEM;

    if (stored) {
        status = model->initial_buffer(model->context, b, 0, n, stored);
    }
    if (status == FSDP_OK) {
        spread(s, b, stored);
    }
    free(stored);
    return status;
}

int unsharded_make_buffers(struct fsdp_sharded *s,
                           const struct fsdp_units *units)
{
    const struct fsdp_device *d = s->env->device;
    const uint32_t n = s->model->n_buffers;
    void *p = NULL;

    s->buffer_dtype = calloc(n + 1u, sizeof(*s->buffer_dtype));
    if (!s->buffer_dtype) {
        return ref_fail(s->env, FSDP_ERR_NOMEM, "unsharded", "out of memory");
    }
    for (uint32_t b = 0; b < n; b++) {
        s->buffer_dtype[b] = ref_buffer_dtype(&s->options, units, s->model, b);
        s->buffer_room += room_of(s, b);
    }
    FSDP_TRY(d->alloc(d->self, s->ranks * s->buffer_room, &p));
    d->live(d->self, NULL, FSDP_BUFFER, FSDP_NO_UNIT, p,
            s->ranks * s->buffer_room);
    s->buffers = p;
    for (uint32_t b = 0; b < n; b++) {
        FSDP_TRY(initialise(s, b));
    }
    return FSDP_OK;
}

void unsharded_free_buffers(struct fsdp_sharded *s)
{
    const struct fsdp_device *d = s->env->device;

    if (s->buffers) {
        d->dead(d->self, NULL, s->buffers);
        d->free(d->self, s->buffers);
    }
    free(s->buffer_dtype);
}

int unsharded_buffer(struct fsdp_sharded *s, uint32_t b,
                     struct fsdp_tensor *out)
{
    if (b >= s->model->n_buffers) {
        return ref_fail(s->env, FSDP_ERR_INVALID, "unsharded.buffer",
                        "buffer %u of %u", b, s->model->n_buffers);
    }
    *out = (struct fsdp_tensor){.data = of_rank(s, s->env->rank, b),
                                .dtype = resting_dtype(s, b),
                                .place = s->env->device->place,
                                .n_dims = 1,
                                .shape = {s->model->buffer_numel[b]},
                                .stride = {1}};
    return FSDP_OK;
}

static uint64_t stored_bytes(const struct fsdp_sharded *s, uint32_t b)
{
    return s->model->buffer_numel[b] *
           fsdp_dtype_bytes(s->model->buffer_dtype[b]);
}

static bool is_kept(const struct fsdp_sharded *s, uint32_t b)
{
    return (s->model->buffer_flags[b] & FSDP_NOT_PERSISTED) == 0;
}

uint64_t unsharded_kept_bytes(const struct fsdp_sharded *s)
{
    uint64_t bytes = 0;

    for (uint32_t b = 0; b < s->model->n_buffers; b++) {
        bytes += is_kept(s, b) ? stored_bytes(s, b) : 0;
    }
    return bytes;
}

/* A save takes the first rank's buffers; a load gives them to all ranks. Stored
 * values may be unaligned. */
int unsharded_keep_buffers(struct fsdp_sharded *s, char *to)
{
    for (uint32_t b = 0; b < s->model->n_buffers; b++) {
        void *stored = is_kept(s, b) ? malloc(stored_bytes(s, b) + 1) : NULL;

        if (!is_kept(s, b)) {
            continue;
        }
        if (!stored) {
            return FSDP_ERR_NOMEM;
        }
        ref_convert_host(s->model->buffer_numel[b], resting_dtype(s, b),
                         of_rank(s, 0, b), s->model->buffer_dtype[b], stored);
        memcpy(to, stored, stored_bytes(s, b));
        to += stored_bytes(s, b);
        free(stored);
    }
    return FSDP_OK;
}

int unsharded_take_buffers(struct fsdp_sharded *s, const char *from)
{
    for (uint32_t b = 0; b < s->model->n_buffers; b++) {
        void *stored = is_kept(s, b) ? malloc(stored_bytes(s, b) + 1) : NULL;

        if (!is_kept(s, b)) {
            continue;
        }
        if (!stored) {
            return FSDP_ERR_NOMEM;
        }
        memcpy(stored, from, stored_bytes(s, b));
        spread(s, b, stored);
        from += stored_bytes(s, b);
        free(stored);
    }
    return FSDP_OK;
}
