/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_trace.h - what a step took and gave back, in order: the lives of its
 * values, from a moment at which nothing lives to the next such moment.
 *
 * Moments are counted: each value that is taken is one, and so is each that is
 * given back. A pass is *plain* if it leaves alive exactly what it met: none of
 * its own values outlives it, and none of an earlier pass ends in it. Several
 * plain passes that are alike, as those of microbatches are, are written down
 * once.
 */
#ifndef FSDP_CTS_IMPL_TRACE_H
#define FSDP_CTS_IMPL_TRACE_H

#include "impl_place.h"

struct impl_trace_pass {
    uint32_t sequence;
    uint32_t knobs; /* the knobs of units in this pass, as a number */
    bool plain;
    uint32_t first; /* its first life; they go on to the next pass's first */
    uint32_t begin; /* the moment at which it begins */
};

struct impl_trace {
    struct impl_trace_pass *pass;
    struct impl_life *life; /* in order of begin */
    uint32_t n_passes, pass_capacity;
    uint32_t n_lives, life_capacity;
    uint32_t moment; /* now */
    uint64_t room;   /* elements, once placed */
};

/* Where a step stands in the trace of an earlier one. */
struct impl_follow {
    const struct impl_trace *trace; /* NULL: the step follows none */
    uint32_t pass, next;            /* the pass it is in; its next life */
};

/* Each returns NOMEM, and then nothing has changed. */
int impl_trace_begin(struct impl_trace *t, uint32_t sequence, uint32_t knobs);
int impl_trace_take(struct impl_trace *t, uint64_t size, uint32_t *life);
void impl_trace_give(struct impl_trace *t, uint32_t life);
/* The pass is over: notes whether it is plain, and like the one before. */
void impl_trace_end(struct impl_trace *t);
/* Ends all lives, and gives each its place. NOMEM. */
int impl_trace_place(struct impl_trace *t);
void impl_trace_forget(struct impl_trace *t);  /* it is empty again */
void impl_trace_release(struct impl_trace *t); /* any state */

/* For the first pass of a step: whether this trace begins in the same way. */
bool impl_follow_first(struct impl_follow *f, const struct impl_trace *t,
                       uint32_t sequence, uint32_t knobs);
/* For the next pass: plain passes may be left out, or repeated. A step that
 * differs from here on follows no trace any more. */
void impl_follow_next(struct impl_follow *f, uint32_t sequence, uint32_t knobs);
/* The life that begins now, if it has this size; otherwise NULL, and the step
 * follows no trace any more. */
const struct impl_life *impl_follow_take(struct impl_follow *f, uint64_t size);

#endif
