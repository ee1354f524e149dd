/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torch_probe.c - what fsdp_probe_torch.py writes with, and the storages of
 * tensors on the host: this shared object is preloaded and defines PyTorch's
 * c10::alloc_cpu and c10::free_cpu, from which and to which all of them go.
 * What a block holds is counted, as the C library says it.
 *
 * Python calls the functions fsdp_probe_torch_*. There is a log once it has
 * said which rank this is: until then storages are counted only.
 */
#include "tools/probes/preload/call_log.h"
#include "tools/probes/preload/heap_probe.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct call_log calls = CALL_LOG_INITIAL;
static struct probe_head known = {.source = PROBE_TORCH, .rank = -1};
static char library[PROBE_TEXT_BYTES];
static bool watches_fork;
static void (*mark_of_heap)(const char *name);

static void lock(void)
{
    (void)pthread_mutex_lock(&calls.log.lock);
}

static void unlock(void)
{
    (void)pthread_mutex_unlock(&calls.log.lock);
}

/* A child that trains has a log of its own. */
static void in_child(void)
{
    probe_log_forget(&calls.log);
    calls.log.state = PROBE_LOG_CLOSED;
    calls.calls = calls.sends = calls.send_bytes = 0;
    calls.comms = 0;
    known.parent = getppid();
    known.library = NULL;
    unlock();
}

/* ---- Storages ---- */

bool heap_head(struct probe_head *head)
{
    head->source = PROBE_STORAGES;
    head->library = library;
    head->rank = known.rank;
    head->world = known.world;
    return known.library != NULL;
}

/* The heap of which the C library takes blocks has none of its own. */
void heap_maps_lock(void)
{
}

void heap_maps_unlock(void)
{
}

/* libc10.so is there: it, or what it is for, has called. */
static void *of_c10(const char *name)
{
    void *c10 = dlopen("libc10.so", RTLD_NOW | RTLD_NOLOAD);
    void *found = c10 ? dlsym(c10, name) : NULL;
    if (!found) {
        probe_complain("PyTorch's libc10.so has no %s", name);
        abort();
    }
    return found;
}

/* PyTorch's names, in C++'s way. NOLINTBEGIN(readability-identifier-naming) */
PROBE_EXPORT void *_ZN3c109alloc_cpuEm(size_t bytes);
PROBE_EXPORT void _ZN3c108free_cpuEPv(void *block);

void *_ZN3c109alloc_cpuEm(size_t bytes)
{
    static void *(*_Atomic real)(size_t);
    void *(*next)(size_t) = real;
    if (!next) {
        *(void **)(void *)&next = of_c10("_ZN3c109alloc_cpuEm");
        real = next;
    }
    void *block = next(bytes); /* it may throw, which passes through */
    if (block) {
        heap_grew(malloc_usable_size(block));
    }
    return block;
}

void _ZN3c108free_cpuEPv(void *block)
{
    static void (*_Atomic real)(void *);
    void (*next)(void *) = real;
    if (!next) {
        *(void **)(void *)&next = of_c10("_ZN3c108free_cpuEPv");
        real = next;
    }
    if (block) {
        heap_shrank(malloc_usable_size(block));
    }
    next(block);
}
/* NOLINTEND(readability-identifier-naming) */

/* ---- For fsdp_probe_torch.py ---- */

static void mark_memory(const char *name)
{
    heap_log_mark(name);
    if (mark_of_heap) {
        mark_of_heap(name);
    }
}

/* The number of a word of the log: of a kind (0), a type (1), a mode (2). */
PROBE_EXPORT int64_t fsdp_probe_torch_word(int list, const char *word);
int64_t fsdp_probe_torch_word(int list, const char *word)
{
    static const char *(*const name[])(uint32_t) = {
        probe_kind_name, probe_dtype_name, probe_mode_name};
    for (uint32_t i = 0; name[list](i); i++) {
        if (strcmp(name[list](i), word) == 0) {
            return i;
        }
    }
    return -1;
}

/* Opens both logs, once. Whether steps are counted by calls. */
PROBE_EXPORT bool fsdp_probe_torch_open(const char *version, int64_t rank,
                                        int64_t world);
bool fsdp_probe_torch_open(const char *version, int64_t rank, int64_t world)
{
    lock();
    if (calls.log.state == PROBE_LOG_CLOSED) {
        (void)strncpy(library, version, sizeof(library) - 1);
        known.library = library;
        known.rank = rank;
        known.world = world;
        if (!watches_fork) {
            watches_fork = true;
            (void)pthread_atfork(lock, unlock, in_child);
        }
        if (call_log_open(&calls, &known)) {
            mark_of_heap = calls.heap_mark;
            calls.heap_mark = mark_memory;
        }
    }
    bool counted = calls.every > 0;
    unlock();
    return counted;
}

/* The number of a new communicator; members: n_runs times three numbers. */
PROBE_EXPORT int64_t fsdp_probe_torch_group(const char *name, const char *id,
                                            int64_t size, int64_t me,
                                            const int64_t *member,
                                            int64_t n_runs);
int64_t fsdp_probe_torch_group(const char *name, const char *id, int64_t size,
                               int64_t me, const int64_t *member,
                               int64_t n_runs)
{
    struct probe_line line;
    lock();
    probe_line_begin(&line, "communicator");
    probe_line_u64(&line, "comm", calls.comms);
    probe_line_null(&line, "parent");
    probe_line_u64(&line, "size", (uint64_t)size);
    probe_line_u64(&line, "me", (uint64_t)me);
    for (int64_t i = 0; i < n_runs; i++) {
        probe_line_add(&line, "%s[%lld,%lld,%lld]",
                       i == 0 ? ",\"members\":[" : ",",
                       (long long)member[3 * i], (long long)member[3 * i + 1],
                       (long long)member[3 * i + 2]);
    }
    probe_line_add(&line, n_runs == 0 ? ",\"members\":null" : "]");
    probe_line_text(&line, "name", name);
    probe_line_text(&line, "id", id);
    probe_log_write(&calls.log, &line);
    int64_t number = calls.comms++;
    unlock();
    return number;
}

/* n, total, bytes: see struct probe_call. Returns the call's number. */
PROBE_EXPORT uint64_t fsdp_probe_torch_call(const char *call, const char *op,
                                            const int64_t number[9]);
uint64_t fsdp_probe_torch_call(const char *call, const char *op,
                               const int64_t number[9])
{
    struct probe_call c = {.call = call,
                           .op = op,
                           .kind = (uint32_t)number[0],
                           .dtype = (uint32_t)number[1],
                           .mode = (uint32_t)number[2],
                           .comm = number[3],
                           .root = number[4],
                           .n = number[5],
                           .total = number[6],
                           .bytes = number[7],
                           .in_place = (int)number[8]};
    lock();
    uint64_t seq = call_log_call(&calls, &c);
    unlock();
    return seq;
}

PROBE_EXPORT void fsdp_probe_torch_failed(uint64_t seq);
void fsdp_probe_torch_failed(uint64_t seq)
{
    struct probe_line line;
    lock();
    probe_line_begin(&line, "failed");
    probe_line_u64(&line, "seq", seq);
    probe_line_u64(&line, "code", 1);
    probe_log_write(&calls.log, &line);
    unlock();
}

PROBE_EXPORT void fsdp_probe_torch_send(int64_t bytes);
void fsdp_probe_torch_send(int64_t bytes)
{
    lock();
    calls.sends++;
    calls.send_bytes += (uint64_t)bytes;
    unlock();
}

PROBE_EXPORT void fsdp_probe_torch_mark(const char *name);
void fsdp_probe_torch_mark(const char *name)
{
    lock();
    call_log_mark(&calls, name);
    unlock();
}

/* ---- The end ---- */

static void end(void)
{
    lock();
    call_log_end(&calls, PROBE_EXITED);
    unlock();
}

__attribute__((destructor)) static void at_exit(void)
{
    end();
}

/* Forked workers leave by this, and no destructor runs. */
static _Noreturn void leave(int status)
{
    void (*next)(int);
    *(void **)(void *)&next = dlsym(RTLD_NEXT, "_exit");
    end();
    heap_log_end(PROBE_EXITED);
    if (next) {
        next(status);
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
