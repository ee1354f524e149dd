/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world_threads.c - every rank a thread of this process, for sanitizers.
 */
#include "arena.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    LOOK_MS = 20,
    EXIT_HUNG = 70, /* EX_SOFTWARE */
};

struct thread {
    struct arena *arena;
    const struct world_job *job;
    uint32_t rank;
    bool late; /* had not ended when the watchdog fired */
    pthread_t id;
};

static void *be_rank(void *argument)
{
    const struct thread *self = argument;
    arena_rank_run(self->arena, self->job, self->rank);
    arena_rank_end(self->arena, self->rank);
    return NULL;
}

static bool has_ended(const struct thread *thread)
{
    return atomic_load(&thread->arena->rank[thread->rank].ended) != 0;
}

/* Ends the process: a thread cannot be killed, and the memory that it uses must
 * stay. */
static _Noreturn void give_up(const struct thread *thread, uint32_t n)
{
    for (uint32_t r = 0; r < n; r++) {
        struct world_result result;
        if (has_ended(&thread[r])) {
            (void)pthread_join(thread[r].id, NULL);
            continue;
        }
        world_progress_read(&thread[r].arena->rank[r].progress, &result);
        dprintf(STDERR_FILENO,
                "world: rank %u hangs %s collective no. %llu (kind %u, "
                "unit %u)\n",
                r, result.in_collective ? "in" : "after",
                (unsigned long long)result.n_collectives, result.last_kind,
                result.last_unit);
    }
    _exit(EXIT_HUNG);
}

static void supervise(struct arena *arena, struct thread *thread, uint32_t n,
                      uint32_t timeout_ms)
{
    struct arena_watch watch = {0};
    bool fired = false;
    for (;;) {
        uint32_t seen = atomic_load(&arena->n_ended);
        if (seen == n) {
            return;
        }
        if (arena_idle_ms(arena, &watch) > timeout_ms) {
            if (fired) {
                give_up(thread, n);
            }
            fired = true;
            watch.since_ms = arena_now_ms();
            for (uint32_t r = 0; r < n; r++) {
                thread[r].late = !has_ended(&thread[r]);
            }
            arena_abort(arena, FSDP_ERR_TIMEOUT);
        }
        arena_wait_ended(arena, seen, LOOK_MS);
    }
}

int world_run_threads(const struct world_job *job)
{
    struct thread thread[WORLD_MAX_RANKS] = {0};
    struct arena *arena = arena_open(job);
    uint32_t n = 0;
    int failed = 0;
    int status = FSDP_OK;
    if (!arena) {
        return world_fail(job->error, FSDP_ERR_NOMEM, 0, errno, "world",
                          "no memory for %u ranks", job->n_ranks);
    }
    for (; n < job->n_ranks; n++) {
        thread[n] = (struct thread){.arena = arena, .job = job, .rank = n};
        failed = pthread_create(&thread[n].id, NULL, be_rank, &thread[n]);
        if (failed != 0) {
            status = world_fail(job->error, FSDP_ERR_NOMEM, n, failed, "world",
                                "cannot start rank %u of %u: %s", n,
                                job->n_ranks, strerror(failed));
            arena_abort(arena, status);
            break;
        }
    }
    supervise(arena, thread, n, job->timeout_ms);
    for (uint32_t r = 0; r < n; r++) {
        (void)pthread_join(thread[r].id, NULL);
        arena_read_result(arena, r, &job->result[r]);
        if (thread[r].late) {
            job->result[r].end = WORLD_TIMED_OUT;
        }
    }
    arena_close(arena);
    return status;
}
