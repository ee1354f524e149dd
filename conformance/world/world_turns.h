/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world_turns.h - one collective while it happens, and the two ways in which
 * its data move: through the carrier's places, or straight from one member's
 * memory into another's.
 *
 * Both see a collective alike: the whole is cut into a block a member.
 * All-gather: each has its block and gets the others'. Reduce-scatter: each
 * has all blocks and gets the fold of its own. All-reduce is a reduce-scatter
 * of even blocks and then an all-gather of them, so that every element is
 * folded by the one rank that comm.h calls its owner.
 */
#ifndef FSDP_CTS_WORLD_TURNS_H
#define FSDP_CTS_WORLD_TURNS_H

#include "world_comm.h"

enum {
    WORLD_EXCHANGE = FSDP_N_COLLECTIVES, /* one more kind, for headers */
};

struct world_call {
    struct world_comm *comm;
    uint32_t group;
    uint32_t extent;
    uint32_t me;
    uint64_t element_bytes;
    struct world_turn turn;
    const unsigned char *in;
    unsigned char *out;
    const unsigned char *part[WORLD_MAX_RANKS];
};

/* A range of the whole, in bytes. */
struct world_block {
    uint64_t at, bytes;
};

/* The block of a member. */
struct world_block world_block(const struct world_call *call, uint32_t member);
/* Bytes [from, from + most) of a block, as far as it has any. */
struct world_block world_block_cut(struct world_block block, uint64_t from,
                                   uint64_t most);

/* Takes a turn with so many bytes a part, and counts it. */
int world_turn_take(struct world_call *call, uint32_t pattern, uint64_t bytes);

/* Folds so many bytes of each part in call->part, which belong to this rank's
 * block. */
void world_fold_parts(const struct world_call *call, uint64_t bytes, void *out);

/* Runs the whole collective, in one of the two ways: world_run_call chooses it,
 * and all members choose alike. */
int world_run_call(struct world_call *call);

/* world_straight.c. Whether all members can go the straight way: *yes is the
 * same on all. Takes turns the first time in a group. */
int world_straight_agree(struct world_call *call, bool *yes);
int world_straight(struct world_call *call);

#endif
