/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated_device.c - TEST ONLY: what the runtime says of itself and of its
 * GPUs, and the faults that tests ask for.
 */
#include "emulated.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MULTIPROCESSORS = 2 /* few, so that small matrices get large tiles */
};

static _Thread_local uint32_t my_rank;
static _Thread_local cudaError_t broken;
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

    if (fault == NULL || strncmp(fault, name, n) != 0 ||
        strchr(":@", fault[n]) == NULL) {
        return false;
    }
    rank = strchr(fault, '@');
    count = strchr(fault, ':');
    if (rank != NULL && strtoul(rank + 1, NULL, 10) != my_rank) {
        return false;
    }
    calls++;
    return count == NULL || calls == strtoull(count + 1, NULL, 10);
}

void emulated_break(cudaError_t error)
{
    broken = error;
}

cudaError_t emulated_broken(void)
{
    return broken;
}

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

    *count = gpus != NULL ? atoi(gpus) : 8;
    if (emulated_fault("old-driver")) {
        return cudaErrorInsufficientDriver;
    }
    return *count > 0 && !emulated_fault("no-device") ? cudaSuccess
                                                      : cudaErrorNoDevice;
}

cudaError_t cudaSetDevice(int device)
{
    int count;
    cudaError_t status = cudaGetDeviceCount(&count);

    emulated_memory_make();
    broken = cudaSuccess; /* a new rank may be on a thread of an old one */
    return status != cudaSuccess           ? status
           : device >= 0 && device < count ? cudaSuccess
                                           : cudaErrorInvalidDevice;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute,
                                   int device)
{
    (void)device;
    *value = attribute == cudaDevAttrMultiProcessorCount      ? MULTIPROCESSORS
             : attribute == cudaDevAttrComputeCapabilityMajor ? 9
                                                              : 0;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int bytes, int device)
{
    snprintf(id, (size_t)bytes, "0000:%02x:00.0", (unsigned int)device + 1);
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
    return broken;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes,
                                  const void *function)
{
    (void)function;
    attributes->numRegs = 0;
    return emulated_fault("no-image") ? cudaErrorNoKernelImageForDevice
                                      : cudaSuccess;
}

static const struct {
    cudaError_t error;
    const char *name, *text;
} texts[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
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
