/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world_turns.c - a collective in bounded turns through the carrier's places.
 * Every number is sent only to the ranks that need it, and a rank takes what it
 * has itself from where it is. Places are small enough to stay in a cache
 * between the rank that fills them and those that read.
 */
#include "world_turns.h"

#include "world_fold.h"

#include <assert.h>
#include <string.h>

struct world_block world_block(const struct world_call *call, uint32_t member)
{
    uint64_t n = call->turn.header.n;
    uint64_t each = n;
    if (call->turn.header.kind == FSDP_ALL_REDUCE) {
        each = n / call->extent + (n % call->extent != 0);
        uint64_t left = each * member < n ? n - each * member : 0;
        n = left < each ? left : each;
    }
    return (struct world_block){.at = each * member * call->element_bytes,
                                .bytes = n * call->element_bytes};
}

struct world_block world_block_cut(struct world_block block, uint64_t from,
                                   uint64_t most)
{
    uint64_t left = from < block.bytes ? block.bytes - from : 0;
    return (struct world_block){.at = block.at + from,
                                .bytes = left < most ? left : most};
}

int world_turn_take(struct world_call *call, uint32_t pattern, uint64_t bytes)
{
    struct world_comm *comm = call->comm;
    call->turn.pattern = pattern;
    call->turn.bytes = bytes;
    assert(bytes * (pattern == WORLD_EACH ? call->extent : 1) <=
           WORLD_PLACE_BYTES);
    FSDP_TRY(comm->carrier->turn(comm, call->group, &call->turn, call->part));
    atomic_fetch_add_explicit(&comm->progress->beats, 1, memory_order_relaxed);
    call->turn.header.turn++;
    return FSDP_OK;
}

void world_fold_parts(const struct world_call *call, uint64_t bytes, void *out)
{
    const struct world_header *header = &call->turn.header;
    const struct world_sum how = {.fold = header->fold,
                                  .owner = call->me,
                                  .dtype = header->dtype,
                                  .sum_dtype = header->sum_dtype};
    const void *in[WORLD_MAX_RANKS];
    for (uint32_t r = 0; r < call->extent; r++) {
        in[r] = call->part[r];
    }
    world_fold(&how, in, call->extent, bytes / call->element_bytes, out);
}

/* Bytes of a part in each turn; whole elements. */
static uint64_t most_of(uint32_t parts)
{
    uint64_t most = WORLD_PLACE_BYTES / parts;
    return most - most % 64; /* a multiple of any element */
}

static unsigned char *place_of(const struct world_call *call)
{
    return call->comm->carrier->place(call->comm, call->group);
}

/* Every member gets every block; this one's own lies at `own`. */
static int gather(struct world_call *call, const unsigned char *own)
{
    struct world_block first = world_block(call, 0); /* none is longer */
    struct world_block mine = world_block(call, call->me);
    uint64_t most = most_of(1);
    uint64_t at = 0;
    do {
        struct world_block cut = world_block_cut(mine, at, most);
        if (cut.bytes > 0) {
            memcpy(place_of(call), own + at, cut.bytes);
        }
        FSDP_TRY(world_turn_take(call, WORLD_ALL,
                                 world_block_cut(first, at, most).bytes));
        if (cut.bytes > 0 && own + at != call->out + cut.at) {
            memmove(call->out + cut.at, own + at, cut.bytes);
        }
        for (uint32_t r = 0; r < call->extent; r++) {
            cut = world_block_cut(world_block(call, r), at, most);
            if (r != call->me && cut.bytes > 0) {
                memcpy(call->out + cut.at, call->part[r], cut.bytes);
            }
        }
        at += most;
    } while (at < first.bytes);
    return FSDP_OK;
}

/* Every member gets its own block of everybody's `in` and leaves their fold
 * at `to`. */
static int reduce(struct world_call *call, unsigned char *to)
{
    struct world_block first = world_block(call, 0);
    struct world_block mine = world_block(call, call->me);
    uint64_t most = most_of(call->extent);
    uint64_t at = 0;
    do {
        uint64_t part = world_block_cut(first, at, most).bytes;
        for (uint32_t r = 0; part > 0 && r < call->extent; r++) {
            struct world_block cut =
                world_block_cut(world_block(call, r), at, most);
            if (r != call->me && cut.bytes > 0) {
                memcpy(place_of(call) + r * part, call->in + cut.at, cut.bytes);
            }
        }
        FSDP_TRY(world_turn_take(call, WORLD_EACH, part));
        struct world_block cut = world_block_cut(mine, at, most);
        if (cut.bytes > 0) {
            call->part[call->me] = call->in + cut.at;
            world_fold_parts(call, cut.bytes, to + at);
        }
        at += most;
    } while (at < first.bytes);
    return FSDP_OK;
}

static int broadcast(struct world_call *call)
{
    uint64_t bytes = call->turn.header.n * call->element_bytes;
    uint32_t root = call->turn.header.root;
    uint64_t most = most_of(1);
    uint64_t at = 0;
    do {
        uint64_t m = bytes - at < most ? bytes - at : most;
        if (root == call->me && m > 0) {
            memcpy(place_of(call), call->in + at, m);
        }
        FSDP_TRY(world_turn_take(call, WORLD_ROOT, m));
        if (root != call->me && m > 0) {
            memcpy(call->out + at, call->part[root], m);
        } else if (m > 0 && call->in != call->out) {
            memcpy(call->out + at, call->in + at, m);
        }
        at += m;
    } while (at < bytes);
    return FSDP_OK;
}

static int turns(struct world_call *call)
{
    switch (call->turn.header.kind) {
    case FSDP_REDUCE_SCATTER:
        return reduce(call, call->out);
    case FSDP_ALL_REDUCE: {
        unsigned char *mine = call->out + world_block(call, call->me).at;
        FSDP_TRY(reduce(call, mine));
        return gather(call, mine);
    }
    case FSDP_BROADCAST:
        return broadcast(call);
    default: /* FSDP_ALL_GATHER, FSDP_BARRIER, WORLD_EXCHANGE */
        return gather(call, call->in);
    }
}

/* Whether it is faster if members read each other's memory; the same on all. */
static bool is_worth_straight(const struct world_call *call)
{
    enum {
        /* For smaller blocks a system call costs more than a second copy. */
        WORTH_BYTES = 32 * 1024
    };
    const uint32_t kind = call->turn.header.kind;

    return call->comm->carrier->fetch && call->extent > 1 &&
           (kind == FSDP_ALL_GATHER || kind == FSDP_REDUCE_SCATTER ||
            kind == FSDP_ALL_REDUCE) &&
           world_block(call, 0).bytes >= WORTH_BYTES;
}

int world_run_call(struct world_call *call)
{
    bool straight = false;
    call->turn.header.sequence = call->comm->sequence[call->group]++;
    if (is_worth_straight(call)) {
        FSDP_TRY(world_straight_agree(call, &straight));
    }
    return straight ? world_straight(call) : turns(call);
}
