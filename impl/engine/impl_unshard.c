/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_unshard.c - unshard and reshard. An all-gather is issued on a stream
 * of its own, as early as the plan says, and waits for no more than the end of
 * what lay in its place; compute waits for it when the unit's window begins.
 */
#include "impl_state.h"

/* The first all-gather after a step follows it; later ones are behind. */
static int wait_for_optimizer(struct fsdp_sharded *s)
{
    if (s->stepped) {
        FSDP_TRY(impl_wait(s, s->gathering, s->env->compute, 0,
                           "optimizer->all-gather"));
        s->stepped = false;
    }
    return FSDP_OK;
}

int impl_gather(struct fsdp_sharded *s, uint32_t u, float *slot,
                uint64_t free_at)
{
    struct impl_unit *x = &s->unit[u];
    float **to = s->packs ? &x->arrived : &x->full;

    FSDP_TRY(wait_for_optimizer(s));
    FSDP_TRY(
        impl_wait(s, s->gathering, s->env->compute, free_at, "dead->reuse"));
    FSDP_TRY(impl_take(s, s->gathering,
                       s->packs ? FSDP_STAGING : FSDP_PARAM_FULL, u, x->padded,
                       slot, to));
    FSDP_TRY(impl_collective(s, s->gathering, FSDP_ALL_GATHER, FSDP_DIM_SHARD,
                             u, x->shard, *to));
    return impl_mark(s, s->gathering, &x->gathered);
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
    return FSDP_OK;
}

int impl_reshard(struct fsdp_sharded *s, uint32_t u, uint64_t *died)
{
    struct impl_unit *x = &s->unit[u];

    x->open = false;
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
