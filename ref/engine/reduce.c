/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce.c - 3. A unit's backward is over: its gradient is predivided, rounded
 * to the dtype of the wire, folded over the ranks, scaled there, and widened
 * into the gradient shard.
 */
#include "sharded.h"

#include <stddef.h>

/* A parameter that got no gradient contributes +0; so does the place of a
 * frozen one, where there is one. */
static int fill_missing(struct fsdp_sharded *s, uint32_t u)
{
    const uint32_t dtype = s->unit[u].dtype.accumulate;

    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        struct ref_parameter *x = &s->parameter[p];
        bool has_place = !x->frozen || s->unit[u].has_holes;
        if (x->unit == u && !x->accumulated && has_place) {
            FSDP_TRY(ref_fill_zero(
                s, u, dtype,
                ref_at(s->unit[u].grad_full, dtype, x->grad_offset), x->numel));
        }
        if (x->unit == u) {
            x->accumulated = false;
        }
    }
    return FSDP_OK;
}

static int scale(struct fsdp_sharded *s, uint32_t u, uint64_t n, uint32_t dtype,
                 void *p, float factor)
{
    const uint64_t bytes = n * fsdp_dtype_bytes(dtype);

    return ref_run(s, (struct fsdp_op){.kind = FSDP_OP_SCALE,
                                       .unit = u,
                                       .aux = {dtype},
                                       .dim = {n},
                                       .f = {factor},
                                       .n_in = 1,
                                       .in = {{p, bytes}},
                                       .n_out = 1,
                                       .out = {{p, bytes}}});
}

/* In place: whatever is pending is complete now. */
static int predivide(struct fsdp_sharded *s, uint32_t u)
{
    struct ref_unit *x = &s->unit[u];

    return x->factor.before == 1.0f
               ? FSDP_OK
               : scale(s, u, x->grad_whole, x->dtype.accumulate, x->grad_full,
                       x->factor.before);
}

/* What is sent is not what was summed: other places, or another dtype. What
 * was summed is not needed any more then. */
static int put_on_wire(struct fsdp_sharded *s, uint32_t u)
{
    struct ref_unit *x = &s->unit[u];
    const struct ref_dtypes *d = &x->dtype;

    if (!s->packs && d->accumulate == d->reduce) {
        return FSDP_OK;
    }
    FSDP_TRY(ref_take(s, FSDP_STAGING, u, x->grad_chunk * s->shards, d->reduce,
                      &x->wire));
    if (s->packs) {
        FSDP_TRY(ref_pack(s, u));
    } else {
        FSDP_TRY(ref_convert(s, u, x->grad_whole, d->accumulate, x->grad_full,
                             d->reduce, x->wire));
    }
    ref_drop(s, &x->grad_full);
    return FSDP_OK;
}

/* The sum over ranks, of this rank's chunk: within the shard group, then
 * across replicas; then scaled, once. All of it in the dtype of the wire. */
static int reduce_into(struct fsdp_sharded *s, uint32_t u, void *to)
{
    const struct ref_unit *x = &s->unit[u];
    const uint32_t dtype = x->dtype.reduce;
    struct fsdp_collective c = {
        .kind = FSDP_REDUCE_SCATTER,
        .dim = FSDP_DIM_SHARD,
        .dtype = dtype,
        .sum_dtype = x->dtype.sum != dtype ? x->dtype.sum : FSDP_DTYPE_NONE,
        .unit = u,
        .in = x->wire ? x->wire : x->grad_full,
        .out = to};

    if (s->shards > 1) {
        FSDP_TRY(ref_collective(s, c));
    } else {
        FSDP_TRY(ref_convert(s, u, x->grad_chunk, dtype, c.in, dtype, to));
    }
    if (s->replicas > 1) {
        c.kind = FSDP_ALL_REDUCE;
        c.dim = FSDP_DIM_REPLICATE;
        c.in = to;
        FSDP_TRY(ref_collective(s, c));
    }
    return scale(s, u, x->grad_chunk, dtype, to, x->factor.behind);
}

/* The first result of a step is kept, and of float32 it is made in its place;
 * a later one is added. Only the new contribution is divided, never the sum. */
static int reduce_and_add(struct fsdp_sharded *s, uint32_t u)
{
    struct ref_unit *x = &s->unit[u];
    const uint32_t dtype = x->dtype.reduce;

    if (!x->grad_shard && dtype == FSDP_DTYPE_F32) {
        FSDP_TRY(ref_take(s, FSDP_GRAD_SHARD, u, x->grad_chunk, FSDP_DTYPE_F32,
                          &x->grad_shard));
        return reduce_into(s, u, x->grad_shard);
    }
    FSDP_TRY(ref_take(s, FSDP_STAGING, u, x->grad_chunk, dtype, &x->reduced));
    FSDP_TRY(reduce_into(s, u, x->reduced));
    if (x->grad_shard) {
        return ref_add_to(s, u, x->grad_chunk, FSDP_DTYPE_F32, x->grad_shard,
                          dtype, x->reduced);
    }
    FSDP_TRY(ref_take(s, FSDP_GRAD_SHARD, u, x->grad_chunk, FSDP_DTYPE_F32,
                      &x->grad_shard));
    return ref_convert(s, u, x->grad_chunk, dtype, x->reduced, FSDP_DTYPE_F32,
                       x->grad_shard);
}

int ref_reduce(struct fsdp_sharded *s, uint32_t u)
{
    struct ref_unit *x = &s->unit[u];
    int status;

    if (!x->trains) {
        return FSDP_OK;
    }
    FSDP_TRY(fill_missing(s, u));
    FSDP_TRY(predivide(s, u));
    FSDP_TRY(put_on_wire(s, u));
    status = reduce_and_add(s, u);
    ref_drop(s, &x->reduced);
    ref_drop(s, &x->wire);
    ref_drop(s, &x->grad_full);
    return status;
}
