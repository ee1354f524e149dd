/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap_probe.c - a program's memory on the host, seen from outside: this
 * shared object is preloaded and defines malloc and its kin. The C library's
 * own are called, and what they say a block holds (malloc_usable_size) is
 * counted, so that no table of blocks is needed and any block may be freed.
 *
 * Finding the C library's functions may itself ask for memory: such calls are
 * served from a small arena, which is never given back.
 */
#include "tools/probes/preload/heap_probe.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    ARENA_BYTES = 64 * 1024,
    ALIGNMENT = 16
};

enum {
    UNRESOLVED = 0,
    RESOLVING = 1,
    RESOLVED = 2
};

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
    size_t (*usable)(void *);
    void (*exit_now)(int);
} real;
static _Atomic int state;

static _Alignas(ALIGNMENT) unsigned char arena[ARENA_BYTES];
static _Atomic size_t arena_used;

/* With its size before it, for realloc. */
static void *arena_alloc(size_t bytes)
{
    if (bytes > ARENA_BYTES) {
        errno = ENOMEM;
        return NULL;
    }
    size_t room = (bytes + 2 * ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    size_t at = atomic_fetch_add(&arena_used, room);
    if (at + room > ARENA_BYTES) {
        errno = ENOMEM;
        return NULL;
    }
    memcpy(arena + at, &bytes, sizeof(bytes));
    return arena + at + ALIGNMENT;
}

static bool is_arena(const void *p)
{
    const unsigned char *at = p;
    return (uintptr_t)at >= (uintptr_t)arena &&
           (uintptr_t)at < (uintptr_t)arena + ARENA_BYTES;
}

static size_t arena_bytes(const void *p)
{
    size_t bytes = 0;
    memcpy(&bytes, (const unsigned char *)p - ALIGNMENT, sizeof(bytes));
    return bytes;
}

static void *next(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) {
        probe_complain("the C library has no %s", name);
        abort();
    }
    return found;
}

static void resolve(void)
{
    *(void **)(void *)&real.malloc = next("malloc");
    *(void **)(void *)&real.calloc = next("calloc");
    *(void **)(void *)&real.realloc = next("realloc");
    *(void **)(void *)&real.free = next("free");
    *(void **)(void *)&real.posix_memalign = next("posix_memalign");
    *(void **)(void *)&real.aligned_alloc = next("aligned_alloc");
    *(void **)(void *)&real.memalign = next("memalign");
    *(void **)(void *)&real.valloc = next("valloc");
    *(void **)(void *)&real.pvalloc = next("pvalloc");
    *(void **)(void *)&real.usable = next("malloc_usable_size");
    *(void **)(void *)&real.exit_now = next("_exit");
}

/* False while it is being found out: use the arena. The first call comes from
 * the loader or a constructor, before there are threads. */
static bool ready(void)
{
    int seen = atomic_load_explicit(&state, memory_order_acquire);
    int none = UNRESOLVED;
    if (seen == RESOLVED) {
        return true;
    }
    if (seen == RESOLVING ||
        !atomic_compare_exchange_strong(&state, &none, RESOLVING)) {
        return false;
    }
    resolve();
    atomic_store_explicit(&state, RESOLVED, memory_order_release);
    return true;
}

__attribute__((constructor)) static void at_start(void)
{
    (void)ready();
}

bool heap_head(struct probe_head *head)
{
    head->source = PROBE_HEAP;
    head->library = "malloc, mmap";
    head->rank = probe_rank_of_environment();
    head->world = probe_world_of_environment();
    return true;
}

/* For the probes of collectives, and for programs that look it up. */
PROBE_EXPORT void fsdp_probe_mark(const char *name);
void fsdp_probe_mark(const char *name)
{
    heap_log_mark(name);
}

static void *counted(void *p)
{
    if (p) {
        heap_grew(real.usable(p));
    }
    return p;
}

PROBE_EXPORT void *malloc(size_t bytes)
{
    return ready() ? counted(real.malloc(bytes)) : arena_alloc(bytes);
}

PROBE_EXPORT void *calloc(size_t n, size_t bytes)
{
    if (ready()) {
        return counted(real.calloc(n, bytes));
    }
    if (bytes > 0 && n > ARENA_BYTES / bytes) {
        errno = ENOMEM;
        return NULL;
    }
    return arena_alloc(n * bytes); /* which is never used twice */
}

PROBE_EXPORT void free(void *p)
{
    if (!p || is_arena(p)) {
        return;
    }
    if (ready()) {
        int kept = errno;
        heap_shrank(real.usable(p));
        real.free(p);
        errno = kept;
    }
}

/* While the C library moves a block both are there; that is not counted. */
PROBE_EXPORT void *realloc(void *p, size_t bytes)
{
    if (!p) {
        return malloc(bytes);
    }
    if (is_arena(p)) {
        size_t had = arena_bytes(p);
        void *q = malloc(bytes);
        if (q) {
            memcpy(q, p, had < bytes ? had : bytes);
        }
        return q;
    }
    if (!ready()) {
        errno = ENOMEM;
        return NULL;
    }
    size_t before = real.usable(p);
    void *q = real.realloc(p, bytes);
    if (q) {
        heap_changed(before, real.usable(q));
    } else if (bytes == 0) {
        heap_shrank(before); /* so it was freed */
    }
    return q;
}

PROBE_EXPORT int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    if (!ready()) {
        return ENOMEM;
    }
    int code = real.posix_memalign(out, alignment, bytes);
    if (code == 0) {
        (void)counted(*out);
    }
    return code;
}

PROBE_EXPORT void *aligned_alloc(size_t alignment, size_t bytes)
{
    return ready() ? counted(real.aligned_alloc(alignment, bytes)) : NULL;
}

PROBE_EXPORT void *memalign(size_t alignment, size_t bytes)
{
    return ready() ? counted(real.memalign(alignment, bytes)) : NULL;
}

PROBE_EXPORT void *valloc(size_t bytes)
{
    return ready() ? counted(real.valloc(bytes)) : NULL;
}

PROBE_EXPORT void *pvalloc(size_t bytes)
{
    return ready() ? counted(real.pvalloc(bytes)) : NULL;
}

PROBE_EXPORT size_t malloc_usable_size(void *p)
{
    if (!p || !ready()) {
        return 0;
    }
    return is_arena(p) ? arena_bytes(p) : real.usable(p);
}

/* Forked workers leave by this, and no destructor runs. */
static _Noreturn void leave(int status)
{
    heap_log_end(PROBE_EXITED);
    if (ready()) {
        real.exit_now(status);
    }
    abort();
}

PROBE_EXPORT _Noreturn void _exit(int status)
{
    leave(status);
}

/* C's name of the same. NOLINTNEXTLINE(readability-identifier-naming) */
PROBE_EXPORT _Noreturn void _Exit(int status)
{
    leave(status);
}
