/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce.c - 3. A unit's backward is over: its gradient is predivided, rounded
 * to the dtype of the wire, folded over the ranks, scaled there, and widened
 * into the gradient shard. Before replicas meet, partial sums may add up.
 */
#include "sharded.h"

#include <assert.h>
#include <stddef.h>

/* A parameter without a gradient contributes +0, and so does the place of a
 * frozen parameter, if it has one. */
static int fill_missing(struct fsdp_sharded *s, uint32_t u)
{
    const uint32_t dtype = s->unit[u].dtype.accumulate;

    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        struct ref_parameter *x = &s->parameter[p];
        bool has_place = !x->frozen || s->unit[u].has_holes;
        if (ref_is_in(s, p, u) && !x->accumulated && has_place) {
            FSDP_TRY(ref_fill_zero(
                s, REF_DEVICE, u, dtype,
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

    return ref_run(s, REF_DEVICE,
                   (struct fsdp_op){.kind = FSDP_OP_SCALE,
                                    .unit = u,
                                    .aux = {dtype},
                                    .dim = {n},
                                    .f = {factor},
                                    .n_in = 1,
                                    .in = {{p, bytes}},
                                    .n_out = 1,
                                    .out = {{p, bytes}}});
}

/* Predivides the unsharded gradient in place: no backward adds to it any
 * more. */
static int predivide(struct fsdp_sharded *s, uint32_t u)
{
    struct ref_unit *x = &s->unit[u];

    return x->factor.before == 1.0f
               ? FSDP_OK
               : scale(s, u, x->grad_whole, x->dtype.accumulate, x->grad_full,
                       x->factor.before);
}

/* Copies the gradient to the wire, if its elements lie in other places there or
 * have another dtype. The unsharded gradient is not needed any more then. */
static int put_on_wire(struct fsdp_sharded *s, uint32_t u)
{
    struct ref_unit *x = &s->unit[u];
    const struct ref_dtypes *d = &x->dtype;

    if (!s->packs && d->accumulate == d->reduce) {
        return FSDP_OK;
    }
    FSDP_TRY(ref_take(s, REF_DEVICE, FSDP_STAGING, u, x->grad_chunk * s->shards,
                      d->reduce, &x->wire));
    if (s->packs) {
        FSDP_TRY(ref_pack(s, u));
    } else {
        FSDP_TRY(ref_convert(s, REF_DEVICE, u, x->grad_whole, d->accumulate,
                             x->grad_full, d->reduce, x->wire));
    }
    ref_drop(s, REF_DEVICE, &x->grad_full);
    return FSDP_OK;
}

static struct fsdp_collective reduction(const struct ref_unit *x, uint32_t u)
{
    const uint32_t dtype = x->dtype.reduce;

    return (struct fsdp_collective){
        .dtype = dtype,
        .sum_dtype = x->dtype.sum != dtype ? x->dtype.sum : FSDP_DTYPE_NONE,
        .unit = u};
}

/* This rank's chunk of the sum over the shard group. */
static int fold_shards(struct fsdp_sharded *s, uint32_t u, void *to)
{
    const struct ref_unit *x = &s->unit[u];
    const uint32_t dtype = x->dtype.reduce;
    struct fsdp_collective c = reduction(x, u);

    c.kind = FSDP_REDUCE_SCATTER;
    c.dim = FSDP_DIM_SHARD;
    c.in = x->wire ? x->wire : x->grad_full;
    c.out = to;
    return s->shards > 1 ? ref_collective(s, c)
                         : ref_convert(s, REF_DEVICE, u, x->grad_chunk, dtype,
                                       c.in, dtype, to);
}

/* Sums over replicas, then scales once; both in the dtype of the wire. */
static int fold_replicas(struct fsdp_sharded *s, uint32_t u, void *sum)
{
    const struct ref_unit *x = &s->unit[u];
    struct fsdp_collective c = reduction(x, u);

    if (s->replicas > 1) {
        c.kind = FSDP_ALL_REDUCE;
        c.dim = FSDP_DIM_REPLICATE;
        c.in = c.out = sum;
        FSDP_TRY(ref_collective(s, c));
    }
    return scale(s, u, x->grad_chunk, x->dtype.reduce, sum, x->factor.behind);
}

/* The first sum over shards is kept, and later ones are added to it. */
static int add_to_partial(struct fsdp_sharded *s, uint32_t u)
{
    struct ref_unit *x = &s->unit[u];
    const uint32_t dtype = x->dtype.reduce;

    if (!x->partial) {
        FSDP_TRY(ref_take(s, REF_DEVICE, FSDP_GRAD_SHARD, u, x->grad_chunk,
                          dtype, &x->partial));
        return fold_shards(s, u, x->partial);
    }
    FSDP_TRY(ref_take(s, REF_DEVICE, FSDP_STAGING, u, x->grad_chunk, dtype,
                      &x->reduced));
    FSDP_TRY(fold_shards(s, u, x->reduced));
    FSDP_TRY(ref_add_to(s, REF_DEVICE, u, x->grad_chunk, dtype, x->partial,
                        dtype, x->reduced));
    ref_drop(s, REF_DEVICE, &x->reduced);
    return FSDP_OK;
}

/* Whether a reduction's result already lies where it will rest. */
static bool is_kept(const struct ref_unit *x)
{
    return !x->grad_shard && x->dtype.reduce == FSDP_DTYPE_F32;
}

/* Copies a sum from the device to the host. */
static int land(struct fsdp_sharded *s, uint32_t u, const void *sum)
{
    struct ref_unit *x = &s->unit[u];
    const uint32_t dtype = x->dtype.reduce;

    FSDP_TRY(ref_take(s, REF_HOST, is_kept(x) ? FSDP_GRAD_SHARD : FSDP_STAGING,
                      u, x->grad_chunk, dtype, &x->landed));
    return ref_cross(s, REF_HOST, x->grad_chunk * fsdp_dtype_bytes(dtype), sum,
                     x->landed);
}

/* Makes gradient shards of a sum over shards. The first result of a step is
 * kept, and if it is float32 it already lies in its place; later ones are added
 * to it. Only the new contribution is divided, never the sum. */
static int complete(struct fsdp_sharded *s, uint32_t u, void **folded)
{
    struct ref_unit *x = &s->unit[u];
    const uint32_t dtype = x->dtype.reduce;
    void **sum = x->step_at == REF_HOST ? &x->landed : folded;

    FSDP_TRY(fold_replicas(s, u, *folded));
    if (x->step_at == REF_HOST) {
        FSDP_TRY(land(s, u, *folded));
    }
    if (x->grad_shard) {
        FSDP_TRY(ref_add_to(s, x->step_at, u, x->grad_chunk, FSDP_DTYPE_F32,
                            x->grad_shard, dtype, *sum));
    } else if (dtype == FSDP_DTYPE_F32) {
        x->grad_shard = *sum;
        *sum = NULL;
    } else {
        FSDP_TRY(ref_take(s, x->step_at, FSDP_GRAD_SHARD, u, x->grad_chunk,
                          FSDP_DTYPE_F32, &x->grad_shard));
        FSDP_TRY(ref_convert(s, x->step_at, u, x->grad_chunk, dtype, *sum,
                             FSDP_DTYPE_F32, x->grad_shard));
    }
    ref_drop(s, x->step_at, sum);
    ref_drop(s, REF_DEVICE, folded);
    return FSDP_OK;
}

static int reduce_and_add(struct fsdp_sharded *s, uint32_t u)
{
    struct ref_unit *x = &s->unit[u];
    const uint32_t dtype = x->dtype.reduce;
    const bool in_place = is_kept(x) && x->step_at == REF_DEVICE;
    const bool stays = s->replicas > 1 && !x->knob.all_reduce;

    if (x->partial || stays) {
        FSDP_TRY(add_to_partial(s, u));
        return stays ? FSDP_OK : complete(s, u, &x->partial);
    }
    FSDP_TRY(ref_take(s, REF_DEVICE, in_place ? FSDP_GRAD_SHARD : FSDP_STAGING,
                      u, x->grad_chunk, dtype, &x->reduced));
    FSDP_TRY(fold_shards(s, u, x->reduced));
    return complete(s, u, &x->reduced);
}

int ref_reduce(struct fsdp_sharded *s, uint32_t u)
{
    struct ref_unit *x = &s->unit[u];
    int status;

    if (!x->trains) {
        return FSDP_OK;
    }
    assert(x->grad_full && !x->wire && !x->reduced);
    FSDP_TRY(fill_missing(s, u));
    FSDP_TRY(predivide(s, u));
    FSDP_TRY(put_on_wire(s, u));
    status = reduce_and_add(s, u);
    ref_drop(s, REF_DEVICE, &x->reduced);
    ref_drop(s, REF_HOST, &x->landed);
    ref_drop(s, REF_DEVICE, &x->wire);
    ref_drop(s, REF_DEVICE, &x->grad_full);
    return status;
}
