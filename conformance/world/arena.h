/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.h - the memory that the ranks of one world share, be they processes or
 * threads: barriers, where each rank stands, and the places through which
 * collectives move data.
 *
 * There are no locks, so that a rank that dies holds none. Ranks wait on
 * futexes.
 */
#ifndef FSDP_CTS_ARENA_H
#define FSDP_CTS_ARENA_H

#include "world_kinds.h"

#include <stdalign.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * A barrier of one group. `word` counts completed rounds in steps of 2; its
 * lowest bit says that no further round will ever complete, because the world
 * was aborted or a member has left.
 */
struct arena_barrier {
    alignas(64) _Atomic uint32_t word;
    _Atomic uint32_t arrived;
    _Atomic uint32_t sleepers; /* a rank that died asleep stays counted */
};

/* What one rank tells about itself. */
struct arena_rank {
    alignas(64) struct world_progress progress;
    _Atomic uint32_t left;    /* its body has returned */
    _Atomic uint32_t ended;   /* `status` and `error` are final */
    _Atomic uint32_t answers; /* says where it stands when it is asked */
    _Atomic uint32_t told;    /* so many of its threads have said where they
                                 stand */
    pid_t pid;                /* set before its first turn */
    int32_t status;
    struct fsdp_error error;
};

/* One part in flight. The header is next to the data, so that a small
 * collective touches one page of each member. */
struct arena_place {
    alignas(64) struct world_header header;
    alignas(64) unsigned char data[WORLD_PLACE_BYTES];
};

struct arena {
    uint32_t n_ranks;
    uint32_t n_groups; /* of each rank */
    size_t bytes;      /* bytes of the mapping */
    bool spare;        /* there is a core for each rank */
    _Atomic int32_t aborted;
    alignas(64) _Atomic uint32_t n_ended; /* the supervisor waits on it */
    /* Where ranks share no memory (broker.h) each has an area, which begins
     * with its struct arena_rank; else 0. In bytes. */
    size_t areas_at, area_bytes;
    _Atomic uint32_t over; /* the broker has nothing more to carry */
    struct arena_barrier barrier[WORLD_MAX_GROUPS][WORLD_MAX_RANKS];
    struct arena_rank rank[WORLD_MAX_RANKS];
    /* [n_ranks][n_groups][2]; see arena_carrier.c */
    struct arena_place place[];
};

static inline struct arena_rank *arena_rank(struct arena *arena, uint32_t rank)
{
    char *const area = (char *)arena + arena->areas_at;

    return arena->areas_at == 0
               ? &arena->rank[rank]
               : (struct arena_rank *)(void *)(area + arena->area_bytes * rank);
}

/* NULL: no memory. Shared with processes forked later on. */
struct arena *arena_open(const struct world_job *job);
/* The same in memory that is shared in another way and is all zero: how many
 * bytes that takes, and the arena in it. One rank makes the arena before any
 * rank uses it. */
size_t arena_bytes(const struct world_job *job);
struct arena *arena_make(const struct world_job *job, void *memory);
void arena_close(struct arena *arena);

/* Every pending and later wait at a barrier ends at once. The first status
 * stays. */
void arena_abort(struct arena *arena, int32_t status);

/* Waits for the `n` members of a barrier. False: no round will complete. */
bool arena_meet(struct arena_barrier *barrier, uint32_t n, bool spare);
/* Waits until a word differs from `seen`, which is even. False: only its lowest
 * bit has changed, so that no further change will come. Whoever changes the
 * word wakes those who sleep. */
bool arena_await(_Atomic uint32_t *word, _Atomic uint32_t *sleepers,
                 uint32_t seen, bool spare);
void arena_wake(_Atomic uint32_t *word);
/* No further round of this barrier will complete. */
void arena_shut(struct arena_barrier *barrier);
/* The number of cores on which this process may run; 1 if it is not known. */
uint32_t arena_cores(void);

/* Runs the body as this rank, with a communicator over the arena. */
void arena_rank_run(struct arena *arena, const struct world_job *job,
                    uint32_t rank);
/* The last thing that a rank does. */
void arena_rank_end(struct arena *arena, uint32_t rank);

/* world_stack.c. As world_stack_to, in a rank that is a process. The rank no
 * longer waits once the world is aborted. */
void arena_stack_to(struct arena_rank *rank, const _Atomic int32_t *aborted,
                    const char *file);
/* In the parent, before the world is aborted: asks the ranks that can to say
 * where they stand; pid[n_ranks], 0 for those that are gone. It takes less than
 * half a second, whatever they do. */
void arena_stack_ask(struct arena *arena, const pid_t *pid);

/* What a supervisor remembers between two looks. */
struct arena_watch {
    uint64_t beats;
    int64_t since_ms; /* when `beats` was first seen */
};

int64_t arena_now_ms(void);
/* Milliseconds since any rank got on. */
int64_t arena_idle_ms(struct arena *arena, struct arena_watch *watch);
/* Returns when n_ended is not `seen` any more, or after some milliseconds. */
void arena_wait_ended(struct arena *arena, uint32_t seen, int64_t ms);

/* Reads how rank `rank` ended, which has ended. */
void arena_read_result(struct arena *arena, uint32_t rank,
                       struct world_result *result);

#endif
