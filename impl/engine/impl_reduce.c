/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_reduce.c - gradients meet: within the shard dimension on one stream,
 * across replicas on another, so that the second of one unit runs beside the
 * first of the next. What was sent is dead as soon as the first has read it.
 */
#include "impl_state.h"

/* The sum over ranks of this rank's chunk, not scaled yet, on s->last. Sets
 * where and until when the unsharded gradient is read. */
static int fold(struct fsdp_sharded *s, uint32_t u, float *to)
{
    struct impl_unit *x = &s->unit[u];
    const struct fsdp_device *d = s->env->device;

    x->sent_by = s->reducing;
    if (s->shards > 1) {
        FSDP_TRY(impl_collective(s, s->reducing, FSDP_REDUCE_SCATTER,
                                 FSDP_DIM_SHARD, u,
                                 s->packs ? x->packed : x->grad, to));
        FSDP_TRY(impl_mark(s, s->reducing, &x->sent));
        if (s->replicas == 1) {
            return FSDP_OK;
        }
        FSDP_TRY(impl_wait(s, s->last, s->reducing, x->sent,
                           "reduce-scatter->all-reduce"));
        return impl_collective(s, s->last, FSDP_ALL_REDUCE, FSDP_DIM_REPLICATE,
                               u, to, to);
    }
    if (s->replicas > 1) {
        FSDP_TRY(impl_collective(s, s->last, FSDP_ALL_REDUCE,
                                 FSDP_DIM_REPLICATE, u, x->grad, to));
    } else {
        FSDP_TRY(
            d->copy(d->self, s->last, to, x->grad, x->chunk * sizeof(*to)));
    }
    return impl_mark(s, s->last, &x->sent);
}

/* Once, and only the new contribution, never the sum. */
static int scale(struct fsdp_sharded *s, uint32_t u, float *of)
{
    struct impl_unit *x = &s->unit[u];
    uint64_t bytes = x->chunk * sizeof(*of);

    if (x->scale == 1.0f || x->chunk == 0) {
        return FSDP_OK;
    }
    return impl_run(s, s->last,
                    (struct fsdp_op){.kind = FSDP_OP_SCALE,
                                     .unit = u,
                                     .dim = {x->chunk},
                                     .f = {x->scale},
                                     .n_in = 1,
                                     .in = {{of, bytes}},
                                     .n_out = 1,
                                     .out = {{of, bytes}}});
}

static int add(struct fsdp_sharded *s, uint32_t u, const float *what)
{
    float *to = s->unit[u].grad_shard;
    uint64_t bytes = s->unit[u].chunk * sizeof(*to);

    return impl_run(s, s->last,
                    (struct fsdp_op){.kind = FSDP_OP_ADD,
                                     .unit = u,
                                     .dim = {s->unit[u].chunk},
                                     .n_in = 2,
                                     .in = {{to, bytes}, {what, bytes}},
                                     .n_out = 1,
                                     .out = {{to, bytes}}});
}

/* A later contribution lies in staging until it is added. */
static int reduce_again(struct fsdp_sharded *s, uint32_t u,
                        const struct impl_life *life)
{
    struct impl_unit *x = &s->unit[u];
    uint32_t k = s->next_sum;
    uint64_t at = s->n_sums > 0 ? s->sum_at[k] : life->offset;
    float *sum;

    if (!s->strict && !(s->stages & IMPL_STAGE_SUM)) {
        return impl_fail(s->env, FSDP_ERR_INTERNAL, "impl.reduce",
                         "no staging was planned for unit %u", u);
    }
    if (s->sum_done[k] > 0) {
        FSDP_TRY(impl_wait(s, s->reducing, s->last, s->sum_done[k],
                           "all-reduce->reuse"));
    }
    FSDP_TRY(impl_take(s, s->reducing, FSDP_STAGING, u, x->chunk,
                       impl_slot(&s->staging, at), &sum));
    FSDP_TRY(fold(s, u, sum));
    FSDP_TRY(scale(s, u, sum));
    FSDP_TRY(add(s, u, sum));
    impl_dead(s, s->last, &sum, x->chunk);
    s->next_sum = k + 1 < s->n_sums ? k + 1 : 0;
    return impl_mark(s, s->last, &s->sum_done[k]);
}

int impl_reduce(struct fsdp_sharded *s, uint32_t u, const struct impl_life *sum)
{
    struct impl_unit *x = &s->unit[u];

    if (!s->packs) { /* what is packed is complete */
        FSDP_TRY(impl_fill_missing(s, u));
    }
    FSDP_TRY(impl_wait(s, s->reducing, s->env->compute, 0,
                       s->shards > 1 ? "compute->reduce-scatter"
                                     : "compute->all-reduce"));
    x->in_flight = true;
    if (x->grad_shard) {
        return reduce_again(s, u, sum);
    }
    FSDP_TRY(impl_take(s, s->reducing, FSDP_GRAD_SHARD, u, x->chunk,
                       impl_slot(&s->grad_shards, x->own_grad_shard),
                       &x->grad_shard));
    FSDP_TRY(fold(s, u, x->grad_shard));
    return scale(s, u, x->grad_shard);
}

/* With nothing in flight the whole reduction has to end here. */
int impl_retire(struct fsdp_sharded *s, uint32_t u)
{
    struct impl_unit *x = &s->unit[u];

    if (!x->in_flight) {
        return FSDP_OK;
    }
    if (s->options.reduces_in_flight == 0) {
        FSDP_TRY(
            impl_wait(s, s->env->compute, s->last, 0, "reduce->optimizer"));
    }
    FSDP_TRY(
        impl_wait(s, s->env->compute, x->sent_by, x->sent, "reduce->reuse"));
    x->in_flight = false;
    if (s->packs) {
        impl_dead(s, s->env->compute, &x->packed, x->padded);
        return impl_mark(s, s->env->compute, &x->packed_life->died);
    }
    impl_dead(s, s->env->compute, &x->grad, x->whole);
    return FSDP_OK;
}

int impl_retire_all(struct fsdp_sharded *s)
{
    for (uint32_t u = 0; u < s->units.n_units; u++) {
        FSDP_TRY(impl_retire(s, u));
    }
    return FSDP_OK;
}
