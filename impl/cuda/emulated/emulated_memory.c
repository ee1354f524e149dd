/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated_memory.c - TEST ONLY: the device's memory, a range of addresses
 * that is closed to a host that has waited for the device.
 *
 * Each allocation has pages of its own; what lies between, and what was freed,
 * is beyond the end of an empty file, where even the device's work dies of
 * SIGBUS (emulated_guard.c). Every other allocation ends where its pages end,
 * the rest begin where theirs begin.
 */
#include "emulated.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    PAGE = 4096,
    ALIGNMENT = 256,
    MOST_BLOCKS = 4096,
    FILLED = 1 << 20, /* bytes at most whose first content is made odd */
    OFTEN = 16,       /* works */
};

#define ROOM   ((size_t)4 << 30)
#define SHARED ((size_t)2 << 20) /* smaller allocations share such a one */

/* Blocks by address; between two lies a page at least. */
struct block {
    size_t page, pages; /* where it lies: bytes */
    size_t at, bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *base;
static size_t high; /* what was ever given */
static struct block block[MOST_BLOCKS];
static size_t n_blocks, n_made;
static unsigned int working, since_closed;
static bool is_open;
static int memory_fd = -1, empty_fd = -1;

static int allowed(void)
{
    return is_open ? PROT_READ | PROT_WRITE : PROT_NONE;
}

static void protect(bool open)
{
    is_open = open;
    since_closed = 0;
    if (high > 0 && mprotect(base, high, allowed()) != 0) {
        abort();
    }
}

void emulated_memory_open(void)
{
    pthread_mutex_lock(&lock);
    if (working++ == 0 && !is_open) {
        protect(true);
    }
    pthread_mutex_unlock(&lock);
}

/* To open and close takes as long as a small kernel. So it stays open from one
 * to the next, some times; when the host has waited for any, it is closed. */
void emulated_memory_close(void)
{
    pthread_mutex_lock(&lock);
    if (--working == 0 && ++since_closed == OFTEN) {
        protect(false);
    }
    pthread_mutex_unlock(&lock);
}

void emulated_memory_waited(void)
{
    pthread_mutex_lock(&lock);
    if (working == 0 && is_open) {
        protect(false);
    }
    pthread_mutex_unlock(&lock);
}

static bool map(int fd, size_t at, size_t bytes)
{
    return mmap(base + at, bytes, allowed(),
                MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd,
                (off_t)at) != MAP_FAILED;
}

/* The memory is shared, so that another process can open a part of it. */
void emulated_memory_make(void)
{
    pthread_mutex_lock(&lock);
    if (!base) {
        memory_fd = memfd_create("emulated-gpu", MFD_CLOEXEC);
        empty_fd = memfd_create("emulated-nothing", MFD_CLOEXEC);
        if (memory_fd >= 0 && empty_fd >= 0 &&
            ftruncate(memory_fd, (off_t)ROOM) == 0) {
            base = mmap(NULL, ROOM, PROT_NONE, MAP_SHARED | MAP_NORESERVE,
                        empty_fd, 0);
        }
        if (base == MAP_FAILED || !map(memory_fd, ROOM - PAGE, PAGE)) {
            base = NULL; /* a page, so that the file is there from the start */
        }
    }
    pthread_mutex_unlock(&lock);
}

/* The first gap that is large enough; where it stands in the list. */
static size_t find(size_t pages, size_t *at)
{
    size_t i = 0;

    for (*at = PAGE; i < n_blocks; i++) {
        if (block[i].page >= *at + pages + PAGE) {
            return i;
        }
        *at = block[i].page + block[i].pages + PAGE;
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
    size_t room = text ? strtoull(text, NULL, 10) : ROOM;

    return room < ROOM ? room : ROOM;
}

static cudaError_t allocate(size_t bytes, void **p)
{
    size_t pages = (bytes + PAGE - 1) / PAGE * PAGE;
    size_t page;
    size_t i;

    if (!base || taken() + bytes > emulated_memory_room()) {
        return cudaErrorMemoryAllocation;
    }
    i = find(pages, &page);
    if (n_blocks == MOST_BLOCKS || page > ROOM - pages - 2 * PAGE ||
        !map(memory_fd, page, pages)) {
        return cudaErrorMemoryAllocation;
    }
    memmove(&block[i + 1], &block[i], (n_blocks - i) * sizeof(*block));
    block[i] = (struct block){page, pages, page, bytes};
    block[i].at += n_made++ % 2 == 0 ? pages - bytes : 0;
    n_blocks++;
    *p = base + block[i].at;
    if (page + pages > high) {
        high = page + pages;
    }
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **p, size_t bytes)
{
    cudaError_t status;

    emulated_turn();
    if (!p) {
        return emulated_say(cudaErrorInvalidValue);
    }
    *p = NULL;
    if (emulated_broken() != cudaSuccess || bytes == 0) {
        return emulated_broken();
    }
    if (bytes > ROOM / 2 || emulated_fault("no-memory")) {
        return emulated_say(cudaErrorMemoryAllocation);
    }
    emulated_memory_make();
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    pthread_mutex_lock(&lock);
    status = allocate(bytes, p);
    pthread_mutex_unlock(&lock);
    if (status == cudaSuccess && bytes <= FILLED) {
        emulated_memory_open();
        memset(*p, 0xff, bytes); /* NaN, and ids that are none */
        emulated_memory_close();
    }
    return emulated_say(status);
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

/* Number of the block that begins at p; n_blocks: none. */
static size_t number_of(const void *p)
{
    size_t i = 0;

    while (i < n_blocks && base + block[i].at != (const char *)p) {
        i++;
    }
    return i;
}

/* As on a GPU, this waits for all work that the device was given. */
cudaError_t cudaFree(void *p)
{
    cudaError_t status = cudaErrorInvalidValue;
    size_t i;

    emulated_turn();
    if (!p || emulated_broken() != cudaSuccess) {
        return emulated_broken();
    }
    emulated_wait_for_device();
    pthread_mutex_lock(&lock);
    i = number_of(p);
    if (i < n_blocks) {
        struct block b = block[i];

        if (emulated_ipc_opened(b.at)) {
            emulated_undefined("cudaFree of memory that another process has "
                               "open");
        }
        n_blocks--;
        memmove(&block[i], &block[i + 1], (n_blocks - i) * sizeof(*block));
        if (!map(empty_fd, b.page, b.pages)) {
            abort();
        }
        (void)fallocate(memory_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                        (off_t)b.page, (off_t)b.pages);
        status = cudaSuccess;
    }
    pthread_mutex_unlock(&lock);
    return emulated_say(status);
}

bool emulated_memory_find(const void *p, struct emulated_block *out)
{
    bool found;
    size_t i;

    pthread_mutex_lock(&lock);
    i = number_of(p);
    found = i < n_blocks;
    if (found) {
        bool small = block[i].bytes % SHARED != 0;

        *out = (struct emulated_block){block[i].at, block[i].bytes,
                                       small ? 0 : block[i].page, memory_fd};
    }
    pthread_mutex_unlock(&lock);
    return found;
}

/* ---- Pinned memory ----------------------------------------------------- */

static struct {
    char *p;
    size_t bytes;
} pinned[MOST_BLOCKS];

static int pin(char *p, size_t bytes)
{
    int i = 0;

    pthread_mutex_lock(&lock);
    while (i < MOST_BLOCKS && pinned[i].p) {
        i++;
    }
    if (i < MOST_BLOCKS) {
        pinned[i].p = p;
        pinned[i].bytes = bytes;
    }
    pthread_mutex_unlock(&lock);
    return i;
}

/* Pinned memory is resident from the beginning. */
cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned int flags)
{
    const unsigned int known =
        cudaHostAllocMapped | cudaHostAllocPortable | 0x04u;

    emulated_turn();
    if (emulated_broken() != cudaSuccess) {
        return emulated_broken();
    }
    if (!p || (flags & ~known) != 0) {
        return emulated_say(cudaErrorInvalidValue);
    }
    emulated_wait_for_device();
    *p = emulated_fault("no-pinned") ? NULL : malloc(bytes);
    if (!*p || pin(*p, bytes) == MOST_BLOCKS) {
        free(*p);
        *p = NULL;
        return emulated_say(cudaErrorMemoryAllocation);
    }
    memset(*p, 0xa5, bytes);
    return emulated_say(cudaSuccess);
}

cudaError_t cudaFreeHost(void *p)
{
    cudaError_t status = cudaErrorInvalidValue;

    if (!p) {
        return emulated_broken();
    }
    emulated_wait_for_device();
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST_BLOCKS && status != cudaSuccess; i++) {
        if (pinned[i].p == (char *)p) {
            pinned[i].p = NULL;
            free(p);
            status = cudaSuccess;
        }
    }
    pthread_mutex_unlock(&lock);
    return emulated_say(status);
}

/* ---- Where is it? ------------------------------------------------------ */

static bool inside(const char *p, size_t bytes, const char *begin, size_t room)
{
    return p >= begin && p < begin + room &&
           bytes <= (size_t)(begin + room - p);
}

enum emulated_place emulated_place(const void *p, size_t bytes)
{
    enum emulated_place place = EMULATED_PAGEABLE;

    if (emulated_ipc_holds(p, bytes)) {
        return EMULATED_DEVICE;
    }
    pthread_mutex_lock(&lock);
    if (base && inside(p, 0, base, ROOM)) {
        place = EMULATED_NOWHERE;
    }
    for (size_t i = 0; i < n_blocks && place == EMULATED_NOWHERE; i++) {
        if (inside(p, bytes, base + block[i].at, block[i].bytes)) {
            place = EMULATED_DEVICE;
        }
    }
    for (int i = 0; i < MOST_BLOCKS && place == EMULATED_PAGEABLE; i++) {
        if (pinned[i].p && inside(p, bytes, pinned[i].p, pinned[i].bytes)) {
            place = EMULATED_PINNED;
        }
    }
    pthread_mutex_unlock(&lock);
    return place;
}

/* Freed memory is what the runtime knows nothing of. */
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes,
                                     const void *p)
{
    enum emulated_place place = emulated_place(p, 1);

    emulated_turn();
    attributes->type = place == EMULATED_DEVICE   ? cudaMemoryTypeDevice
                       : place == EMULATED_PINNED ? cudaMemoryTypeHost
                                                  : cudaMemoryTypeUnregistered;
    return emulated_broken();
}
