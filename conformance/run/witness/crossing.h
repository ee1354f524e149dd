/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crossing.h - sends what a rank's recorder sees to another process (scribe.h),
 * in order and as it happens, so that the engine cannot change it afterwards.
 *
 * It goes through a pipe and waits for no answer, so that a rank need not stand
 * still for each collective. When the pipe is full, the rank says so by its
 * line (rank_line.h) and waits until it is empty.
 */
#ifndef FSDP_CTS_CROSSING_H
#define FSDP_CTS_CROSSING_H

#include "record/record.h"

#include <stddef.h>

/* Says what comes next in the pipe: `n` elements of that, or a length. */
struct crossing_head {
    uint32_t kind;
    uint32_t list; /* enum crossing_list */
    uint64_t n;
};
enum crossing_kind {
    CROSSING_COLLECTIVE, /* a struct record_collective */
    CROSSING_MARK,       /* collectives since the last mark are a sequence */
    CROSSING_TENSOR,     /* a struct record_tensor, and n floats */
    CROSSING_GROWN,      /* n more elements of a list */
    CROSSING_EXCHANGE,   /* n bytes of this rank, out of band */
    CROSSING_MISMATCH,   /* ranks disagreed in a call */
    CROSSING_OWN,        /* the engine brings a communicator */
    CROSSING_CUT,        /* a list is cut to n elements */
    CROSSING_END         /* a struct record_rank, for all but its lists */
};

/* The lists of a record that grow as the run goes on. */
enum crossing_list {
    CROSSING_LOSS,
    CROSSING_OTHER_LOSS,
    CROSSING_STEP_SEQUENCE,
    CROSSING_AFTER_STEP,
    CROSSING_ALLOCATIONS,
    CROSSING_LAUNCHES,
    CROSSING_HOSTED,
    CROSSING_MOMENT,
    CROSSING_ANSWER,
    CROSSING_FLIGHT,
    CROSSING_PASS,
    CROSSING_LISTS,
    CROSSING_TENSORS = CROSSING_LISTS /* in CROSSING_CUT */
};
/* Offsets in a record of a list and of its length, a uint32_t; and the bytes of
 * an element. */
struct crossing_row {
    size_t at, count, bytes;
};
extern const struct crossing_row crossing_rows[CROSSING_LISTS];

struct crossing {
    int pipe, line;
    uint32_t most;    /* bytes that the pipe may hold: crossing_room */
    uint32_t pending; /* bytes that it holds */
    bool broken;      /* the other end is closed */
    uint32_t sent[CROSSING_LISTS], tensors;
};

/* So many bytes always fit into the pipe, in whatever pieces they are
 * written. */
uint32_t crossing_room(int pipe);
/* Each of these calls sets `broken` where the other end is closed; crossing_end
 * says so. */
void crossing_collective(struct crossing *c, const struct record_collective *x);
void crossing_mark(struct crossing *c);
void crossing_exchange(struct crossing *c, uint64_t bytes);
void crossing_mismatch(struct crossing *c);
void crossing_own(struct crossing *c);
void crossing_tensor(struct crossing *c, const struct record_tensor *t);
/* Sends what the lists have grown by since the last time, or by how much they
 * were cut. */
void crossing_lists(struct crossing *c, const struct record_rank *r);
/* Sends the rest, and waits until the record is written. False: the other end
 * is closed. Else *error says why the record could not be written, or is OK. */
bool crossing_end(struct crossing *c, const struct record_rank *r,
                  struct fsdp_error *error);

#endif
