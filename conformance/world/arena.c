/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.c - the memory itself, waiting in it, and watching over it.
 */
#include "arena.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    SHUT = 1,
    ROUND = 2,
    /* For a microsecond or two: where ranks have cores, most arrive in it. */
    SPINS = 100,
    /* More ranks than cores are normal, so yielding is what makes the others
     * arrive, and it is cheaper than to sleep and be woken. */
    YIELDS = 50,
    /* A wake-up cannot get lost, but whoever should send it can be killed
     * before it does. */
    LONGEST_SLEEP_MS = 100,
};

/* Tells the core that it only waits. */
static inline void cpu_relax(void)
{
#ifdef __x86_64__
    __builtin_ia32_pause();
#endif
}

static void futex_wait(_Atomic uint32_t *word, uint32_t seen, int64_t ms)
{
    struct timespec time = {.tv_sec = ms / 1000,
                            .tv_nsec = ms % 1000 * 1000000};
    (void)syscall(SYS_futex, word, FUTEX_WAIT, seen, &time, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

size_t arena_bytes(const struct world_job *job)
{
    size_t n_groups = job->mesh->n_dims + 1;
    return sizeof(struct arena) +
           sizeof(struct arena_place) * 2 * n_groups * job->n_ranks;
}

struct arena *arena_make(const struct world_job *job, void *memory)
{
    struct arena *arena = memory;
    arena->n_ranks = job->n_ranks;
    arena->n_groups = job->mesh->n_dims + 1;
    arena->bytes = arena_bytes(job);
    return arena;
}

struct arena *arena_open(const struct world_job *job)
{
    /* Anonymous: it has no name, and is gone with the last process. Most of
     * it is never touched and so never exists. */
    void *memory = mmap(NULL, arena_bytes(job), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : arena_make(job, memory);
}

void arena_close(struct arena *arena)
{
    if (arena != NULL) {
        (void)munmap(arena, arena->bytes);
    }
}

void arena_shut(struct arena_barrier *barrier)
{
    atomic_fetch_or_explicit(&barrier->word, SHUT, memory_order_release);
    futex_wake(&barrier->word);
}

void arena_abort(struct arena *arena, int32_t status)
{
    int32_t none = FSDP_OK;
    /* Before the barriers: who finds one shut looks here for the reason. */
    (void)atomic_compare_exchange_strong(
        &arena->aborted, &none, status == FSDP_OK ? FSDP_ERR_ABORTED : status);
    for (uint32_t g = 0; g < arena->n_groups; g++) {
        for (uint32_t r = 0; r < arena->n_ranks; r++) {
            arena_shut(&arena->barrier[g][r]);
        }
    }
}

bool arena_meet(struct arena_barrier *barrier, uint32_t n)
{
    /* No round can complete without us, so this is the current one. */
    uint32_t word = atomic_load_explicit(&barrier->word, memory_order_acquire);
    if (word & SHUT) {
        return false;
    }
    if (atomic_fetch_add_explicit(&barrier->arrived, 1, memory_order_acq_rel) +
            1 ==
        n) {
        atomic_store_explicit(&barrier->arrived, 0, memory_order_relaxed);
        atomic_fetch_add_explicit(&barrier->word, ROUND, memory_order_release);
        if (n > 1) {
            futex_wake(&barrier->word);
        }
        return true;
    }
    for (uint32_t tries = 0;; tries++) {
        uint32_t now =
            atomic_load_explicit(&barrier->word, memory_order_acquire);
        if ((now & ~(uint32_t)SHUT) != word) {
            return true;
        }
        if (now & SHUT) {
            return false;
        }
        if (tries < SPINS) {
            cpu_relax();
        } else if (tries < SPINS + YIELDS) {
            (void)sched_yield();
        } else {
            futex_wait(&barrier->word, word, LONGEST_SLEEP_MS);
        }
    }
}

void arena_rank_end(struct arena *arena, uint32_t rank)
{
    atomic_store_explicit(&arena->rank[rank].ended, 1, memory_order_release);
    atomic_fetch_add_explicit(&arena->n_ended, 1, memory_order_release);
    futex_wake(&arena->n_ended);
}

int64_t arena_now_ms(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t arena_idle_ms(struct arena *arena, struct arena_watch *watch)
{
    int64_t now = arena_now_ms();
    uint64_t beats = 1; /* the first look is always news */
    for (uint32_t r = 0; r < arena->n_ranks; r++) {
        struct arena_rank *rank = &arena->rank[r];
        beats +=
            atomic_load_explicit(&rank->progress.beats, memory_order_relaxed);
        beats += atomic_load_explicit(&rank->ended, memory_order_relaxed);
    }
    if (beats != watch->beats) {
        *watch = (struct arena_watch){.beats = beats, .since_ms = now};
    }
    return now - watch->since_ms;
}

void arena_wait_ended(struct arena *arena, uint32_t seen, int64_t ms)
{
    if (atomic_load_explicit(&arena->n_ended, memory_order_acquire) == seen) {
        futex_wait(&arena->n_ended, seen, ms);
    }
}

void arena_read_result(struct arena *arena, uint32_t rank,
                       struct world_result *result)
{
    struct arena_rank *own = &arena->rank[rank];
    world_progress_read(&own->progress, result);
    result->error = own->error;
    /* A rank that died may have left half a string. */
    result->error.where[sizeof(result->error.where) - 1] = '\0';
    result->error.message[sizeof(result->error.message) - 1] = '\0';
    result->end = WORLD_RETURNED;
    result->status = own->status;
}
