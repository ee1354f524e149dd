/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap_maps.c - anonymous memory that a program maps by itself, past malloc, as
 * allocators of frameworks do, and programs that hide a copy. The C library's
 * own mappings, for malloc and for threads, do not come through these
 * functions.
 *
 * Only memory that can be written when it is mapped counts: reserved address
 * space takes none.
 */
#include "tools/probes/preload/heap_probe.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    MOST_RANGES = 8192
};

struct range {
    uintptr_t begin, end;
};

static pthread_mutex_t maps_lock = PTHREAD_MUTEX_INITIALIZER;
static struct range ranges[MOST_RANGES]; /* in no order, without overlaps */
static uint32_t n_ranges;

void heap_maps_lock(void)
{
    (void)pthread_mutex_lock(&maps_lock);
}

void heap_maps_unlock(void)
{
    (void)pthread_mutex_unlock(&maps_lock);
}

static void add(uintptr_t begin, uintptr_t end)
{
    if (n_ranges == MOST_RANGES) {
        heap_untracked();
        return;
    }
    ranges[n_ranges++] = (struct range){begin, end};
}

/* Removes [begin, end) from all ranges; returns how many of its bytes were in
 * them. */
static uint64_t take(uintptr_t begin, uintptr_t end)
{
    uint64_t taken = 0;
    for (uint32_t i = n_ranges; i-- > 0;) {
        struct range r = ranges[i];
        if (r.end <= begin || end <= r.begin) {
            continue;
        }
        uintptr_t from = r.begin > begin ? r.begin : begin;
        uintptr_t to = r.end < end ? r.end : end;
        taken += to - from;
        ranges[i] = ranges[--n_ranges];
        if (r.begin < from) {
            add(r.begin, from);
        }
        if (to < r.end) {
            add(to, r.end);
        }
    }
    return taken;
}

static uintptr_t page_up(uintptr_t x)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    return (x + page - 1) / page * page;
}

/* The kernel's, through whoever is next; or directly, if this comes before
 * there is a loader to ask. */
static void *map(void *at, size_t bytes, int protection, int flags, int fd,
                 off_t offset)
{
    static void *(*real)(void *, size_t, int, int, int, off_t);
    if (!real) {
        *(void **)(void *)&real = dlsym(RTLD_NEXT, "mmap");
    }
    if (!real) {
        /* Its result is a long, which is an address here.
         * NOLINTNEXTLINE(performance-no-int-to-ptr) */
        return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd,
                               offset);
    }
    return real(at, bytes, protection, flags, fd, offset);
}

static void note_mapping(const void *p, size_t bytes, int protection, int flags)
{
    uintptr_t begin = (uintptr_t)p;
    uintptr_t end = begin + page_up(bytes);
    uint64_t taken = (flags & MAP_FIXED) != 0 ? take(begin, end) : 0;
    if (taken > 0) {
        heap_unmapped(taken);
    }
    if ((flags & MAP_ANONYMOUS) != 0 && (protection & PROT_WRITE) != 0) {
        uint32_t had = n_ranges;
        add(begin, end);
        if (n_ranges > had) {
            heap_mapped(end - begin);
        }
    }
}

PROBE_EXPORT void *mmap(void *at, size_t bytes, int protection, int flags,
                        int fd, off_t offset)
{
    heap_maps_lock();
    void *p = map(at, bytes, protection, flags, fd, offset);
    if (p != MAP_FAILED) {
        note_mapping(p, bytes, protection, flags);
    }
    heap_maps_unlock();
    return p;
}

#if defined(__LP64__)
_Static_assert(sizeof(off_t) == sizeof(off64_t), "mmap64 is mmap");
#endif

PROBE_EXPORT void *mmap64(void *at, size_t bytes, int protection, int flags,
                          int fd, off64_t offset)
{
    return mmap(at, bytes, protection, flags, fd, (off_t)offset);
}

PROBE_EXPORT int munmap(void *p, size_t bytes)
{
    static int (*real)(void *, size_t);
    heap_maps_lock();
    if (!real) {
        *(void **)(void *)&real = dlsym(RTLD_NEXT, "munmap");
    }
    int code = real ? real(p, bytes) : (int)syscall(SYS_munmap, p, bytes);
    if (code == 0) {
        uint64_t taken = take((uintptr_t)p, (uintptr_t)p + page_up(bytes));
        if (taken > 0) {
            heap_unmapped(taken);
        }
    }
    heap_maps_unlock();
    return code;
}

PROBE_EXPORT void *mremap(void *p, size_t from, size_t to, int flags, ...)
{
    static void *(*real)(void *, size_t, size_t, int, ...);
    void *at = NULL;
    if ((flags & MREMAP_FIXED) != 0) {
        va_list arguments;
        va_start(arguments, flags);
        at = va_arg(arguments, void *);
        va_end(arguments);
    }
    heap_maps_lock();
    if (!real) {
        *(void **)(void *)&real = dlsym(RTLD_NEXT, "mremap");
    }
    void *q = real ? real(p, from, to, flags, at) : MAP_FAILED;
    if (q != MAP_FAILED) {
        uint64_t had = take((uintptr_t)p, (uintptr_t)p + page_up(from));
        uint64_t under = take((uintptr_t)q, (uintptr_t)q + page_up(to));
        if (had + under > 0) {
            heap_unmapped(had + under);
        }
        if (had > 0) {
            add((uintptr_t)q, (uintptr_t)q + page_up(to));
            heap_mapped(page_up(to));
        }
    }
    heap_maps_unlock();
    return q;
}
