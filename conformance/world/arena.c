/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.c - maps the memory that ranks share, waits in it, and watches whether
 * ranks get on.
 */
#include "broker.h"

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
    /* Looks for a microsecond or two: if ranks have cores, most arrive in that
     * time. */
    SPINS = 100,
    /* More ranks than cores are normal, so yielding is what makes the others
     * arrive, and it is cheaper than to sleep and be woken. */
    YIELDS = 50,
    /* With a core for each rank no rank loses if another goes on yielding:
     * members that copy megabytes end some ten microseconds apart, and an idle
     * core takes longer than that to wake. */
    PATIENCE_NS = 300000,
    /* If a turn of yielding takes so long, another process needs the core: then
     * a rank that sleeps is back sooner than one that waits for its turn. */
    LONG_TURN_NS = 100000,
    /* A wake-up cannot get lost, but the rank that should send it can be killed
     * before. */
    LONGEST_SLEEP_MS = 100,
};

/* Tells the core that this thread only waits. */
static inline void cpu_relax(void)
{
#ifdef __x86_64__
    __builtin_ia32_pause();
#endif
}

static int64_t now_ns(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void futex_wait(_Atomic uint32_t *word, uint32_t seen, int64_t ms)
{
    struct timespec time = {.tv_sec = ms / 1000,
                            .tv_nsec = ms % 1000 * 1000000};
    (void)syscall(SYS_futex, word, FUTEX_WAIT, seen, &time, NULL, 0);
}

void arena_wake(_Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

uint32_t arena_cores(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    return sched_getaffinity(0, sizeof(set), &set) == 0
               ? (uint32_t)CPU_COUNT(&set)
               : 1;
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
    arena->spare = job->n_ranks <= arena_cores();
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
    if (arena) {
        (void)munmap(arena, arena->bytes);
    }
}

void arena_shut(struct arena_barrier *barrier)
{
    atomic_fetch_or_explicit(&barrier->word, SHUT, memory_order_release);
    arena_wake(&barrier->word);
}

void arena_abort(struct arena *arena, int32_t status)
{
    int32_t none = FSDP_OK;
    /* Set before the barriers: a rank that finds one shut looks here for the
     * reason. */
    (void)atomic_compare_exchange_strong(
        &arena->aborted, &none, status == FSDP_OK ? FSDP_ERR_ABORTED : status);
    if (arena->areas_at != 0) {
        broker_shut(arena);
        return;
    }
    for (uint32_t g = 0; g < arena->n_groups; g++) {
        for (uint32_t r = 0; r < arena->n_ranks; r++) {
            arena_shut(&arena->barrier[g][r]);
        }
    }
}

/* Whether the wait for another word than this one is over, and if so, whether a
 * round was completed. */
static bool is_over(_Atomic uint32_t *word, uint32_t seen, bool *completed)
{
    uint32_t now = atomic_load_explicit(word, memory_order_acquire);
    *completed = (now & ~(uint32_t)SHUT) != seen;
    return *completed || (now & SHUT);
}

/* How one member waits in one round. */
struct waiting {
    uint32_t tries;
    int64_t begun, last; /* when the rank began to yield */
    bool patient;        /* not yet asleep */
};

/* Waits a moment without sleeping; `patient` says whether to do it again. */
static void wait_awake(struct waiting *w, bool spare)
{
    if (w->tries++ < SPINS) {
        cpu_relax();
        return;
    }
    if (spare && w->begun == 0) {
        w->begun = w->last = now_ns();
    }
    (void)sched_yield();
    if (spare) {
        int64_t now = now_ns();
        w->patient =
            now - w->last < LONG_TURN_NS && now - w->begun < PATIENCE_NS;
        w->last = now;
    } else {
        w->patient = w->tries < SPINS + YIELDS;
    }
}

bool arena_await(_Atomic uint32_t *word, _Atomic uint32_t *sleepers,
                 uint32_t seen, bool spare)
{
    bool completed;
    /* If there are fewer cores than ranks, the missing rank has none: do not
     * spin. */
    struct waiting w = {.tries = spare ? 0 : SPINS, .patient = true};
    while (!is_over(word, seen, &completed)) {
        if (w.patient) {
            wait_awake(&w, spare);
        } else {
            atomic_fetch_add(sleepers, 1);
            futex_wait(word, seen, LONGEST_SLEEP_MS);
            atomic_fetch_sub(sleepers, 1);
        }
    }
    return completed;
}

bool arena_meet(struct arena_barrier *barrier, uint32_t n, bool spare)
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
        atomic_fetch_add(&barrier->word, ROUND);
        /* A rank that adds itself later sees the new word, and does not
         * sleep. */
        if (atomic_load(&barrier->sleepers) > 0) {
            arena_wake(&barrier->word);
        }
        return true;
    }
    return arena_await(&barrier->word, &barrier->sleepers, word, spare);
}

void arena_rank_end(struct arena *arena, uint32_t rank)
{
    atomic_store_explicit(&arena_rank(arena, rank)->ended, 1,
                          memory_order_release);
    atomic_fetch_add_explicit(&arena->n_ended, 1, memory_order_release);
    arena_wake(&arena->n_ended);
}

int64_t arena_now_ms(void)
{
    return now_ns() / 1000000;
}

int64_t arena_idle_ms(struct arena *arena, struct arena_watch *watch)
{
    int64_t now = arena_now_ms();
    uint64_t beats = 1; /* the first look is always news */
    for (uint32_t r = 0; r < arena->n_ranks; r++) {
        struct arena_rank *rank = arena_rank(arena, r);
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
    struct arena_rank *own = arena_rank(arena, rank);
    world_progress_read(&own->progress, result);
    result->error = own->error;
    /* A rank that died may have left half a string. */
    result->error.where[sizeof(result->error.where) - 1] = '\0';
    result->error.message[sizeof(result->error.message) - 1] = '\0';
    result->end = WORLD_RETURNED;
    result->status = own->status;
}
