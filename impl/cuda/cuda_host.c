/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_host.c - struct fsdp_device over pinned memory and host_ops.h.
 */
#include "cuda_host.h"

#include "cuda_device.h"
#include "host_ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cuda_host {
    struct cuda_device *device;
    struct host_ops *ops;
};

static int host_alloc(void *self, uint64_t bytes, void **out)
{
    struct cuda_host *h = self;
    cudaError_t error;

    if (!out) {
        return FSDP_ERR_INVALID;
    }
    *out = NULL;
    FSDP_TRY(cuda_device_status(h->device));
    error = cudaHostAlloc(out, bytes > 0 ? bytes : 1, cudaHostAllocPortable);
    if (error == cudaErrorMemoryAllocation) { /* the caller may go on with
                                               * less */
        (void)cudaGetLastError();
        return FSDP_ERR_NOMEM;
    }
    return cuda_device_check(h->device, error, "cudaHostAlloc");
}

static void host_free(void *self, void *p)
{
    struct cuda_host *h = self;

    if (p && cuda_device_idle(h->device)) {
        (void)cudaFreeHost(p);
    }
}

static void host_live(void *self, struct fsdp_stream *stream, uint32_t kind,
                      uint32_t unit, void *p, uint64_t bytes)
{
    (void)self;
    (void)stream;
    (void)kind;
    (void)unit;
    (void)p;
    (void)bytes;
}

static void host_dead(void *self, struct fsdp_stream *stream, void *p)
{
    (void)self;
    (void)stream;
    (void)p;
}

static int host_copy(void *self, struct fsdp_stream *stream, void *to,
                     const void *from, uint64_t bytes)
{
    (void)self;
    if (stream || (bytes > 0 && (!to || !from))) {
        return FSDP_ERR_INVALID;
    }
    if (bytes > 0) {
        memcpy(to, from, bytes);
    }
    return FSDP_OK;
}

static int host_run(void *self, struct fsdp_stream *stream,
                    const struct fsdp_op *op)
{
    const struct cuda_host *h = self;

    return stream || !op || op->size < sizeof(*op) ? FSDP_ERR_INVALID
                                                   : host_ops_run(h->ops, op);
}

static int host_stream_open(void *self, const char *name,
                            struct fsdp_stream **out)
{
    (void)self;
    (void)name;
    if (out) {
        *out = NULL;
    }
    return FSDP_ERR_UNSUPPORTED;
}

static void host_stream_close(void *self, struct fsdp_stream *stream)
{
    (void)self;
    (void)stream;
}

static int host_mark(void *self, struct fsdp_stream *stream,
                     uint64_t *out_ticket)
{
    (void)self;
    if (stream || !out_ticket) {
        return FSDP_ERR_INVALID;
    }
    *out_ticket = 1;
    return FSDP_OK;
}

static int host_wait(void *self, struct fsdp_stream *later,
                     struct fsdp_stream *earlier, uint64_t ticket,
                     const char *edge)
{
    (void)self;
    (void)ticket;
    (void)edge;
    return later || earlier ? FSDP_ERR_INVALID : FSDP_OK;
}

static int host_sync(void *self, struct fsdp_stream *stream)
{
    (void)self;
    return stream ? FSDP_ERR_INVALID : FSDP_OK;
}

int cuda_host_open(struct cuda_device *device, struct fsdp_device *out,
                   char *message, size_t bytes)
{
    enum simd_level level;
    struct cuda_host *h;
    int status = simd_choose_environment(&level, message, bytes);

    *out = (struct fsdp_device){0};
    FSDP_TRY(status);
    snprintf(message, bytes, "no memory for the host device");
    h = calloc(1, sizeof(*h));
    if (!h) {
        return FSDP_ERR_NOMEM;
    }
    h->device = device;
    status = host_ops_create(level, &h->ops);
    if (status != FSDP_OK) {
        free(h);
        return status;
    }
    *out = (struct fsdp_device){
        .size = sizeof(*out),
        .place = FSDP_PLACE_HOST,
        .self = h,
        .profile = "f32-fma",
        .alloc = host_alloc,
        .free = host_free,
        .live = host_live,
        .dead = host_dead,
        .copy = host_copy,
        .run = host_run,
        .stream_open = host_stream_open,
        .stream_close = host_stream_close,
        .mark = host_mark,
        .wait = host_wait,
        .sync = host_sync,
    };
    return FSDP_OK;
}

void cuda_host_close(struct fsdp_device *host)
{
    struct cuda_host *h = host->self;

    if (h) {
        host_ops_destroy(h->ops);
        free(h);
    }
    *host = (struct fsdp_device){0};
}
