/* SPDX-License-Identifier: Apache-2.0 */
/*
 * broker.h - a process that carries what ranks send if they share no memory
 * with each other: each rank shares an area with the broker alone, and posts
 * its turns there. The broker compares the headers of all members, copies each
 * part to the ranks that get it, counts, and keeps a hash of what each rank has
 * sent. It runs no engine, so that no engine can change what it says.
 *
 * A rank may post anything. A turn that does not belong to the collective that
 * its header names is refused, so that nothing is carried that is not counted.
 */
#ifndef FSDP_CTS_BROKER_H
#define FSDP_CTS_BROKER_H

#include "arena.h"
#include "record/record_traffic.h"

enum {
    BROKER_RANKS = 128 /* at most */
};

/* What one rank and the broker share. */
struct broker_area {
    struct arena_rank self;
    _Atomic int32_t aborted;
    /* Written by the rank. */
    alignas(64) _Atomic uint32_t posted; /* turns */
    _Atomic int32_t gives_up;            /* why it ends the world, or OK */
    uint32_t group;
    struct world_turn turn;
    /* Written by the broker. */
    alignas(
        64) _Atomic uint32_t answered; /* turns, in steps of 2; the lowest bit:
                                          no further turn will be answered */
    _Atomic uint32_t sleepers;
    _Atomic uint32_t asleep; /* the broker sleeps: a bell wakes it */
    int32_t verdict;         /* on the turn that was answered */
    uint32_t left;           /* the rank that has left, if the verdict is that
                                one has */
    struct world_header header[BROKER_RANKS]; /* the headers, if they differ */
    /* `out`: what the rank sends. `in`: what it gets, one part behind the
     * other. */
    alignas(64) unsigned char out[WORLD_PLACE_BYTES];
    alignas(64) unsigned char in[];
};

/* Bytes from the start of one part that a rank gets to the start of the
 * next. */
static inline uint64_t broker_part(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* Known to the broker and to the process that started it, and to no other. */
struct broker {
    struct arena *arena;
    const struct fsdp_mesh *mesh;
    int bell[BROKER_RANKS + 1];     /* of each rank; the last one rings when the
                                       world is over */
    struct record_carried *carried; /* [n_ranks], shared between the two */
    pid_t pid;                      /* of the process; 0: it has ended */
};

/* Makes the memory and the bells, for BROKER_RANKS at most. Ranks are processes
 * or threads that begin later. False: the machine has no room. */
bool broker_open(struct broker *b, const struct world_job *job);
void broker_close(struct broker *b);

/* Carries until the world is over; in a process or a thread of its own. */
void broker_serve(struct broker *b);
/* Starts a process that serves. False: none could be started. */
bool broker_start(struct broker *b);
/* Ends the broker's process, when all ranks have ended. False: it had ended by
 * itself, or did not end when it should. */
bool broker_end(struct broker *b);
/* Whether the broker's process has ended by itself, which it never should. */
bool broker_is_lost(struct broker *b);

/* For arena_abort: tells all ranks that the world is aborted. */
void broker_shut(struct arena *arena);

static inline struct broker_area *broker_area(struct arena *arena,
                                              uint32_t rank)
{
    return (struct broker_area *)(void *)arena_rank(arena, rank);
}

/* broker_carrier.c. In a rank that is a process: removes all of the arena from
 * its memory but its own area, and closes the other ranks' bells. */
void broker_keep_own(const struct broker *b, uint32_t rank);
/* As arena_rank_run and arena_rank_end. */
void broker_rank_run(struct broker_area *own, int bell, bool spare,
                     const struct world_job *job, uint32_t rank);
void broker_rank_end(struct broker_area *own, int bell);

#endif
