/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated_memory.c - TEST ONLY: the device's memory, a range of addresses
 * that is closed to the host but while the device works.
 */
#include "emulated.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    ALIGNMENT = 256,
    GAP = 256,
    MOST_BLOCKS = 4096
};

#define ROOM ((size_t)4 << 30)

/* Blocks by address; between two lies a gap. */
struct block {
    size_t at, bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *base;
static size_t high; /* what was ever given */
static struct block block[MOST_BLOCKS];
static size_t n_blocks;
static unsigned int working;
static int memory_fd = -1;

static void protect(int how)
{
    if (high > 0 && mprotect(base, high, how) != 0) {
        abort();
    }
}

void emulated_memory_open(void)
{
    pthread_mutex_lock(&lock);
    if (working++ == 0) {
        protect(PROT_READ | PROT_WRITE);
    }
    pthread_mutex_unlock(&lock);
}

void emulated_memory_close(void)
{
    pthread_mutex_lock(&lock);
    if (--working == 0) {
        protect(PROT_NONE);
    }
    pthread_mutex_unlock(&lock);
}

/* The first gap that is large enough; where it stands in the list. */
static size_t find(size_t bytes, size_t *at)
{
    size_t i = 0;

    for (*at = 0; i < n_blocks; i++) {
        if (block[i].at - *at >= bytes + GAP) {
            return i;
        }
        *at = block[i].at + block[i].bytes + GAP;
    }
    return i;
}

static size_t taken(void)
{
    size_t bytes = 0;

    for (size_t i = 0; i < n_blocks; i++) {
        bytes += block[i].bytes;
    }
    return bytes;
}

size_t emulated_memory_room(void)
{
    const char *text = getenv("FSDP_EMULATED_MEMORY");
    size_t room = text != NULL ? strtoull(text, NULL, 10) : ROOM;

    return room < ROOM ? room : ROOM;
}

static cudaError_t allocate(size_t bytes, void **p)
{
    size_t at;
    size_t i;

    if (base == NULL || taken() + bytes > emulated_memory_room()) {
        return cudaErrorMemoryAllocation;
    }
    i = find(bytes, &at);
    if (n_blocks == MOST_BLOCKS || at > ROOM - bytes) {
        return cudaErrorMemoryAllocation;
    }
    memmove(&block[i + 1], &block[i], (n_blocks - i) * sizeof(*block));
    block[i] = (struct block){at, bytes};
    n_blocks++;
    *p = base + at;
    if (at + bytes > high) {
        size_t page = 4096;

        high = (at + bytes + page - 1) / page * page;
        protect(working > 0 ? PROT_READ | PROT_WRITE : PROT_NONE);
    }
    return cudaSuccess;
}

/* Shared, so that another process can open a part of it. */
void emulated_memory_make(void)
{
    pthread_mutex_lock(&lock);
    if (base == NULL) {
        memory_fd = memfd_create("emulated-gpu", MFD_CLOEXEC);
        if (memory_fd >= 0 && ftruncate(memory_fd, (off_t)ROOM) == 0) {
            base = mmap(NULL, ROOM, PROT_NONE, MAP_SHARED | MAP_NORESERVE,
                        memory_fd, 0);
        }
        if (base == MAP_FAILED) {
            base = NULL;
        }
    }
    pthread_mutex_unlock(&lock);
}

cudaError_t cudaMalloc(void **p, size_t bytes)
{
    cudaError_t status = cudaErrorMemoryAllocation;

    *p = NULL;
    if (bytes == 0 || bytes > ROOM / 2 || emulated_fault("no-memory")) {
        return status;
    }
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    pthread_mutex_lock(&lock);
    status = allocate(bytes, p);
    pthread_mutex_unlock(&lock);
    return status;
}

size_t emulated_memory_taken(void)
{
    size_t bytes;

    pthread_mutex_lock(&lock);
    bytes = taken();
    pthread_mutex_unlock(&lock);
    return bytes;
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *all)
{
    *all = emulated_memory_room();
    *left = *all - emulated_memory_taken();
    return emulated_broken();
}

cudaError_t cudaFree(void *p)
{
    cudaError_t status = p == NULL ? cudaSuccess : cudaErrorInvalidValue;

    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < n_blocks && p != NULL; i++) {
        if (base + block[i].at == (char *)p) {
            n_blocks--;
            memmove(&block[i], &block[i + 1], (n_blocks - i) * sizeof(*block));
            status = cudaSuccess;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    return status;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes,
                                     const void *p)
{
    bool device = base != NULL && (const char *)p >= base &&
                  (const char *)p < base + ROOM;

    attributes->type =
        device ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
    return emulated_broken();
}

/* Pinned memory is resident from the first moment. */
cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned int flags)
{
    (void)flags;
    *p = emulated_fault("no-pinned") ? NULL : malloc(bytes);
    if (*p == NULL) {
        return cudaErrorMemoryAllocation;
    }
    memset(*p, 0xa5, bytes);
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *p)
{
    free(p);
    return cudaSuccess;
}

/* ---- Between processes ------------------------------------------------- */

enum {
    MOST_OPEN = 64
};

struct exported {
    int pid, fd;
    size_t at, bytes;
};

/* What this process has opened, for the way back. */
static struct {
    char *p, *map;
    size_t bytes;
} opened[MOST_OPEN];

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *p)
{
    struct exported x = {getpid(), memory_fd, 0, 0};

    memset(handle, 0, sizeof(*handle));
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < n_blocks; i++) {
        if (base + block[i].at == (char *)p) {
            x.at = block[i].at;
            x.bytes = block[i].bytes;
        }
    }
    pthread_mutex_unlock(&lock);
    memcpy(handle->reserved, &x, sizeof(x));
    return x.bytes > 0 ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaIpcOpenMemHandle(void **p, cudaIpcMemHandle_t handle,
                                 unsigned int flags)
{
    const size_t page = 4096;
    struct exported x;
    char path[64];
    size_t from;
    int fd;
    int i = 0;

    (void)flags;
    memcpy(&x, handle.reserved, sizeof(x));
    while (i < MOST_OPEN && opened[i].p != NULL) {
        i++;
    }
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", x.pid, x.fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || i == MOST_OPEN || x.pid == getpid()) {
        return cudaErrorInvalidValue; /* one's own cannot be opened */
    }
    from = x.at / page * page;
    opened[i].bytes = x.at + x.bytes - from;
    opened[i].map = mmap(NULL, opened[i].bytes, PROT_READ | PROT_WRITE,
                         MAP_SHARED, fd, (off_t)from);
    close(fd);
    if (opened[i].map == MAP_FAILED) {
        return cudaErrorInvalidValue;
    }
    opened[i].p = opened[i].map + (x.at - from);
    *p = opened[i].p;
    return cudaSuccess;
}

cudaError_t cudaIpcCloseMemHandle(void *p)
{
    for (int i = 0; i < MOST_OPEN; i++) {
        if (p != NULL && opened[i].p == (char *)p) {
            munmap(opened[i].map, opened[i].bytes);
            opened[i].p = NULL;
            return cudaSuccess;
        }
    }
    return cudaErrorInvalidValue;
}
