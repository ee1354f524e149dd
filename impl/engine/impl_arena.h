/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_arena.h - storage of the strict profile: all that is not at rest lies
 * in one allocation, as large as what lives of it at once.
 *
 * How large that is shows only when a step has been seen: how many
 * microbatches it has, which of them are reduced, which parameters get a
 * gradient. So in the first step of its kind each value has an allocation of
 * its own for as long as it lives. That step is written down (impl_trace.h);
 * when it is over all its values get places (impl_place.h), and from the
 * next one on nothing is allocated. A step that turns out to be another on its
 * way takes gaps of the allocation, and what fits in none is on its own.
 *
 * How close to what lives at once is that? Where units lie flat, are resharded
 * after forward, have windows that nest or are apart, and every microbatch is
 * reduced, there is an exact placement. From below, gradient shards, in the
 * order in which windows close: they die together. From above, a stack: of
 * each window the gradient and on it the unsharded copy, which begins just
 * before, then the windows inside, fresh gradients and later contributions.
 * Who lies on top ends first, so that no side has a hole when something
 * begins, and both together are as high as what lives.
 *
 * Units that are kept, gradients that wait for a later microbatch and what is
 * packed do not nest like that. Then places are searched for. The search finds
 * exact ones for every case of the manifest; over 6000 drawn steps of very
 * unequal units it missed them in twelve, by less than 3 % in the worst.
 *
 * A place is used again without asking which stream used it last: in the
 * strict profile every stream waits for compute before it is given work, and
 * compute for it before the next.
 */
#ifndef FSDP_CTS_IMPL_ARENA_H
#define FSDP_CTS_IMPL_ARENA_H

#include "impl_trace.h"

#include <fsdp/engine.h>

enum {
    IMPL_KNOWN_STEPS = 8
}; /* kinds of steps that are remembered */

struct impl_taken {
    float *p;
    uint64_t n;
    uint32_t life; /* of the step, or IMPL_NO_LIFE */
    bool own;      /* an allocation of its own */
};

struct impl_arena {
    const struct fsdp_env *env;
    float *p; /* NULL: not made */
    uint64_t room;
    struct impl_taken *taken;
    uint32_t n_taken, capacity;

    struct impl_trace known[IMPL_KNOWN_STEPS]; /* the newest one first */
    struct impl_trace step;                    /* this one */
    struct impl_follow follow;
    bool in_pass;
    bool cancelled; /* this step: nothing is learnt from it */
};

/* A pass begins, or a step with it. NOMEM, the device's failure. */
int impl_arena_begin(struct impl_arena *a, uint32_t sequence, uint32_t knobs);
/* It is over. */
void impl_arena_end(struct impl_arena *a, bool cancelled);
/* Between passes: if nothing lives, the step is over. NOMEM, the device's. */
int impl_arena_settle(struct impl_arena *a);
/* Storage goes until the next pass, unless something lives there. */
int impl_arena_rest(struct impl_arena *a);

/* Place for n > 0 elements. */
int impl_arena_take(struct impl_arena *a, uint64_t n, float **out);
/* What died on `stream`. NULL, or what was not taken: no effect. */
void impl_arena_give(struct impl_arena *a, struct fsdp_stream *stream,
                     const void *p);
void impl_arena_release(struct impl_arena *a); /* any state */

#endif
