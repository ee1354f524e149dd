/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_reduce.c - sums gradients over ranks: within the shard dimension on one
 * stream, across replicas on another, so that the all-reduce of one unit runs
 * beside the reduce-scatter of the next. A gradient that was sent is dead as
 * soon as the first of the two has read it.
 */
#include "impl_calls.h"

/* The gradient of a unit as it is sent. */
static const void *sent_of(const struct impl_unit *x)
{
    return x->repacks ? x->packed : x->grad;
}

/* With one shard, this rank's chunk is the whole gradient. */
static int copy_own(struct fsdp_sharded *s, struct impl_unit *x, void *to)
{
    const struct fsdp_device *d = s->env->device;

    FSDP_TRY(d->copy(d->self, s->last, to, sent_of(x),
                     x->grad_chunk * fsdp_dtype_bytes(x->dtype.reduce)));
    return impl_mark(s, s->last, &x->sent);
}

/* The sum over shards of this rank's chunk; s->last waits for it. Sets where
 * and until when the unsharded gradient is read. */
static int fold_shards(struct fsdp_sharded *s, uint32_t u, void *to)
{
    struct impl_unit *x = &s->unit[u];
    struct impl_call scatter;

    x->sent_by = s->reducing;
    if (s->shards == 1) {
        return copy_own(s, x, to);
    }
    scatter = (struct impl_call){FSDP_REDUCE_SCATTER, FSDP_DIM_SHARD, u,
                                 x->dtype.reduce,     sent_of(x),     to};
    FSDP_TRY(impl_collective(s, s->reducing, &scatter));
    FSDP_TRY(impl_mark(s, s->reducing, &x->sent));
    return s->replicas > 1 ? impl_wait(s, s->last, s->reducing, x->sent,
                                       "reduce-scatter->all-reduce")
                           : FSDP_OK;
}

static int fold_replicas(struct fsdp_sharded *s, uint32_t u, const void *from,
                         void *to)
{
    const struct impl_call reduce = {FSDP_ALL_REDUCE,
                                     FSDP_DIM_REPLICATE,
                                     u,
                                     s->unit[u].dtype.reduce,
                                     from,
                                     to};

    return impl_collective(s, s->last, &reduce);
}

/* The sum over ranks of this rank's chunk, not scaled yet, on s->last. */
static int fold(struct fsdp_sharded *s, uint32_t u, void *to)
{
    struct impl_unit *x = &s->unit[u];

    if (s->replicas == 1) {
        return fold_shards(s, u, to);
    }
    if (s->shards == 1) { /* nothing to copy first */
        x->sent_by = s->reducing;
        FSDP_TRY(fold_replicas(s, u, sent_of(x), to));
        return impl_mark(s, s->last, &x->sent);
    }
    FSDP_TRY(fold_shards(s, u, to));
    return fold_replicas(s, u, to, to);
}

/* Once, and only the new contribution, never the sum. */
static int scale(struct fsdp_sharded *s, uint32_t u, void *of)
{
    const struct impl_unit *x = &s->unit[u];

    return impl_scale(s, s->last,
                      &(struct impl_value){.unit = u,
                                           .dtype = x->dtype.reduce,
                                           .n = x->grad_chunk},
                      of, x->scale);
}

static int take_shard(struct fsdp_sharded *s, uint32_t u,
                      struct fsdp_stream *stream)
{
    struct impl_unit *x = &s->unit[u];
    void *p;

    FSDP_TRY(impl_take(s, stream,
                       (struct impl_value){FSDP_GRAD_SHARD, u, FSDP_DTYPE_F32,
                                           x->grad_chunk, false},
                       impl_slot(&s->grad_shards, x->own_grad_shard), &p));
    x->grad_shard = p;
    return FSDP_OK;
}

/* Widened: the first is the gradient, a later one is added. */
static int keep(struct fsdp_sharded *s, uint32_t u, const void *what)
{
    struct impl_unit *x = &s->unit[u];

    if (x->grad_shard) {
        return impl_add(s, s->last,
                        &(struct impl_sum){.unit = u,
                                           .to_dtype = FSDP_DTYPE_F32,
                                           .dtype = x->dtype.reduce,
                                           .to = x->grad_shard,
                                           .what = what,
                                           .n = x->grad_chunk});
    }
    FSDP_TRY(take_shard(s, u, s->last));
    return impl_cast(s, s->last,
                     &(struct impl_cast){.unit = u,
                                         .from_dtype = x->dtype.reduce,
                                         .to_dtype = FSDP_DTYPE_F32,
                                         .from = what,
                                         .to = x->grad_shard,
                                         .n = x->grad_chunk});
}

/* Storage of a contribution, in staging until it is kept; or of a gradient that
 * is over as soon. */
static int begin_sum(struct fsdp_sharded *s, uint32_t u, uint32_t kind,
                     const struct impl_life *life, void **sum)
{
    struct impl_unit *x = &s->unit[u];
    uint32_t k = s->next_sum;
    uint64_t at = s->n_sums > 0 ? s->sum_at[k] : life->offset;

    if (!s->strict && !(s->stages & IMPL_STAGE_SUM)) {
        return impl_fail(s->env, FSDP_ERR_INTERNAL, "impl.reduce",
                         "no staging was planned for unit %u", u);
    }
    if (s->sum_done[k] > 0) {
        FSDP_TRY(impl_wait(s, s->reducing, s->sum_by[k], s->sum_done[k],
                           s->sum_by[k] == s->last ? "all-reduce->reuse"
                                                   : "device->host"));
    }
    return impl_take(
        s, s->reducing,
        (struct impl_value){kind, u, x->dtype.reduce, x->grad_chunk, false},
        impl_slot(&s->staging, at), sum);
}

/* Read to the end on `stream`. */
static int end_sum(struct fsdp_sharded *s, uint32_t u,
                   struct fsdp_stream *stream, void **sum)
{
    uint32_t k = s->next_sum;

    impl_dead(s, stream, sum, s->unit[u].grad_chunk);
    s->next_sum = k + 1 < s->n_sums ? k + 1 : 0;
    s->sum_by[k] = stream;
    return impl_mark(s, stream, &s->sum_done[k]);
}

/* To where it is stepped; it is dead then. */
static int hand_over(struct fsdp_sharded *s, uint32_t u, void **sum)
{
    if (s->unit[u].step_on_host) {
        return impl_land(s, u, sum);
    }
    FSDP_TRY(keep(s, u, *sum));
    impl_dead(s, s->last, sum, s->unit[u].grad_chunk);
    return FSDP_OK;
}

/* Reduces to staging a result that must still be cast, added to the gradient or
 * copied to the host. */
static int reduce_to_staging(struct fsdp_sharded *s, uint32_t u,
                             const struct impl_life *life)
{
    void *sum = NULL;

    FSDP_TRY(begin_sum(s, u, FSDP_STAGING, life, &sum));
    FSDP_TRY(fold(s, u, sum));
    FSDP_TRY(scale(s, u, sum));
    FSDP_TRY(hand_over(s, u, &sum));
    return end_sum(s, u, s->unit[u].step_on_host ? s->landing : s->last, &sum);
}

/* ---- Replicas meet later ------------------------------------------------ */

/* A result is the gradient as it is, and where it is. */
static bool is_in_place(const struct impl_unit *x)
{
    return !x->grad_shard && !x->step_on_host &&
           x->dtype.reduce == FSDP_DTYPE_F32;
}

/* Takes the place of the gradient shard, if the partial sum will become
 * that. */
static int take_partial(struct fsdp_sharded *s, uint32_t u)
{
    struct impl_unit *x = &s->unit[u];
    const bool in_place = is_in_place(x);

    return impl_take(s, s->reducing,
                     (struct impl_value){FSDP_GRAD_SHARD, u, x->dtype.reduce,
                                         x->grad_chunk, false},
                     in_place ? impl_slot(&s->grad_shards, x->own_grad_shard)
                              : NULL,
                     &x->partial);
}

/* The first sum over shards is kept, a later one is added. */
static int add_to_partial(struct fsdp_sharded *s, uint32_t u,
                          const struct impl_life *life)
{
    struct impl_unit *x = &s->unit[u];
    void *sum = NULL;

    if (!x->partial) {
        FSDP_TRY(take_partial(s, u));
        return fold_shards(s, u, x->partial);
    }
    FSDP_TRY(begin_sum(s, u, FSDP_STAGING, life, &sum));
    FSDP_TRY(fold_shards(s, u, sum));
    FSDP_TRY(impl_add(s, s->last,
                      &(struct impl_sum){.unit = u,
                                         .to_dtype = x->dtype.reduce,
                                         .dtype = x->dtype.reduce,
                                         .to = x->partial,
                                         .what = sum,
                                         .n = x->grad_chunk}));
    return end_sum(s, u, s->last, &sum);
}

/* Replicas sum over all partial sums at once. */
static int complete_partial(struct fsdp_sharded *s, uint32_t u)
{
    struct impl_unit *x = &s->unit[u];

    FSDP_TRY(fold_replicas(s, u, x->partial, x->partial));
    FSDP_TRY(scale(s, u, x->partial));
    if (is_in_place(x)) {
        x->grad_shard = x->partial;
        x->partial = NULL;
        return FSDP_OK;
    }
    return hand_over(s, u, &x->partial);
}

/* ---- ------------------------------------------------------------------- */

/* The gradient is no more than the sum. */
static int reduce_to_step(struct fsdp_sharded *s, uint32_t u,
                          const struct impl_life *life)
{
    struct impl_unit *x = &s->unit[u];
    void *sum = NULL;

    FSDP_TRY(begin_sum(s, u, FSDP_GRAD_SHARD, life, &sum));
    x->grad_shard = sum;
    x->grad_is_sum = true;
    FSDP_TRY(fold(s, u, sum));
    return scale(s, u, sum);
}

/* A step in the pass: its gradient is over as soon as it is used. */
static int step_reduced(struct fsdp_sharded *s, uint32_t u)
{
    struct impl_unit *x = &s->unit[u];
    const bool is_sum = x->grad_is_sum;
    void *sum = x->grad_shard;

    FSDP_TRY(impl_step_early(s, u));
    x->steps_reduced = x->grad_is_sum = false;
    x->grad_shard = NULL;
    if (is_sum) {
        return end_sum(s, u, s->last, &sum);
    }
    impl_over(s, s->last, sum, x->grad_chunk);
    return FSDP_OK;
}

static int reduce(struct fsdp_sharded *s, uint32_t u,
                  const struct impl_life *sum)
{
    struct impl_unit *x = &s->unit[u];
    const bool stays = s->replicas > 1 && !x->knob.all_reduce;

    if (x->partial || stays) {
        FSDP_TRY(add_to_partial(s, u, sum));
        return stays ? FSDP_OK : complete_partial(s, u);
    }
    if (!is_in_place(x)) {
        return reduce_to_staging(s, u, sum);
    }
    FSDP_TRY(take_shard(s, u, s->reducing));
    FSDP_TRY(fold(s, u, x->grad_shard));
    return scale(s, u, x->grad_shard);
}

int impl_reduce(struct fsdp_sharded *s, uint32_t u, const struct impl_life *sum)
{
    struct impl_unit *x = &s->unit[u];
    const bool steps = impl_steps_early(s, u);

    if (!x->repacks) { /* what is packed is complete */
        FSDP_TRY(impl_complete(s, u));
    }
    FSDP_TRY(impl_wait(s, s->reducing, s->env->compute, 0,
                       s->shards > 1 ? "compute->reduce-scatter"
                                     : "compute->all-reduce"));
    x->in_flight = true;
    x->steps_reduced = steps && !x->step_on_host; /* or when it is there */
    if (steps && !x->partial && is_in_place(x)) {
        FSDP_TRY(reduce_to_step(s, u, sum));
    } else {
        FSDP_TRY(reduce(s, u, sum));
    }
    return x->steps_reduced && s->options.reduces_in_flight > 0
               ? step_reduced(s, u)
               : FSDP_OK;
}

static int retire(struct fsdp_sharded *s, uint32_t u)
{
    struct impl_unit *x = &s->unit[u];

    if (!x->in_flight) {
        return FSDP_OK;
    }
    FSDP_TRY(impl_landed(s, u));
    if (s->options.reduces_in_flight == 0) {
        FSDP_TRY(
            impl_wait(s, s->env->compute, s->last, 0, "reduce->optimizer"));
    }
    FSDP_TRY(
        impl_wait(s, s->env->compute, x->sent_by, x->sent, "reduce->reuse"));
    x->in_flight = false;
    if (x->repacks) {
        impl_dead(s, s->env->compute, &x->packed, x->grad_padded);
        return impl_mark(s, s->env->compute, &x->packed_life->died);
    }
    impl_dead(s, s->env->compute, &x->grad, x->grad_whole);
    return FSDP_OK;
}

/* With nothing in flight the whole reduction has to end here, and what was sent
 * with it, before anything is made live for the unit's step. */
int impl_retire(struct fsdp_sharded *s, uint32_t u)
{
    FSDP_TRY(retire(s, u));
    if (!s->unit[u].steps_reduced) {
        return FSDP_OK;
    }
    FSDP_TRY(impl_wait(s, s->last, s->env->compute, 0, "dead->reuse"));
    FSDP_TRY(step_reduced(s, u));
    return impl_wait(s, s->env->compute, s->last, 0, "step->compute");
}

int impl_retire_all(struct fsdp_sharded *s)
{
    for (uint32_t u = 0; u < s->units.n_units; u++) {
        FSDP_TRY(impl_retire(s, u));
    }
    return FSDP_OK;
}
