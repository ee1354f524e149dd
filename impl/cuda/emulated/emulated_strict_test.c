/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated_strict_test.c - the emulation refuses what the real runtime refuses,
 * with the same errors: else a test under it shows nothing.
 */
#include "cuda/cuda_kernels.h"
#include "cuda/emulated/emulated_block.h"
#include "cuda/emulated/emulated_queue.h"

#include "testing/unit_testing.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    N = 100 /* floats: no whole page */
};

static cudaStream_t stream;
static float *x;

static int open_gpu(void **state)
{
    void *p = NULL;

    (void)state;
    assert_int_equal(cudaSetDevice(0), cudaSuccess);
    assert_int_equal(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                     cudaSuccess);
    assert_int_equal(cudaMalloc(&p, N * sizeof(*x)), cudaSuccess);
    x = p;
    return 0;
}

static int close_gpu(void **state)
{
    (void)state;
    (void)cudaSetDevice(0); /* whatever has stuck */
    assert_int_equal(cudaFree(x), cudaSuccess);
    assert_int_equal(cudaStreamDestroy(stream), cudaSuccess);
    return 0;
}

static cudaEvent_t event(unsigned int flags)
{
    cudaEvent_t e = NULL;

    assert_int_equal(cudaEventCreateWithFlags(&e, flags), cudaSuccess);
    return e;
}

/* Until the stream has come this far; what it says then. */
static cudaError_t finish(void)
{
    cudaEvent_t e = event(cudaEventDisableTiming);
    cudaError_t status = cudaEventRecord(e, stream);

    while (status == cudaSuccess &&
           (status = cudaEventQuery(e)) == cudaErrorNotReady) {
        status = cudaSuccess;
    }
    (void)cudaEventDestroy(e);
    return status;
}

/* ---- Launches ---------------------------------------------------------- */

struct poke {
    volatile float *p;
};

static void kernel(void *self)
{
    const struct poke *poke = self;

    if (poke->p) {
        *poke->p = 1.0f;
    } else {
        emulated_misaligned();
    }
}

/* A kernel is a word of its own to the runtime. */
static const char known, unknown;

static cudaError_t launch_as(const void *function, cudaLaunchConfig_t c,
                             float *p)
{
    struct poke *poke = malloc(sizeof(*poke));
    struct cudaFuncAttributes attributes;

    assert_non_null(poke);
    assert_int_equal(cudaFuncGetAttributes(&attributes, &known), cudaSuccess);
    poke->p = p;
    return emulated_launch(&c, function, kernel, poke);
}

static cudaError_t launch(struct dim3 grid, struct dim3 block, size_t shared)
{
    return launch_as(&known, (cudaLaunchConfig_t){grid, block, shared, stream},
                     x);
}

#define DIM(...) ((struct dim3){__VA_ARGS__})

UNIT_TEST(test_limits)
{
    const struct dim3 one = {1, 1, 1};

    assert_int_equal(launch(one, one, 0), cudaSuccess);
    assert_int_equal(launch(one, DIM(1024, 1, 1), 0), cudaSuccess);
    assert_int_equal(launch(one, DIM(1025, 1, 1), 0),
                     cudaErrorInvalidConfiguration);
    assert_int_equal(launch(one, DIM(512, 4, 1), 0),
                     cudaErrorInvalidConfiguration);
    assert_int_equal(launch(one, DIM(1, 1, 65), 0),
                     cudaErrorInvalidConfiguration);
    assert_int_equal(launch(one, DIM(0, 1, 1), 0),
                     cudaErrorInvalidConfiguration);
    assert_int_equal(launch(DIM(0, 1, 1), one, 0),
                     cudaErrorInvalidConfiguration);
    assert_int_equal(launch(DIM(1u << 31, 1, 1), one, 0),
                     cudaErrorInvalidConfiguration);
    assert_int_equal(launch(DIM(1, 65536, 1), one, 0),
                     cudaErrorInvalidConfiguration);
    assert_int_equal(launch(DIM(1, 1, 65536), one, 0),
                     cudaErrorInvalidConfiguration);
    assert_int_equal(launch(one, one, 48 * 1024 + 1), cudaErrorInvalidValue);
    assert_int_equal(finish(), cudaSuccess); /* the error does not stick */
}

UNIT_TEST(test_unloaded)
{
    const cudaLaunchConfig_t c = {{1, 1, 1}, {1, 1, 1}, 0, stream};

    assert_int_equal(launch_as(&unknown, c, x), cudaErrorInvalidDeviceFunction);
    assert_int_equal(finish(), cudaSuccess);
}

/* An address that is none sticks until the process ends. */
static void test_illegal_address(void **state)
{
    cudaLaunchConfig_t c = {{3, 1, 1}, {64, 1, 1}, 0, stream};
    void *freed = NULL;
    void *p = NULL;
    float *bad[4];

    (void)state;
    assert_int_equal(cudaMalloc(&freed, 256), cudaSuccess);
    assert_int_equal(cudaFree(freed), cudaSuccess);
    bad[0] = freed;
    bad[1] = x + 1024;
    bad[2] = x - 1024;
    bad[3] = NULL;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(launch_as(&known, c, bad[i]), cudaSuccess);
        assert_int_equal(finish(), i < 3 ? cudaErrorIllegalAddress
                                         : cudaErrorMisalignedAddress);
        assert_int_equal(cudaMalloc(&p, 16), i < 3
                                                 ? cudaErrorIllegalAddress
                                                 : cudaErrorMisalignedAddress);
        assert_int_not_equal(cudaGetLastError(), cudaSuccess);
        assert_int_not_equal(cudaGetLastError(), cudaSuccess);
        close_gpu(state);
        open_gpu(state);
        c.stream = stream;
        assert_int_equal(launch_as(&known, c, x), cudaSuccess);
        assert_int_equal(finish(), cudaSuccess);
    }
}

/* So does one that is no multiple of what is read or written there: a kernel of
 * ours, between two that are as they should be. */
static void test_misaligned(void **state)
{
    struct cuda_parts parts = {
        .n = 1, .dtype = FSDP_DTYPE_F32, .sum_dtype = FSDP_DTYPE_F32};
    struct cuda_target target = {stream, 2, NULL};
    unsigned char *bytes = (unsigned char *)x;

    (void)state;
    assert_int_equal(cuda_load_fold(), cudaSuccess);
    for (unsigned int odd = 0; odd < 5; odd++) {
        parts.part[0] = (void *)(bytes + (odd == 2 ? 2 : 0));
        assert_int_equal(
            cuda_fold(&target, &parts, (void *)(bytes + 256 + odd % 4), 4),
            cudaSuccess);
        assert_int_equal(finish(), odd % 4 == 0 ? cudaSuccess
                                                : cudaErrorMisalignedAddress);
        close_gpu(state);
        open_gpu(state);
        target.stream = stream;
        bytes = (unsigned char *)x;
    }
}

/* ---- Memory ------------------------------------------------------------ */

static sigjmp_buf nowhere;

static void escape(int signal)
{
    (void)signal;
    siglongjmp(nowhere, 1);
}

static bool host_can_read(const volatile float *p)
{
    struct sigaction action = {.sa_handler = escape};
    struct sigaction before;
    volatile bool can = false;

    sigaction(SIGSEGV, &action, &before);
    if (sigsetjmp(nowhere, 1) == 0) {
        (void)*p;
        can = true;
    }
    sigaction(SIGSEGV, &before, NULL);
    return can;
}

/* Once the host has waited; and soon, if it never does. */
UNIT_TEST(test_host_reads)
{
    const struct dim3 one = {1, 1, 1};
    float here = 0.0f;
    int n = 0;

    assert_true(host_can_read(&here));
    for (int i = 0; i < 20; i++) {
        assert_int_equal(launch(one, one, 0), cudaSuccess);
        assert_int_equal(finish(), cudaSuccess);
        assert_false(host_can_read(x));
    }
    do {
        assert_int_equal(launch(one, one, 0), cudaSuccess);
        assert_true(++n < 100);
    } while (host_can_read(x));
    assert_int_equal(finish(), cudaSuccess);
}

UNIT_TEST(test_copies)
{
    float host[N] = {0};
    void *pinned = NULL;
    uint64_t before = emulated_pageable_copies();

    assert_int_equal(cudaHostAlloc(&pinned, sizeof(host), 0), cudaSuccess);
    assert_int_equal(
        cudaMemcpyAsync(x, pinned, sizeof(host), cudaMemcpyDefault, stream),
        cudaSuccess);
    assert_int_equal(cudaMemcpyAsync(x, pinned, sizeof(host),
                                     cudaMemcpyDeviceToDevice, stream),
                     cudaErrorInvalidValue);
    assert_int_equal(cudaMemcpyAsync(x, pinned, sizeof(host),
                                     (enum cudaMemcpyKind)5, stream),
                     cudaErrorInvalidMemcpyDirection);
    assert_int_equal(
        cudaMemcpyAsync(x, pinned, 4096, cudaMemcpyDefault, stream),
        cudaErrorInvalidValue);
    assert_int_equal(
        cudaMemcpyAsync(x - 1, pinned, 8, cudaMemcpyDefault, stream),
        cudaErrorInvalidValue);
    assert_int_equal(cudaMemcpyAsync(NULL, x, 8, cudaMemcpyDefault, stream),
                     cudaErrorInvalidValue);
    assert_int_equal(cudaMemcpyAsync(x, pinned, 8, cudaMemcpyDefault, NULL),
                     cudaErrorInvalidResourceHandle);
    assert_int_equal(emulated_pageable_copies(), before);
    assert_int_equal(cudaMemcpyAsync(host, x, 8, cudaMemcpyDefault, stream),
                     cudaSuccess);
    assert_int_equal(emulated_pageable_copies(), before + 1);
    assert_int_equal(finish(), cudaSuccess);
    assert_int_equal(cudaFreeHost(pinned), cudaSuccess);
}

UNIT_TEST(test_memory)
{
    struct cudaPointerAttributes attributes;
    void *p = NULL;
    void *host = malloc(64);

    assert_int_equal(cudaMalloc(&p, 0), cudaSuccess);
    assert_null(p);
    assert_int_equal(cudaMalloc(&p, (size_t)1 << 60),
                     cudaErrorMemoryAllocation);
    assert_int_equal(cudaGetLastError(), cudaErrorMemoryAllocation);
    assert_int_equal(cudaGetLastError(), cudaSuccess); /* told once */
    assert_int_equal(cudaMalloc(&p, 1024), cudaSuccess);
    assert_int_equal((uintptr_t)p % 256, 0);
    assert_int_equal(cudaPointerGetAttributes(&attributes, p), cudaSuccess);
    assert_int_equal(attributes.type, cudaMemoryTypeDevice);
    assert_int_equal(cudaFree((char *)p + 256), cudaErrorInvalidValue);
    assert_int_equal(cudaFree(p), cudaSuccess);
    assert_int_equal(cudaFree(p), cudaErrorInvalidValue);
    assert_int_equal(cudaFree(host), cudaErrorInvalidValue);
    assert_int_equal(cudaPointerGetAttributes(&attributes, p), cudaSuccess);
    assert_int_equal(attributes.type, cudaMemoryTypeUnregistered);
    assert_int_equal(cudaFreeHost(host), cudaErrorInvalidValue);
    assert_int_equal(cudaHostAlloc(&p, 64, 0x100), cudaErrorInvalidValue);
    assert_int_equal(cudaHostAlloc(&p, 64, cudaHostAllocMapped), cudaSuccess);
    assert_int_equal(cudaPointerGetAttributes(&attributes, p), cudaSuccess);
    assert_int_equal(attributes.type, cudaMemoryTypeHost);
    assert_int_equal(cudaFreeHost(p), cudaSuccess);
    assert_int_equal(cudaFreeHost(p), cudaErrorInvalidValue);
    free(host);
}

/* ---- Streams and events ------------------------------------------------ */

UNIT_TEST(test_events)
{
    cudaEvent_t plain = event(cudaEventDisableTiming);
    cudaEvent_t a = event(0);
    cudaEvent_t b = event(0);
    cudaEvent_t e;
    float ms;

    assert_int_equal(cudaEventCreateWithFlags(&e, 0x80), cudaErrorInvalidValue);
    assert_int_equal(cudaEventCreateWithFlags(&e, cudaEventInterprocess),
                     cudaErrorInvalidValue);
    assert_int_equal(cudaEventQuery(a), cudaSuccess); /* was never recorded */
    assert_int_equal(cudaStreamWaitEvent(stream, a, 0), cudaSuccess);
    assert_int_equal(cudaStreamWaitEvent(stream, a, 7), cudaErrorInvalidValue);
    assert_int_equal(cudaEventElapsedTime(&ms, a, b),
                     cudaErrorInvalidResourceHandle);
    assert_int_equal(cudaEventRecord(a, stream), cudaSuccess);
    assert_int_equal(cudaEventElapsedTime(&ms, a, b),
                     cudaErrorInvalidResourceHandle);
    assert_int_equal(cudaEventRecord(plain, stream), cudaSuccess);
    assert_int_equal(cudaEventRecord(b, stream), cudaSuccess);
    assert_int_equal(finish(), cudaSuccess);
    assert_int_equal(cudaEventElapsedTime(&ms, a, b), cudaSuccess);
    assert_true(ms >= 0.0f);
    assert_int_equal(cudaEventElapsedTime(&ms, a, plain),
                     cudaErrorInvalidResourceHandle);
    assert_int_equal(cudaEventDestroy(a), cudaSuccess);
    assert_int_equal(cudaEventDestroy(a), cudaErrorInvalidResourceHandle);
    assert_int_equal(cudaEventQuery(a), cudaErrorInvalidResourceHandle);
    assert_int_equal(cudaEventRecord(a, stream),
                     cudaErrorInvalidResourceHandle);
    assert_int_equal(cudaEventDestroy(NULL), cudaErrorInvalidResourceHandle);
    assert_int_equal(cudaEventDestroy(b), cudaSuccess);
    assert_int_equal(cudaEventDestroy(plain), cudaSuccess);
    assert_int_equal(finish(), cudaSuccess);
}

UNIT_TEST(test_streams)
{
    const cudaLaunchConfig_t c = {{1, 1, 1}, {1, 1, 1}, 0, NULL};
    cudaStream_t s = NULL;
    cudaStream_t other = NULL;
    cudaEvent_t e = event(0);

    assert_int_equal(cudaStreamCreateWithFlags(&s, 8), cudaErrorInvalidValue);
    assert_int_equal(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking),
                     cudaSuccess);
    assert_int_equal(cudaStreamDestroy(s), cudaSuccess);
    assert_int_equal(cudaStreamDestroy(s), cudaErrorInvalidResourceHandle);
    assert_int_equal(cudaEventRecord(e, s), cudaErrorInvalidResourceHandle);
    assert_int_equal(launch_as(&known, c, x), cudaErrorInvalidResourceHandle);
    /* Another GPU's. */
    assert_int_equal(cudaSetDevice(99), cudaErrorInvalidDevice);
    assert_int_equal(cudaSetDevice(1), cudaSuccess);
    assert_int_equal(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking),
                     cudaSuccess);
    assert_int_equal(launch(DIM(1, 1, 1), DIM(1, 1, 1), 0),
                     cudaErrorInvalidResourceHandle);
    assert_int_equal(cudaEventRecord(e, other), cudaErrorInvalidResourceHandle);
    assert_int_equal(cudaStreamWaitEvent(other, e, 0), cudaSuccess);
    assert_int_equal(cudaStreamDestroy(other), cudaSuccess);
    assert_int_equal(cudaSetDevice(0), cudaSuccess);
    assert_int_equal(cudaEventDestroy(e), cudaSuccess);
}

/* ---- Processes --------------------------------------------------------- */

UNIT_TEST(test_own_handles)
{
    cudaEvent_t shared = event(cudaEventDisableTiming | cudaEventInterprocess);
    cudaEvent_t plain = event(cudaEventDisableTiming);
    cudaIpcEventHandle_t of_event;
    cudaIpcMemHandle_t of_memory;
    cudaEvent_t e;
    void *p = NULL;

    assert_int_equal(cudaIpcGetEventHandle(&of_event, plain),
                     cudaErrorInvalidResourceHandle);
    assert_int_equal(cudaIpcGetEventHandle(&of_event, shared), cudaSuccess);
    assert_int_equal(cudaIpcOpenEventHandle(&e, of_event),
                     cudaErrorDeviceUninitialized);
    assert_int_equal(cudaIpcGetMemHandle(&of_memory, x + 1),
                     cudaErrorInvalidValue);
    assert_int_equal(cudaIpcGetMemHandle(&of_memory, x), cudaSuccess);
    assert_int_equal(cudaIpcOpenMemHandle(&p, of_memory, 0),
                     cudaErrorInvalidValue);
    assert_int_equal(
        cudaIpcOpenMemHandle(&p, of_memory, cudaIpcMemLazyEnablePeerAccess),
        cudaErrorDeviceUninitialized);
    assert_int_equal(cudaIpcCloseMemHandle(x), cudaErrorInvalidValue);
    assert_int_equal(cudaEventDestroy(shared), cudaSuccess);
    assert_int_equal(cudaEventDestroy(plain), cudaSuccess);
}

/* Whether a child says that all was as it should be. */
static bool in_child(bool (*say)(void))
{
    pid_t child = fork();
    int status = -1;

    if (child == 0) {
        _exit(say() ? 0 : 1);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status == 0;
}

static bool forked_is_refused(void)
{
    void *p = NULL;
    int count = 0;

    return cudaGetDeviceCount(&count) == cudaErrorInitializationError &&
           cudaSetDevice(0) == cudaErrorInitializationError &&
           cudaMalloc(&p, 16) == cudaErrorInitializationError;
}

UNIT_TEST(test_fork)
{
    assert_true(in_child(forked_is_refused));
    assert_int_equal(finish(), cudaSuccess); /* here nothing has changed */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_limits, open_gpu, close_gpu),
        cmocka_unit_test_setup_teardown(test_unloaded, open_gpu, close_gpu),
        cmocka_unit_test_setup_teardown(test_illegal_address, open_gpu,
                                        close_gpu),
        cmocka_unit_test_setup_teardown(test_misaligned, open_gpu, close_gpu),
        cmocka_unit_test_setup_teardown(test_host_reads, open_gpu, close_gpu),
        cmocka_unit_test_setup_teardown(test_copies, open_gpu, close_gpu),
        cmocka_unit_test_setup_teardown(test_memory, open_gpu, close_gpu),
        cmocka_unit_test_setup_teardown(test_events, open_gpu, close_gpu),
        cmocka_unit_test_setup_teardown(test_streams, open_gpu, close_gpu),
        cmocka_unit_test_setup_teardown(test_own_handles, open_gpu, close_gpu),
        cmocka_unit_test_setup_teardown(test_fork, open_gpu, close_gpu),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
