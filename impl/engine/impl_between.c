/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_between.c - the functions of the contract between passes: the step,
 * gradients dropped, pieces shown, all of it unsharded.
 */
#include "impl_state.h"

#include <stddef.h>

int impl_at_rest(const struct fsdp_sharded *s, const char *where)
{
    if (s->torn) {
        return impl_fail(s->env, FSDP_ERR_INVALID, where,
                         "a load failed half way: load again");
    }
    if (s->sequence || s->all_unsharded) {
        return impl_fail(s->env, FSDP_ERR_INVALID, where,
                         "only at rest: not between BEGIN and END, nor between "
                         "unshard_all and reshard_all");
    }
    return FSDP_OK;
}

int impl_set_gradient_sync(struct fsdp_sharded *s, uint32_t on)
{
    s->next_sync = on != 0;
    return FSDP_OK;
}

static int check_step(const struct fsdp_sharded *s, const struct fsdp_step *how)
{
    uint32_t groups = s->options.n_groups ? s->options.n_groups : 1;

    FSDP_TRY(impl_at_rest(s, "impl.step"));
    if ((how->n_groups ? how->n_groups : 1) != groups || !how->lr) {
        return impl_fail(s->env, FSDP_ERR_INVALID, "impl.step",
                         "%u parameter groups, but the options have %u, each "
                         "with a learning rate",
                         how->n_groups, groups);
    }
    if (how->inverse_scale != 0.0f && how->inverse_scale != 1.0f) {
        return impl_fail(s->env, FSDP_ERR_UNSUPPORTED, "impl.step",
                         "loss-scale is not claimed");
    }
    for (uint32_t u = 0; u < s->units.n_units; u++) {
        if (s->unit[u].grad && !s->unit[u].in_flight) {
            return impl_fail(s->env, FSDP_ERR_INVALID, "impl.step",
                             "unit %u has gradients that were not reduced: the "
                             "last microbatch must have gradient sync on",
                             u);
        }
    }
    return FSDP_OK;
}

int impl_step(struct fsdp_sharded *s, struct fsdp_step *how)
{
    FSDP_TRY(check_step(s, how));
    how->found_inf = 0;
    FSDP_TRY(impl_retire_all(s));
    FSDP_TRY(impl_wait(s, s->env->compute, s->last, 0, "reduce->optimizer"));
    return impl_optimize(s, how);
}

int impl_zero_grad(struct fsdp_sharded *s)
{
    FSDP_TRY(impl_at_rest(s, "impl.zero_grad"));
    FSDP_TRY(impl_retire_all(s));
    return impl_drop_gradients(s);
}

/* Whoever reads them reads them on no stream. */
int impl_pieces(struct fsdp_sharded *s,
                void (*visit)(void *, const struct fsdp_piece *), void *context)
{
    FSDP_TRY(impl_at_rest(s, "impl.pieces"));
    FSDP_TRY(impl_retire_all(s));
    FSDP_TRY(s->env->device->sync(s->env->device->self, NULL));
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        const struct impl_parameter *x = &s->parameter[p];
        const struct impl_unit *u = &s->unit[x->unit];
        struct fsdp_piece piece = {.size = sizeof(piece),
                                   .parameter = p,
                                   .first = x->first,
                                   .n = x->n,
                                   .value = u->shard + x->local};
        if (x->n == 0) {
            continue;
        }
        if (u->grad_shard) {
            piece.grad = u->grad_shard + x->local;
        }
        for (uint32_t i = 0; i < s->n_states; i++) {
            piece.state[i] = u->state[i] + x->local;
        }
        visit(context, &piece);
    }
    return FSDP_OK;
}

int impl_unshard_all(struct fsdp_sharded *s)
{
    FSDP_TRY(impl_at_rest(s, "impl.unshard_all"));
    if (s->packs) { /* what is sent may lie where units arrive */
        FSDP_TRY(impl_retire_all(s));
    }
    if (s->shards > 1) {
        FSDP_TRY(impl_slots_unshard_all(s));
    }
    s->all_unsharded = true;
    for (uint32_t u = 0; u < s->units.n_units; u++) {
        float *full = impl_slot(&s->full, s->unit[u].own_full);

        s->unit[u].arrived_life = NULL;
        if (s->shards > 1) {
            FSDP_TRY(impl_gather(s, u, s->packs ? s->wire.p : full, 0));
        }
        FSDP_TRY(impl_open(s, u));
        if (s->packs) {
            FSDP_TRY(impl_unpack(s, u, full));
        }
    }
    return FSDP_OK;
}

int impl_reshard_all(struct fsdp_sharded *s)
{
    if (!s->all_unsharded) {
        return impl_fail(s->env, FSDP_ERR_INVALID, "impl.reshard_all",
                         "unshard_all comes first");
    }
    s->all_unsharded = false;
    FSDP_TRY(impl_reshard_each(s));
    return impl_slots_reshard_all(s);
}
