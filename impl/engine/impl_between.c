/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_between.c - the functions of the contract between passes: they make the
 * step, drop gradients, show pieces, and unshard all units.
 */
#include "impl_calls.h"

#include <math.h>
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
    if (s->said == (on != 0)) {
        return FSDP_OK;
    }
    for (uint32_t u = 0; u < s->units.n_units; u++) {
        s->unit[u].next_knob.sync = on != 0;
    }
    s->said = on != 0;
    s->turned = true;
    return FSDP_OK;
}

int impl_check_scale(const struct fsdp_sharded *s, const char *where,
                     float inverse_scale)
{
    if (!(inverse_scale >= 0.0f) || isinf(inverse_scale)) {
        return impl_fail(s->env, FSDP_ERR_INVALID, where,
                         "inverse_scale %g is neither a positive number nor 0, "
                         "for none",
                         (double)inverse_scale);
    }
    return FSDP_OK;
}

static int check_step(const struct fsdp_sharded *s, const struct fsdp_step *how)
{
    FSDP_TRY(impl_at_rest(s, "impl.step"));
    FSDP_TRY(impl_check_unset(s, "impl.step"));
    FSDP_TRY(impl_check_groups(s, how, "impl.step"));
    FSDP_TRY(impl_check_scale(s, "impl.step", how->inverse_scale));
    return impl_check_reduced(s, "impl.step");
}

int impl_unscale(struct fsdp_sharded *s, float inverse_scale)
{
    for (uint32_t u = 0; u < s->units.n_units; u++) {
        struct impl_unit *x = &s->unit[u];
        const struct impl_value all = {.unit = u,
                                       .dtype = FSDP_DTYPE_F32,
                                       .n = x->grad_chunk,
                                       .on_host = x->step_on_host};

        if (x->grad_shard) {
            FSDP_TRY(impl_scale(s, s->env->compute, &all, x->grad_shard,
                                inverse_scale));
        }
    }
    return FSDP_OK;
}

/* With a scale, of 1 too, a gradient that is not finite changes nothing: it is
 * looked for before anything is unscaled. */
int impl_step(struct fsdp_sharded *s, struct fsdp_step *how)
{
    FSDP_TRY(check_step(s, how));
    FSDP_TRY(impl_reshard_kept(s));
    how->found_inf = 0;
    FSDP_TRY(impl_retire_all(s));
    FSDP_TRY(impl_wait(s, s->env->compute, s->last, 0, "reduce->optimizer"));
    if (how->inverse_scale != 0.0f) {
        FSDP_TRY(impl_find_inf(s, &how->found_inf));
        if (how->found_inf) {
            return FSDP_OK;
        }
        FSDP_TRY(impl_unscale(s, how->inverse_scale));
    }
    return impl_optimize(s, how);
}

int impl_zero_grad(struct fsdp_sharded *s)
{
    FSDP_TRY(impl_at_rest(s, "impl.zero_grad"));
    FSDP_TRY(impl_retire_all(s));
    return impl_drop_gradients(s);
}

/* The caller reads the pieces on no stream. */
int impl_pieces(struct fsdp_sharded *s,
                void (*visit)(void *, const struct fsdp_piece *), void *context)
{
    FSDP_TRY(impl_at_rest(s, "impl.pieces"));
    FSDP_TRY(impl_check_filled(s, "impl.pieces", false));
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
        if (u->grad_shard && !x->frozen) {
            piece.grad = u->grad_shard + x->grad_local;
        }
        for (uint32_t i = 0; i < s->n_states && !x->frozen; i++) {
            piece.state[i] = u->state[i] + x->state_local;
        }
        visit(context, &piece);
    }
    return FSDP_OK;
}

int impl_unshard_all(struct fsdp_sharded *s)
{
    FSDP_TRY(impl_at_rest(s, "impl.unshard_all"));
    FSDP_TRY(impl_check_filled(s, "impl.unshard_all", true));
    FSDP_TRY(impl_reshard_kept(s));
    if (s->packs) { /* what is sent may lie where units arrive */
        FSDP_TRY(impl_retire_all(s));
    }
    if (s->shards > 1 || s->brings) {
        FSDP_TRY(impl_slots_unshard_all(s));
    }
    s->all_unsharded = true;
    for (uint32_t u = 0; u < s->units.n_units; u++) {
        void *full = impl_slot(&s->full, s->unit[u].own_full);

        s->unit[u].arrived_life = NULL;
        if (s->shards > 1 || s->unit[u].shard_on_host) {
            FSDP_TRY(impl_gather(s, u, FSDP_DTYPE_F32,
                                 s->packs ? (void *)s->wire.p : full, 0));
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
