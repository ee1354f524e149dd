/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_arena.h - storage of the strict profile: all values that are not at rest
 * lie in one allocation, as large as the most that lives at once.
 *
 * How large that is shows only when a step has been seen: how many microbatches
 * it has, which of them are reduced, which parameters get a gradient. So in the
 * first step of its kind each value has an allocation of its own for as long as
 * it lives. That step is written down (impl_trace.h); when it is over all its
 * values get places (impl_place.h), and from the next one on nothing is
 * allocated. When a step turns out to differ, its values go into gaps of the
 * allocation; one that fits in no gap gets an allocation of its own.
 *
 * How close is that to what lives at once? An exact placement exists where
 * units lie flat and are resharded after forward, windows nest or are apart,
 * and every microbatch is reduced. From below come gradient shards, in the
 * order in which windows close: they die together. From above comes a stack:
 * for each window the gradient and on it the unsharded copy, which begins just
 * before, then the windows inside, fresh gradients and later contributions. The
 * value on top ends first, so that neither side has a hole when a value begins,
 * and both together are as high as all that lives.
 *
 * Units that are kept, gradients that wait for a later microbatch and packed
 * values do not nest like that. Then places are searched for. The search finds
 * exact ones for every case of the manifest; over 6000 drawn steps of very
 * unequal units it missed them in twelve, by less than 3 % in the worst.
 *
 * A place is used again without asking which stream used it last: in the strict
 * profile every stream waits for compute before it is given work, and compute
 * for it before the next.
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
    uint32_t life; /* of the step's trace, or IMPL_NO_LIFE */
    bool own;      /* it has an allocation of its own */
};

struct impl_arena {
    const struct fsdp_env *env;
    float *p; /* NULL: not made */
    uint64_t room;
    struct impl_taken *taken;
    uint32_t n_taken, capacity;

    struct impl_trace known[IMPL_KNOWN_STEPS]; /* the newest one first */
    struct impl_trace step;                    /* the step that is under way */
    struct impl_follow follow;
    bool in_pass;
    bool cancelled; /* a pass of this step was: nothing is learnt from it */
};

/* A pass begins, and with the first pass a step. NOMEM, the device's
 * failure. */
int impl_arena_begin(struct impl_arena *a, uint32_t sequence, uint32_t knobs);
/* The pass is over. */
void impl_arena_end(struct impl_arena *a, bool cancelled);
/* Between passes: ends the step if nothing lives. NOMEM, the device's. */
int impl_arena_settle(struct impl_arena *a);
/* Frees the storage until the next pass, unless something lives there. */
int impl_arena_rest(struct impl_arena *a);

/* Finds a place for n > 0 elements. */
int impl_arena_take(struct impl_arena *a, uint64_t n, float **out);
/* Gives back a value that died on `stream`. No effect on NULL, and on a pointer
 * that was not taken here. */
void impl_arena_give(struct impl_arena *a, struct fsdp_stream *stream,
                     const void *p);
void impl_arena_release(struct impl_arena *a); /* any state */

#endif
