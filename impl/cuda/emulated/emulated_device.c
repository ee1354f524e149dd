/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated_device.c - TEST ONLY: what the runtime says of itself and of its
 * GPUs, and the faults that tests ask for.
 */
#include "emulated.h"
#include "emulated_block.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MULTIPROCESSORS = 2 /* few, so that small matrices get large tiles */
};

static _Thread_local uint32_t my_rank;
static _Thread_local int my_device;
static _Thread_local cudaError_t broken, last;
static _Thread_local uint64_t calls;

void emulated_set_rank(uint32_t rank)
{
    my_rank = rank;
}

bool emulated_fault(const char *name)
{
    const char *fault = getenv("FSDP_EMULATED_FAULT");
    size_t n = strlen(name);
    const char *rank;
    const char *count;

    if (!fault || strncmp(fault, name, n) != 0 || !strchr(":@", fault[n])) {
        return false;
    }
    rank = strchr(fault, '@');
    count = strchr(fault, ':');
    if (rank && strtoul(rank + 1, NULL, 10) != my_rank) {
        return false;
    }
    calls++;
    return !count || calls == strtoull(count + 1, NULL, 10);
}

uint32_t emulated_rank(void)
{
    return my_rank;
}

int emulated_device(void)
{
    return my_device;
}

void emulated_break(cudaError_t error)
{
    broken = error;
}

/* ---- A process that has used a GPU cannot be forked --------------------- */

static bool forked;

static void in_child(void)
{
    forked = true;
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, in_child);
}

void emulated_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, watch_forks);
}

cudaError_t emulated_broken(void)
{
    return forked ? cudaErrorInitializationError : broken;
}

cudaError_t emulated_say(cudaError_t error)
{
    if (emulated_broken() != cudaSuccess) {
        return emulated_broken();
    }
    last = error != cudaSuccess ? error : last;
    return error;
}

void emulated_undefined(const char *what)
{
    fprintf(stderr, "emulated CUDA: undefined: %s\n", what);
    emulated_break(cudaErrorUnknown);
}

void emulated_misaligned(void)
{
    emulated_trap(cudaErrorMisalignedAddress);
}

/* ---- What the runtime says --------------------------------------------- */

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = emulated_fault("old-driver") ? 11040 : CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    const char *gpus = getenv("FSDP_EMULATED_GPUS");

    emulated_begin();
    if (forked) {
        return cudaErrorInitializationError;
    }
    *count = gpus ? atoi(gpus) : 8;
    if (emulated_fault("old-driver")) {
        return emulated_say(cudaErrorInsufficientDriver);
    }
    return *count > 0 && !emulated_fault("no-device")
               ? cudaSuccess
               : emulated_say(cudaErrorNoDevice);
}

static cudaError_t check_device(int device)
{
    int count = 0;
    cudaError_t status = cudaGetDeviceCount(&count);

    if (status == cudaSuccess && (device < 0 || device >= count)) {
        status = emulated_say(cudaErrorInvalidDevice);
    }
    return status;
}

cudaError_t cudaSetDevice(int device)
{
    cudaError_t status = check_device(device);

    if (status != cudaSuccess) {
        return status;
    }
    emulated_memory_make();
    my_device = device;
    broken = last = cudaSuccess; /* a new rank may be on a thread of an old */
    return emulated_broken();
}

cudaError_t cudaGetDevice(int *device)
{
    if (!device) {
        return emulated_say(cudaErrorInvalidValue);
    }
    *device = my_device;
    return emulated_say(cudaSuccess);
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute,
                                   int device)
{
    cudaError_t status = check_device(device);

    *value = attribute == cudaDevAttrMultiProcessorCount      ? MULTIPROCESSORS
             : attribute == cudaDevAttrComputeCapabilityMajor ? 9
                                                              : 0;
    return status;
}

void emulated_bus_id(char *id, size_t bytes, int device)
{
    snprintf(id, bytes, "0000:%02x:00.0", (unsigned int)device + 1);
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int bytes, int device)
{
    cudaError_t status = check_device(device);

    if (status == cudaSuccess && bytes < 13) {
        return emulated_say(cudaErrorInvalidValue);
    }
    if (status == cudaSuccess) {
        emulated_bus_id(id, (size_t)bytes, device);
    }
    return status;
}

/* Told once, unless it sticks. */
cudaError_t cudaGetLastError(void)
{
    cudaError_t error =
        emulated_broken() != cudaSuccess ? emulated_broken() : last;

    last = cudaSuccess;
    return error;
}

static const struct {
    cudaError_t error;
    const char *name, *text;
} texts[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError",
     "initialization error"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection",
     "invalid copy direction for memcpy"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction",
     "invalid device function"},
    {cudaErrorDeviceUninitialized, "cudaErrorDeviceUninitialized",
     "invalid device context"},
    {cudaErrorMapBufferObjectFailed, "cudaErrorMapBufferObjectFailed",
     "mapping of buffer object failed"},
    {cudaErrorAlreadyMapped, "cudaErrorAlreadyMapped",
     "resource already mapped"},
    {cudaErrorMisalignedAddress, "cudaErrorMisalignedAddress",
     "misaligned address"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure",
     "unspecified launch failure"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorNoDevice, "cudaErrorNoDevice",
     "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice",
     "invalid device ordinal"},
    {cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice",
     "no kernel image is available for execution on the device"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle",
     "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorLaunchOutOfResources, "cudaErrorLaunchOutOfResources",
     "too many resources requested for launch"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
};

const char *cudaGetErrorName(cudaError_t error)
{
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (texts[i].error == error) {
            return texts[i].name;
        }
    }
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (texts[i].error == error) {
            return texts[i].text;
        }
    }
    return "unrecognized error code";
}
