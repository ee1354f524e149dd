/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated_launch.c - TEST ONLY: kernels and copies: what the runtime refuses
 * of them at once, and what happens when their stream comes to them.
 */
#include "emulated_block.h"
#include "emulated_queue.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MOST_KERNELS = 1024,
    BLOCK_XY = 1024, /* threads, of a block too */
    BLOCK_Z = 64,
    GRID_YZ = 65535,
    DYNAMIC_SHARED = 48 * 1024, /* that needs no leave */
};

/* ---- Which kernels are on the GPU -------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const void *loaded[MOST_KERNELS];
static size_t n_loaded;

static bool is_loaded(const void *function, bool load)
{
    bool found = false;

    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < n_loaded && !found; i++) {
        found = loaded[i] == function;
    }
    if (!found && load && n_loaded < MOST_KERNELS) {
        loaded[n_loaded++] = function;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes,
                                  const void *function)
{
    if (emulated_broken() != cudaSuccess) {
        return emulated_broken();
    }
    if (!attributes || !function) {
        return emulated_say(cudaErrorInvalidValue);
    }
    attributes->numRegs = 0;
    if (emulated_fault("no-image")) {
        return emulated_say(cudaErrorNoKernelImageForDevice);
    }
    (void)is_loaded(function, true);
    return emulated_say(cudaSuccess);
}

/* ---- Kernels ----------------------------------------------------------- */

struct kernel {
    bool begun, hangs;
    struct dim3 grid, block;
    void (*run)(void *);
    void *call;
};

static void run_grid(void *self)
{
    const struct kernel *k = self;

    if (!emulated_grid(k->grid, k->block, k->run, k->call)) {
        emulated_trap(cudaErrorLaunchFailure);
    }
}

static bool do_kernel(void *self)
{
    struct kernel *k = self;

    if (emulated_fault("launch-dies")) {
        raise(SIGSEGV);
    }
    if (!k->begun && emulated_fault("launch-hang")) {
        k->hangs = true;
        atomic_fetch_add(emulated_hanging(), 1);
    }
    k->begun = true;
    if (k->hangs) {
        usleep(1000);
        return false;
    }
    if (emulated_fault("launch")) {
        emulated_break(cudaErrorIllegalAddress);
        return true;
    }
    (void)emulated_guarded(run_grid, k);
    return true;
}

static void end_kernel(void *self)
{
    struct kernel *k = self;

    free(k->call);
    free(k);
}

static cudaError_t check_launch(const cudaLaunchConfig_t *c,
                                const void *function)
{
    const struct dim3 *g = &c->gridDim;
    const struct dim3 *b = &c->blockDim;

    if (emulated_broken() != cudaSuccess) {
        return emulated_broken();
    }
    if (!emulated_stream_good(c->stream) ||
        c->stream->device != emulated_device()) {
        return cudaErrorInvalidResourceHandle;
    }
    if (g->x == 0 || g->y == 0 || g->z == 0 || g->x > INT32_MAX ||
        g->y > GRID_YZ || g->z > GRID_YZ || b->x == 0 || b->y == 0 ||
        b->z == 0 || b->x > BLOCK_XY || b->y > BLOCK_XY || b->z > BLOCK_Z ||
        (uint64_t)b->x * b->y * b->z > BLOCK_XY) {
        return cudaErrorInvalidConfiguration;
    }
    if (c->dynamicSmemBytes > DYNAMIC_SHARED) {
        return cudaErrorInvalidValue;
    }
    if (!is_loaded(function, false)) {
        fprintf(stderr, "emulated CUDA: a kernel that was not loaded before: "
                        "the first launch of such a one may wait for all "
                        "streams, and takes memory\n");
        return cudaErrorInvalidDeviceFunction;
    }
    return emulated_fault("launch-refused") ? cudaErrorLaunchOutOfResources
                                            : cudaSuccess;
}

cudaError_t emulated_launch(const cudaLaunchConfig_t *config,
                            const void *function, void (*run)(void *),
                            void *kernel)
{
    struct kernel *k = malloc(sizeof(*k));
    cudaError_t status = check_launch(config, function);

    emulated_turn();
    if (status == cudaSuccess && !k) {
        status = cudaErrorMemoryAllocation;
    }
    if (status == cudaSuccess) {
        *k = (struct kernel){.grid = config->gridDim,
                             .block = config->blockDim,
                             .run = run,
                             .call = kernel};
        status = emulated_push(
            config->stream, (struct emulated_work){do_kernel, end_kernel, k});
    }
    if (status != cudaSuccess) {
        free(kernel);
        free(k);
    }
    return emulated_say(status);
}

/* ---- Copies ------------------------------------------------------------ */

static _Atomic uint64_t pageable_copies;

uint64_t emulated_pageable_copies(void)
{
    return atomic_load(&pageable_copies);
}

struct copy {
    void *to;
    const void *from;
    size_t bytes;
};

static void move(void *self)
{
    const struct copy *c = self;

    memmove(c->to, c->from, c->bytes);
}

static bool do_copy(void *self)
{
    (void)emulated_guarded(move, self);
    return true;
}

static bool kind_fits(enum cudaMemcpyKind kind, enum emulated_place to,
                      enum emulated_place from)
{
    bool to_device = to == EMULATED_DEVICE;
    bool from_device = from == EMULATED_DEVICE;

    switch (kind) {
    case cudaMemcpyHostToHost:
        return !to_device && !from_device;
    case cudaMemcpyHostToDevice:
        return to_device && !from_device;
    case cudaMemcpyDeviceToHost:
        return !to_device && from_device;
    case cudaMemcpyDeviceToDevice:
        return to_device && from_device;
    default:
        return true;
    }
}

/* For memory that is not pinned the caller may have to wait until the stream
 * has come that far: here it always does. */
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                            enum cudaMemcpyKind kind, cudaStream_t stream)
{
    enum emulated_place there = emulated_place(to, bytes);
    enum emulated_place here = emulated_place(from, bytes);
    struct copy *c;
    cudaError_t status;

    emulated_turn();
    if (emulated_broken() != cudaSuccess || bytes == 0) {
        return emulated_broken();
    }
    if (!emulated_stream_good(stream)) {
        return emulated_say(cudaErrorInvalidResourceHandle);
    }
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) {
        return emulated_say(cudaErrorInvalidMemcpyDirection);
    }
    if (!to || !from || there == EMULATED_NOWHERE || here == EMULATED_NOWHERE ||
        !kind_fits(kind, there, here)) {
        return emulated_say(cudaErrorInvalidValue);
    }
    c = malloc(sizeof(*c));
    if (!c) {
        return emulated_say(cudaErrorMemoryAllocation);
    }
    *c = (struct copy){to, from, bytes};
    status = emulated_push(stream, (struct emulated_work){do_copy, free, c});
    if (status != cudaSuccess) {
        free(c);
        return emulated_say(status);
    }
    if (there == EMULATED_PAGEABLE || here == EMULATED_PAGEABLE) {
        if (atomic_fetch_add(&pageable_copies, 1) == 0) {
            fprintf(stderr, "emulated CUDA: a copy of memory that is not "
                            "pinned waits where nobody looks around\n");
        }
        emulated_wait(stream);
    }
    return emulated_say(emulated_broken());
}
