/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect_walk_reduce.c - what happens to a unit's gradient when its backward
 * window closes; and the knobs of units, which `set` changes.
 */
#include "judge/oracle/expect_walk_units.h"

#include <stddef.h>

static int fold_shards(struct walk *w, uint32_t u)
{
    return w->e->shards > 1
               ? expect_walk_communicate(w, FSDP_REDUCE_SCATTER, FSDP_DIM_SHARD,
                                         u, w->e->unit[u].dtype.reduce)
               : FSDP_OK;
}

static int fold_replicas(struct walk *w, uint32_t u)
{
    return w->e->replicas > 1
               ? expect_walk_communicate(w, FSDP_ALL_REDUCE, FSDP_DIM_REPLICATE,
                                         u, w->e->unit[u].dtype.reduce)
               : FSDP_OK;
}

/* Adds a sum over shards that replicas have yet to add up. The first one is
 * kept as a gradient shard; a later one is staged until it is added. */
static int add_to_partial(struct walk *w, uint32_t u)
{
    const struct expect_unit *x = &w->e->unit[u];
    const bool first = !w->unit[u].partial;

    expect_walk_grow(w, first ? FSDP_GRAD_SHARD : FSDP_STAGING, x->dtype.reduce,
                     x->grad_chunk);
    FSDP_TRY(fold_shards(w, u));
    if (!first) {
        expect_walk_shrink(w, FSDP_STAGING, x->dtype.reduce, x->grad_chunk);
    }
    w->unit[u].partial = true;
    return FSDP_OK;
}

/* Whether the result is kept as the gradient shard: it is the first one, and of
 * float32. Otherwise a gradient shard is made of it. */
static bool is_kept(const struct walk *w, uint32_t u)
{
    return !w->unit[u].reduced && w->e->unit[u].dtype.reduce == FSDP_DTYPE_F32;
}

/* Keeps the result that all ranks have added up, which lies where `kind` says,
 * or copies it to the host. */
static void keep(struct walk *w, uint32_t u, uint32_t kind)
{
    const struct expect_unit *x = &w->e->unit[u];
    const uint32_t reduce = x->dtype.reduce;
    const bool kept = is_kept(w, u);
    uint32_t at = kind;

    if (x->step_on_host) {
        at = RECORD_HOST + (kept ? FSDP_GRAD_SHARD : FSDP_STAGING);
        expect_walk_grow(w, at, reduce, x->grad_chunk);
        expect_walk_take(w, expect_walk_bytes(reduce, x->grad_chunk));
    }
    if (!w->unit[u].reduced && !kept) {
        expect_walk_grow(w, expect_walk_at(x->step_on_host, FSDP_GRAD_SHARD),
                         FSDP_DTYPE_F32, x->grad_chunk);
    }
    if (!kept) {
        expect_walk_shrink(w, at, reduce, x->grad_chunk);
    }
    if (x->step_on_host) {
        expect_walk_shrink(w, kind, reduce, x->grad_chunk);
    }
    w->unit[u].reduced = true;
}

static int complete_partial(struct walk *w, uint32_t u)
{
    FSDP_TRY(fold_replicas(w, u));
    keep(w, u, FSDP_GRAD_SHARD);
    w->unit[u].partial = false;
    return FSDP_OK;
}

/* All ranks meet. */
static int fold_all(struct walk *w, uint32_t u)
{
    const struct expect_unit *x = &w->e->unit[u];
    const uint32_t kind =
        is_kept(w, u) && !x->step_on_host ? FSDP_GRAD_SHARD : FSDP_STAGING;

    expect_walk_grow(w, kind, x->dtype.reduce, x->grad_chunk);
    FSDP_TRY(fold_shards(w, u));
    FSDP_TRY(fold_replicas(w, u));
    keep(w, u, kind);
    return FSDP_OK;
}

static int fold(struct walk *w, uint32_t u)
{
    const bool stays = w->e->replicas > 1 && !w->unit[u].knob.all_reduce;

    if (!w->unit[u].partial && !stays) {
        return fold_all(w, u);
    }
    FSDP_TRY(add_to_partial(w, u));
    return stays ? FSDP_OK : complete_partial(w, u);
}

bool expect_walk_steps(const struct walk *w, uint32_t u)
{
    const struct walk_knobs *knob = &w->unit[u].knob;

    return w->steps && w->e->unit[u].trains && knob->sync &&
           (w->e->replicas == 1 || knob->all_reduce);
}

static void step_unit(struct walk *w, uint32_t u)
{
    const struct expect_unit *x = &w->e->unit[u];
    const uint32_t at = expect_walk_at(x->step_on_host, FSDP_STAGING);
    const uint64_t bytes = expect_walk_bytes(FSDP_DTYPE_F32, x->chunk);

    if (x->shard_on_host != x->step_on_host) {
        expect_walk_grow(w, at, FSDP_DTYPE_F32, x->chunk);
        expect_walk_take(w, bytes);
        expect_walk_bring(w, bytes);
        expect_walk_shrink(w, at, FSDP_DTYPE_F32, x->chunk);
    }
}

void expect_walk_step(struct walk *w)
{
    for (uint32_t u = 0; u < w->e->units->n_units; u++) {
        if (w->unit[u].reduced) {
            step_unit(w, u);
        }
    }
}

/* Steps the unit if the pass was given a step; its gradient shard then ends. */
static void step(struct walk *w, uint32_t u)
{
    const struct expect_unit *x = &w->e->unit[u];

    if (expect_walk_steps(w, u)) {
        step_unit(w, u);
        expect_walk_shrink(w, expect_walk_at(x->step_on_host, FSDP_GRAD_SHARD),
                           FSDP_DTYPE_F32, x->grad_chunk);
        w->unit[u].reduced = false;
        w->unit[u].stepped = true;
    }
}

/* The unit's backward window closes, with sync. The reduction needs room while
 * what it reads is still live: the unsharded gradient, or its packed copy. */
int expect_walk_reduce(struct walk *w, uint32_t u)
{
    const struct expect_unit *x = &w->e->unit[u];
    const struct expect_dtypes *d = &x->dtype;
    const bool sent_apart = w->e->packs || d->accumulate != d->reduce;

    if (!x->trains) {
        return FSDP_OK;
    }
    if (sent_apart) {
        expect_walk_grow(w, FSDP_STAGING, d->reduce, x->grad_padded);
        expect_walk_shrink(w, FSDP_GRAD_FULL, d->accumulate, x->grad_whole);
    }
    FSDP_TRY(fold(w, u));
    w->unit[u].pending = false;
    if (sent_apart) {
        expect_walk_shrink(w, FSDP_STAGING, d->reduce, x->grad_padded);
    } else {
        expect_walk_shrink(w, FSDP_GRAD_FULL, d->accumulate, x->grad_whole);
    }
    step(w, u);
    return FSDP_OK;
}

/* ---- Knobs -------------------------------------------------------------- */

static bool stays_unsharded(const struct expect *e, uint32_t u)
{
    const uint32_t *own = e->units->reshard_after_forward;

    if (e->options.keep_root != 0 && u == e->units->unit_of_module[0]) {
        return true;
    }
    if (own && own[u] != 0) {
        return own[u] == 2;
    }
    return e->options.reshard_after_forward == 0;
}

void expect_walk_set_knobs(struct walk *w)
{
    for (uint32_t u = 0; u < w->e->units->n_units; u++) {
        w->unit[u].next_knob =
            (struct walk_knobs){true, true, !stays_unsharded(w->e, u), true};
    }
}

void expect_walk_set(struct walk *w, uint32_t unit, uint32_t knob, float value)
{
    for (uint32_t u = 0; u < w->e->units->n_units; u++) {
        struct walk_knobs *of = &w->unit[u].next_knob;

        if (unit != FSDP_NO_UNIT && unit != u) {
            continue;
        }
        switch (knob) {
        case FSDP_KNOB_GRADIENT_SYNC:
            of->sync = value != 0.0f;
            break;
        case FSDP_KNOB_ALL_REDUCE:
            of->all_reduce = value != 0.0f;
            break;
        case FSDP_KNOB_RESHARD_AFTER_FORWARD:
            of->reshard_forward = value != 0.0f;
            break;
        case FSDP_KNOB_RESHARD_AFTER_BACKWARD:
            of->reshard_backward = value != 0.0f;
            break;
        default: /* factors move nothing */
            break;
        }
    }
}
