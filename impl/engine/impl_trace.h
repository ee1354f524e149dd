/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_trace.h - what a step took and gave back, in order: the lives of its
 * values, from a moment at which nothing lives to the next one.
 *
 * Moments are counted: each value taken is one, each given back another. A
 * pass that leaves what it met (no life of its own goes on, none of an earlier
 * one ended in it) is *plain*; several plain passes that are alike, as those
 * of microbatches are, are written down once.
 */
#ifndef FSDP_CTS_IMPL_TRACE_H
#define FSDP_CTS_IMPL_TRACE_H

#include "impl_place.h"

struct impl_trace_pass {
    uint32_t sequence;
    uint32_t knobs; /* how those of units were set */
    bool plain;
    uint32_t first; /* of its lives; they go on to the next pass's first */
    uint32_t begin; /* its moment */
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
    const struct impl_trace *trace; /* NULL: in none */
    uint32_t pass, next;            /* life */
};

/* Each returns NOMEM, and then nothing has changed. */
int impl_trace_begin(struct impl_trace *t, uint32_t sequence, uint32_t knobs);
int impl_trace_take(struct impl_trace *t, uint64_t size, uint32_t *life);
void impl_trace_give(struct impl_trace *t, uint32_t life);
/* The pass is over: is it plain, and like the one before? */
void impl_trace_end(struct impl_trace *t);
/* All that lives ends here, and each life gets its place. NOMEM. */
int impl_trace_place(struct impl_trace *t);
void impl_trace_forget(struct impl_trace *t);  /* it is empty again */
void impl_trace_release(struct impl_trace *t); /* any state */

/* The first pass of a step: whether this trace begins so. */
bool impl_follow_first(struct impl_follow *f, const struct impl_trace *t,
                       uint32_t sequence, uint32_t knobs);
/* The next one: plain passes may be left out, or repeated. A step that is
 * another from here on follows none. */
void impl_follow_next(struct impl_follow *f, uint32_t sequence, uint32_t knobs);
/* The life that begins now, if it has this size; or NULL, and f none. */
const struct impl_life *impl_follow_take(struct impl_follow *f, uint64_t size);

#endif
