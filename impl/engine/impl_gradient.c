/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_gradient.c - this rank's own gradient of a unit, from the beginning
 * of a backward window until it is reduced: the model writes the first
 * gradient of a parameter where it will be sent from; a later one is added.
 */
#include "impl_calls.h"

int impl_open_gradient(struct fsdp_sharded *s, uint32_t u,
                       const struct impl_life *life)
{
    struct impl_unit *x = &s->unit[u];

    if (x->grad) {
        return FSDP_OK; /* a pass without sync left it */
    }
    FSDP_TRY(impl_take(
        s, s->env->compute,
        (struct impl_value){FSDP_GRAD_FULL, u, x->dtype.accumulate,
                            x->grad_whole, false},
        impl_slot(&s->grads, s->resident ? x->own_grad : life->offset),
        &x->grad));
    return impl_fill_zero(
        s, s->env->compute, u, x->dtype.accumulate,
        impl_element(x->grad, x->dtype.accumulate, x->grad_numel),
        x->grad_whole - x->grad_numel);
}

/* Where the gradients of a parameter add up, those of all its names. */
static void *sum_of(const struct fsdp_sharded *s,
                    const struct impl_parameter *x)
{
    const struct impl_unit *unit = &s->unit[x->unit];

    return impl_element(unit->grad, unit->dtype.accumulate,
                        s->parameter[x->original].grad_offset);
}

/* A fresh gradient has storage of its own where it meets an older one, is of
 * another dtype than the sum, or is one of several names: their modules may be
 * in a backward at once. */
static int stage(struct fsdp_sharded *s, uint32_t p)
{
    struct impl_parameter *x = &s->parameter[p];
    const struct impl_plan *plan = &s->plan[s->index];
    uint32_t point = s->in_backward[s->model->parameter_module[p]] - 1;
    uint32_t dtype = s->unit[x->unit].dtype.grad;
    float *slot;

    if (!s->strict && !(s->stages & IMPL_STAGE_FRESH)) {
        return impl_fail(s->env, FSDP_ERR_INTERNAL, "impl.grad",
                         "no staging was planned for %s",
                         s->model->parameter_name[p]);
    }
    slot =
        impl_slot(&s->staging, plan->fresh[plan->fresh_of_point[point]].offset);
    return impl_take(
        s, s->env->compute,
        (struct impl_value){FSDP_STAGING, x->unit, dtype, x->numel, false},
        slot ? slot + x->module_at : NULL, &x->staging);
}

int impl_lend_gradient(struct fsdp_sharded *s, uint32_t p, void **out)
{
    struct impl_parameter *x = &s->parameter[p];
    const struct impl_dtypes *dtype = &s->unit[x->unit].dtype;

    if ((x->accumulated || x->shared || dtype->grad != dtype->accumulate) &&
        !x->staging) {
        FSDP_TRY(stage(s, p));
    }
    x->fresh = true;
    *out = x->staging ? x->staging : sum_of(s, x);
    return FSDP_OK;
}

/* The first is the sum, a later one is added to it. */
static int add_to_sum(struct fsdp_sharded *s, struct impl_parameter *x)
{
    const struct impl_dtypes *dtype = &s->unit[x->unit].dtype;
    void *sum = sum_of(s, x);

    if (s->parameter[x->original].accumulated) {
        FSDP_TRY(impl_add(s, s->env->compute,
                          &(struct impl_sum){.unit = x->unit,
                                             .to_dtype = dtype->accumulate,
                                             .dtype = dtype->grad,
                                             .to = sum,
                                             .what = x->staging,
                                             .n = x->numel}));
    } else {
        FSDP_TRY(impl_cast(s, s->env->compute,
                           &(struct impl_cast){.unit = x->unit,
                                               .from_dtype = dtype->grad,
                                               .to_dtype = dtype->accumulate,
                                               .from = x->staging,
                                               .to = sum,
                                               .n = x->numel}));
    }
    impl_dead(s, s->env->compute, &x->staging, x->numel);
    return FSDP_OK;
}

int impl_take_gradients(struct fsdp_sharded *s, uint32_t module)
{
    const struct impl_index *of = &s->of_module;

    for (uint32_t i = of->first[module]; i < of->first[module + 1]; i++) {
        struct impl_parameter *x = &s->parameter[of->parameter[i]];
        struct impl_parameter *original = &s->parameter[x->original];
        if (x->staging) {
            FSDP_TRY(add_to_sum(s, x));
        }
        original->accumulated = original->accumulated || x->fresh;
        x->fresh = false;
    }
    return FSDP_OK;
}

int impl_complete(struct fsdp_sharded *s, uint32_t u)
{
    const struct impl_index *of = &s->of_unit;
    const struct impl_unit *unit = &s->unit[u];

    for (uint32_t i = of->first[u]; i < of->first[u + 1]; i++) {
        struct impl_parameter *x = &s->parameter[of->parameter[i]];
        if (!x->accumulated && (!x->frozen || unit->has_holes)) {
            FSDP_TRY(impl_fill_zero(s, s->env->compute, u,
                                    s->unit[u].dtype.accumulate, sum_of(s, x),
                                    x->numel));
        }
        x->accumulated = false;
    }
    return impl_scale(s, s->env->compute,
                      &(struct impl_value){.unit = u,
                                           .dtype = unit->dtype.accumulate,
                                           .n = unit->grad_whole},
                      unit->grad, unit->prescale);
}

/* They may still be being reduced. */
int impl_drop_gradients(struct fsdp_sharded *s)
{
    FSDP_TRY(impl_wait(s, s->env->compute, s->last, 0, "reduce->optimizer"));
    for (uint32_t u = 0; u < s->units.n_units; u++) {
        struct impl_unit *x = &s->unit[u];
        impl_dead(s, s->env->compute, &x->grad, x->grad_whole);
        impl_over_at(s, x->step_on_host, s->env->compute, x->grad_shard,
                     x->grad_chunk);
        x->grad_shard = NULL;
        impl_dead(s, s->env->compute, &x->partial, x->grad_chunk);
    }
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        struct impl_parameter *x = &s->parameter[p];
        impl_dead(s, s->env->compute, &x->staging, x->numel);
        x->fresh = false;
        x->accumulated = false;
    }
    return impl_arena_settle(&s->arena);
}
