/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world_straight.c - a collective in which members read each other's memory:
 * each number is moved once. In the first turn each member shows where its data
 * are; none leaves before a last turn, in which all say that they have read. A
 * member that fails or dies in between is noticed there, as anywhere else. A
 * reduction reads what it folds in pieces that stay in a cache.
 */
#include "world_turns.h"

#include <string.h>

enum {
    PIECE_BYTES = 64 * 1024,       /* bytes that are folded at a time */
    STRIDE_BYTES = 4 * 1024 * 1024 /* bytes that are copied between two signs of
                                      progress */
};

/* The addresses that a member shows, in its own memory. */
struct shown {
    uint64_t in, out;
};

static void beat(struct world_call *call)
{
    atomic_fetch_add_explicit(&call->comm->progress->beats, 1,
                              memory_order_relaxed);
}

/* `theirs` is an address in the memory of a member. */
static int fetch(struct world_call *call, uint32_t member, uint64_t theirs,
                 void *to, uint64_t bytes)
{
    struct world_comm *comm = call->comm;
    return comm->carrier->fetch(comm, call->group, member, theirs, to, bytes);
}

/* Each member gives some bytes to all others: all[extent * bytes]. */
static int tell_all(struct world_call *call, const void *mine, uint64_t bytes,
                    void *all)
{
    struct world_comm *comm = call->comm;
    memcpy(comm->carrier->place(comm, call->group), mine, bytes);
    FSDP_TRY(world_turn_take(call, WORLD_ALL, bytes));
    for (uint32_t r = 0; r < call->extent; r++) {
        memcpy((unsigned char *)all + r * bytes, call->part[r], bytes);
    }
    return FSDP_OK;
}

/* ---- Who can ----------------------------------------------------------- */

/* Whether this member reads the right number at every other one. */
static bool can_read_all(struct world_call *call, const uint64_t *address)
{
    for (uint32_t r = 0; r < call->extent; r++) {
        uint64_t seen = 0;
        if (r != call->me &&
            (fetch(call, r, address[r], &seen, sizeof(seen)) != FSDP_OK ||
             seen != ~address[r])) {
            return false;
        }
    }
    return true;
}

/* Takes two turns: the second shows that all members have read what the first
 * showed. */
static int try_out(struct world_call *call, uint8_t *known)
{
    uint64_t all[WORLD_MAX_RANKS];
    uint64_t probe = 0;
    uint64_t mine = (uint64_t)(uintptr_t)&probe;
    *(volatile uint64_t *)&probe = ~mine;
    FSDP_TRY(tell_all(call, &mine, sizeof(mine), all));
    mine = can_read_all(call, all);
    FSDP_TRY(tell_all(call, &mine, sizeof(mine), all));
    *known = WORLD_STRAIGHT;
    for (uint32_t r = 0; r < call->extent; r++) {
        if (all[r] == 0) {
            *known = WORLD_NOT_STRAIGHT;
        }
    }
    return FSDP_OK;
}

int world_straight_agree(struct world_call *call, bool *yes)
{
    uint8_t *known = &call->comm->straight[call->group];
    if (*known == WORLD_UNTRIED) {
        FSDP_TRY(try_out(call, known));
    }
    *yes = *known == WORLD_STRAIGHT;
    return FSDP_OK;
}

/* ---- The data ---------------------------------------------------------- */

/* Where to put the pieces of others: the place that the next turn will fill,
 * since by now nobody reads it. */
static int reduce(struct world_call *call, const struct shown *shown,
                  unsigned char *to)
{
    struct world_block mine = world_block(call, call->me);
    /* There are others, or this would not be called.
     * NOLINTNEXTLINE(clang-analyzer-core.DivideZero) */
    uint64_t most = WORLD_PLACE_BYTES / (call->extent - 1);
    most = most < PIECE_BYTES ? most - most % 64 : PIECE_BYTES;
    for (uint64_t at = 0; at < mine.bytes; at += most) {
        struct world_block cut = world_block_cut(mine, at, most);
        unsigned char *piece =
            call->comm->carrier->place(call->comm, call->group);
        for (uint32_t r = 0; r < call->extent; r++) {
            call->part[r] = call->in + cut.at;
            if (r != call->me) {
                FSDP_TRY(
                    fetch(call, r, shown[r].in + cut.at, piece, cut.bytes));
                call->part[r] = piece;
                piece += most;
            }
        }
        world_fold_parts(call, cut.bytes, to + at);
        beat(call);
    }
    return FSDP_OK;
}

/* Member r's block lies at from(r): in its `in`, or at its place in `out`.
 * Each member begins with its neighbour, so that not all read the same. */
static int gather(struct world_call *call, const struct shown *shown)
{
    bool whole = call->turn.header.kind == FSDP_ALL_REDUCE;
    for (uint32_t i = 1; i < call->extent; i++) {
        uint32_t r = (call->me + i) % call->extent;
        struct world_block block = world_block(call, r);
        uint64_t from = whole ? shown[r].out + block.at : shown[r].in;
        for (uint64_t at = 0; at < block.bytes; at += STRIDE_BYTES) {
            struct world_block cut = world_block_cut(block, at, STRIDE_BYTES);
            FSDP_TRY(fetch(call, r, from + at, call->out + cut.at, cut.bytes));
            beat(call);
        }
    }
    return FSDP_OK;
}

/* A failure to read is kept until all have met: the others may know more. */
static int meet(struct world_call *call, int status)
{
    FSDP_TRY(world_turn_take(call, WORLD_ALL, 0));
    if (status != FSDP_OK) {
        return world_fail(call->comm->rank->error, FSDP_ERR_COMM,
                          call->comm->rank->rank, 0, "comm",
                          "the memory of another rank cannot be read");
    }
    return FSDP_OK;
}

int world_straight(struct world_call *call)
{
    struct world_block mine = world_block(call, call->me);
    struct shown all[WORLD_MAX_RANKS]; /* only of the members */
    struct shown own = {(uint64_t)(uintptr_t)call->in,
                        (uint64_t)(uintptr_t)call->out};
    FSDP_TRY(tell_all(call, &own, sizeof(own), all));
    switch (call->turn.header.kind) {
    case FSDP_REDUCE_SCATTER:
        return meet(call, reduce(call, all, call->out));
    case FSDP_ALL_REDUCE:
        FSDP_TRY(meet(call, reduce(call, all, call->out + mine.at)));
        return meet(call, gather(call, all));
    default: /* FSDP_ALL_GATHER */
        if (call->in != call->out + mine.at) {
            memcpy(call->out + mine.at, call->in, mine.bytes);
        }
        return meet(call, gather(call, all));
    }
}
