/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_copy.c - copies between host and GPU go through pinned memory of ours,
 * unless the host's memory is pinned itself: then they are the stream's, like
 * any other. For memory that is not pinned the runtime may block the caller
 * until the stream has come that far, in a place where no thread looks around.
 *
 * From the host: a piece is put into a free slot and is on its way. To the
 * host: the stream has come that far before the copy begins, and the copy has
 * finished on return.
 */
#include "cuda_device.h"

#include <stdlib.h>
#include <string.h>

enum {
    SLOTS = 4,
    SLOT_BYTES = 256 * 1024,
};

struct cuda_copies {
    struct cuda_device *device;
    unsigned char *pinned; /* SLOTS * SLOT_BYTES */
    struct {
        struct fsdp_stream *stream; /* NULL: free */
        uint64_t ticket;
    } slot[SLOTS];
    unsigned int next;
};

int cuda_copies_open(struct cuda_device *device, struct cuda_copies **out)
{
    struct cuda_copies *c = calloc(1, sizeof(*c));
    void *pinned = NULL;

    *out = NULL;
    if (!c) {
        return FSDP_ERR_NOMEM;
    }
    c->device = device;
    if (cudaHostAlloc(&pinned, (size_t)SLOTS * SLOT_BYTES,
                      cudaHostAllocPortable) != cudaSuccess) {
        free(c);
        return FSDP_ERR_NOMEM;
    }
    c->pinned = pinned;
    *out = c;
    return FSDP_OK;
}

void cuda_copies_close(struct cuda_copies *c, bool idle)
{
    if (c) {
        if (idle) {
            (void)cudaFreeHost(c->pinned);
        }
        free(c);
    }
}

void cuda_copies_forget(struct cuda_copies *c, const struct fsdp_stream *stream)
{
    for (unsigned int i = 0; c && i < SLOTS; i++) {
        if (c->slot[i].stream == stream) {
            c->slot[i].stream = NULL;
        }
    }
}

enum place {
    PAGEABLE,
    PINNED,
    GPU,
};

static int find_place(struct cuda_copies *c, const void *p, enum place *out)
{
    struct cudaPointerAttributes attributes;

    FSDP_TRY(cuda_device_check(c->device,
                               cudaPointerGetAttributes(&attributes, p),
                               "cudaPointerGetAttributes"));
    *out = attributes.type == cudaMemoryTypeDevice ? GPU
           : attributes.type == cudaMemoryTypeHost ? PINNED
                                                   : PAGEABLE;
    return FSDP_OK;
}

static int copy(struct cuda_copies *c, const struct cuda_target *target,
                void *to, const void *from, uint64_t bytes)
{
    return cuda_device_check(
        c->device,
        cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, target->stream),
        "cudaMemcpyAsync");
}

/* A slot that nothing on its way to the GPU still lies in. */
static int take_slot(struct cuda_copies *c, unsigned int *slot)
{
    *slot = c->next;
    c->next = (c->next + 1) % SLOTS;
    if (c->slot[*slot].stream) {
        FSDP_TRY(cuda_device_order(c->device, NULL, c->slot[*slot].stream,
                                   c->slot[*slot].ticket));
        c->slot[*slot].stream = NULL;
    }
    return FSDP_OK;
}

static int from_host(struct cuda_copies *c, struct fsdp_stream *stream,
                     const struct cuda_target *target, unsigned char *to,
                     const unsigned char *from, uint64_t bytes)
{
    for (uint64_t done = 0; done < bytes;) {
        uint64_t n = bytes - done < SLOT_BYTES ? bytes - done : SLOT_BYTES;
        unsigned int slot;
        unsigned char *place;

        FSDP_TRY(take_slot(c, &slot));
        place = c->pinned + (size_t)slot * SLOT_BYTES;
        memcpy(place, from + done, n);
        FSDP_TRY(copy(c, target, to + done, place, n));
        (void)cuda_device_stream(c->device, stream, NULL);
        FSDP_TRY(cuda_device_mark(c->device, stream, &c->slot[slot].ticket));
        c->slot[slot].stream = stream;
        done += n;
    }
    return FSDP_OK;
}

static int to_host(struct cuda_copies *c, struct fsdp_stream *stream,
                   const struct cuda_target *target, unsigned char *to,
                   const unsigned char *from, uint64_t bytes)
{
    for (uint64_t done = 0; done < bytes;) {
        uint64_t n = bytes - done < SLOT_BYTES ? bytes - done : SLOT_BYTES;
        unsigned int slot;
        unsigned char *place;

        FSDP_TRY(take_slot(c, &slot));
        place = c->pinned + (size_t)slot * SLOT_BYTES;
        FSDP_TRY(copy(c, target, place, from + done, n));
        (void)cuda_device_stream(c->device, stream, NULL);
        FSDP_TRY(cuda_device_finish(c->device, stream));
        memcpy(to + done, place, n);
        done += n;
    }
    return FSDP_OK;
}

int cuda_copies_run(struct cuda_copies *c, struct fsdp_stream *stream, void *to,
                    const void *from, uint64_t bytes)
{
    struct cuda_target target;
    enum place there;
    enum place here;

    FSDP_TRY(find_place(c, to, &there));
    FSDP_TRY(find_place(c, from, &here));
    stream = cuda_device_stream(c->device, stream, &target);
    if (here != PAGEABLE && there != PAGEABLE &&
        (here == GPU || there == GPU)) {
        return copy(c, &target, to, from, bytes);
    }
    if (there == GPU) {
        return from_host(c, stream, &target, to, from, bytes);
    }
    if (here == GPU) {
        return to_host(c, stream, &target, to, from, bytes);
    }
    FSDP_TRY(cuda_device_finish(c->device, stream));
    memcpy(to, from, bytes);
    return FSDP_OK;
}
