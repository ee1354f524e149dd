/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_memory.c - the C library's storage, and the system's.
 */
#include "host_memory.h"

#include <fsdp/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    ALIGNMENT = 64,
    PAGE = 4096,
    LARGE = 256 << 10 /* storage that asks for large pages */
};

struct host_mapped {
    unsigned char *p;
    size_t needs, has; /* bytes, of whole pages */
    struct host_mapped *next;
};

/* Large pages spare faults, and help where memory is copied page by page, as
 * between ranks. It is advice: everything works without it, too. */
static void ask_for_large_pages(void *p, uint64_t bytes)
{
#ifdef MADV_HUGEPAGE
    unsigned char *from = p;
    uint64_t lead = (PAGE - (uintptr_t)p % PAGE) % PAGE;

    (void)madvise(from + lead, (bytes - lead) / PAGE * PAGE, MADV_HUGEPAGE);
#else
    (void)p;
    (void)bytes;
#endif
}

static size_t up_to(uint64_t bytes, size_t page)
{
    return (size_t)(bytes + page - 1) / page * page;
}

/* Gives back the memory that ranges have beyond their need; returns whether any
 * had some. */
static bool spare(const struct host_memory *m)
{
    bool spared = false;

    for (struct host_mapped *x = m->mapped; x; x = x->next) {
        if (x->has > x->needs) {
            (void)munmap(x->p + x->needs, x->has - x->needs);
            x->has = x->needs;
            spared = true;
        }
    }
    return spared;
}

/* Address space is taken with room for alignment. The rest is given back before
 * any of it is made writable, so that it is never counted. */
static unsigned char *reserve(size_t bytes)
{
    unsigned char *const place = mmap(NULL, bytes + HOST_LARGE_PAGE, PROT_NONE,
                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t lead;

    if (place == MAP_FAILED) {
        return NULL;
    }
    lead = up_to((uintptr_t)place, HOST_LARGE_PAGE) - (uintptr_t)place;
    if (lead > 0) {
        (void)munmap(place, lead);
    }
    (void)munmap(place + lead + bytes, HOST_LARGE_PAGE - lead);
    return place + lead;
}

static bool can_be_written(const struct host_mapped *x)
{
    return mprotect(x->p, x->has, PROT_READ | PROT_WRITE) == 0;
}

static void *map(struct host_memory *m, uint64_t bytes)
{
    struct host_mapped *const x = malloc(sizeof(*x));

    if (!x) {
        return NULL;
    }
    x->needs = up_to(bytes, (size_t)sysconf(_SC_PAGESIZE));
    x->has = up_to(bytes, HOST_LARGE_PAGE);
    x->p = reserve(x->has);
    if (!x->p) {
        free(x);
        return NULL;
    }
    x->next = m->mapped;
    m->mapped = x;
    if (!can_be_written(x)) {
        if (!spare(m) || !can_be_written(x)) {
            host_memory_free(m, x->p);
            return NULL;
        }
    }
    ask_for_large_pages(x->p, x->has);
    return x->p;
}

static void *take_memory(uint64_t bytes)
{
    /* aligned_alloc takes a multiple of the alignment, and for 0 may give
     * NULL. */
    void *const p =
        aligned_alloc(ALIGNMENT, (bytes / ALIGNMENT + 1) * ALIGNMENT);

    if (p && bytes >= LARGE) {
        ask_for_large_pages(p, bytes);
    }
    return p;
}

int host_memory_alloc(struct host_memory *m, uint64_t bytes, void **out)
{
    if (!out) {
        return FSDP_ERR_INVALID;
    }
    *out = NULL;
    if (bytes > PTRDIFF_MAX) {
        return FSDP_ERR_NOMEM;
    }
    if (bytes >= HOST_LARGE_PAGE) {
        *out = map(m, bytes);
    } else {
        *out = take_memory(bytes);
        if (!*out && spare(m)) {
            *out = take_memory(bytes);
        }
    }
    return *out ? FSDP_OK : FSDP_ERR_NOMEM;
}

void host_memory_free(struct host_memory *m, void *p)
{
    struct host_mapped **link = &m->mapped;
    struct host_mapped *x;

    while (*link && (*link)->p != p) {
        link = &(*link)->next;
    }
    x = *link;
    if (!x) {
        free(p);
        return;
    }
    *link = x->next;
    (void)munmap(x->p, x->has);
    free(x);
}
