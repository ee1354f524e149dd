/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_unshard.c - unshard and reshard. An all-gather is issued on a stream of
 * its own, as early as the plan says, and waits for no more than the end of the
 * value that lay in its place; compute waits for it when the unit's window
 * begins. A shard that rests on the host is copied before it in the same way.
 */
#include "impl_calls.h"

/* The first all-gather after a step waits for the step; later ones are issued
 * after that one. */
static int wait_for_optimizer(struct fsdp_sharded *s)
{
    if (s->stepped && s->shards > 1) {
        FSDP_TRY(impl_wait(s, s->gathering, s->env->compute, 0,
                           "optimizer->all-gather"));
    }
    if (s->stepped && s->brings) {
        FSDP_TRY(
            impl_wait(s, s->bringing, s->env->compute, 0, "optimizer->copy"));
    }
    s->stepped = false;
    return FSDP_OK;
}

/* This rank's shard with its padding, cast to the dtype it is computed with. */
static int cast_shard(struct fsdp_sharded *s, struct fsdp_stream *stream,
                      uint32_t u, uint32_t dtype, void *to)
{
    const struct impl_unit *x = &s->unit[u];

    return impl_cast(s, stream,
                     &(struct impl_cast){.unit = u,
                                         .from_dtype = FSDP_DTYPE_F32,
                                         .to_dtype = dtype,
                                         .from = x->shard,
                                         .to = to,
                                         .n = x->chunk});
}

int impl_gather(struct fsdp_sharded *s, uint32_t u, uint32_t dtype, void *slot,
                uint64_t free_at)
{
    struct impl_unit *x = &s->unit[u];
    struct fsdp_stream *stream = s->shards > 1 ? s->gathering : s->env->compute;
    const bool casts = dtype != FSDP_DTYPE_F32;
    /* A shard on the host that is not cast is copied directly to its place. */
    struct fsdp_stream *first =
        x->shard_on_host && !casts ? s->bringing : stream;
    void **to = s->packs ? &x->arrived : &x->full;
    struct impl_call call = {.kind = FSDP_ALL_GATHER,
                             .dim = FSDP_DIM_SHARD,
                             .unit = u,
                             .dtype = dtype,
                             .in = x->shard};

    FSDP_TRY(wait_for_optimizer(s));
    FSDP_TRY(impl_wait(s, first, s->env->compute, free_at, "dead->reuse"));
    if (s->strict && x->shard_on_host && casts) { /* the arena gives it any
                                                   * place */
        FSDP_TRY(impl_wait(s, s->bringing, s->env->compute, 0, "dead->reuse"));
    }
    FSDP_TRY(
        impl_take(s, first,
                  (struct impl_value){s->packs ? FSDP_STAGING : FSDP_PARAM_FULL,
                                      u, dtype, x->padded, false},
                  slot, to));
    x->full_dtype = dtype;
    call.out = *to;
    if (casts || x->shard_on_host) {
        void *own = impl_element(*to, dtype, s->coordinate * x->chunk);

        FSDP_TRY(x->shard_on_host ? impl_bring(s, stream, u, dtype, own)
                                  : cast_shard(s, stream, u, dtype, own));
        call.in = own;
    }
    if (s->shards == 1) {
        return FSDP_OK;
    }
    FSDP_TRY(impl_collective(s, stream, &call));
    return impl_mark(s, stream, &x->gathered);
}

/* Compute waits for this unit's all-gather alone, not for those ahead. */
int impl_open(struct fsdp_sharded *s, uint32_t u)
{
    struct impl_unit *x = &s->unit[u];

    if (!x->open && s->shards > 1) {
        FSDP_TRY(impl_wait(s, s->env->compute, s->gathering, x->gathered,
                           "all-gather->compute"));
    }
    x->open = true;
    x->by_hand = false;
    return FSDP_OK;
}

int impl_reshard(struct fsdp_sharded *s, uint32_t u, uint64_t *died)
{
    struct impl_unit *x = &s->unit[u];

    x->open = x->windowed = x->by_hand = false;
    if (!x->full) {
        return FSDP_OK;
    }
    impl_dead(s, s->env->compute, &x->full, x->whole);
    return impl_mark(s, s->env->compute, died);
}

int impl_reshard_each(struct fsdp_sharded *s)
{
    uint64_t died;

    if (s->shards > 1) { /* some may be on their way */
        FSDP_TRY(impl_wait(s, s->env->compute, s->gathering, 0,
                           "all-gather->compute"));
    }
    for (uint32_t u = 0; u < s->units.n_units; u++) {
        impl_dead(s, s->env->compute, &s->unit[u].arrived, s->unit[u].padded);
        FSDP_TRY(impl_reshard(s, u, &died));
    }
    return FSDP_OK;
}
