/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_gradient.c - this rank's own gradient of a unit, from the beginning
 * of a backward window until it is reduced: the model writes the first
 * gradient of a parameter where it will be sent from; a later one is added.
 */
#include "impl_state.h"

int impl_open_gradient(struct fsdp_sharded *s, uint32_t u,
                       const struct impl_life *life)
{
    struct impl_unit *x = &s->unit[u];

    if (x->grad) {
        return FSDP_OK; /* a pass without sync left it */
    }
    FSDP_TRY(impl_take(
        s, s->env->compute, FSDP_GRAD_FULL, u, x->whole,
        impl_slot(&s->grads, s->resident ? x->own_grad : life->offset),
        &x->grad));
    return impl_fill_zero(s, s->env->compute, u, x->grad + x->numel,
                          x->whole - x->numel);
}

int impl_lend_gradient(struct fsdp_sharded *s, uint32_t p, float **out)
{
    struct impl_parameter *x = &s->parameter[p];
    const struct impl_plan *plan = &s->plan[s->index];
    uint32_t point = s->in_backward[s->model->parameter_module[p]] - 1;

    if (x->accumulated && !x->staging) {
        if (!s->strict && !(s->stages & IMPL_STAGE_FRESH)) {
            return impl_fail(s->env, FSDP_ERR_INTERNAL, "impl.grad",
                             "no staging was planned for %s",
                             s->model->parameter_name[p]);
        }
        FSDP_TRY(impl_take(
            s, s->env->compute, FSDP_STAGING, x->unit, x->numel,
            impl_slot(&s->staging,
                      x->module_offset +
                          plan->fresh[plan->fresh_of_point[point]].offset),
            &x->staging));
    }
    x->fresh = true;
    *out = x->staging ? x->staging : s->unit[x->unit].grad + x->offset;
    return FSDP_OK;
}

static int add_to_sum(struct fsdp_sharded *s, struct impl_parameter *x)
{
    float *sum = s->unit[x->unit].grad + x->offset;
    uint64_t bytes = x->numel * sizeof(*sum);

    FSDP_TRY(
        impl_run(s, s->env->compute,
                 (struct fsdp_op){.kind = FSDP_OP_ADD,
                                  .unit = x->unit,
                                  .dim = {x->numel},
                                  .n_in = 2,
                                  .in = {{sum, bytes}, {x->staging, bytes}},
                                  .n_out = 1,
                                  .out = {{sum, bytes}}}));
    impl_dead(s, s->env->compute, &x->staging, x->numel);
    return FSDP_OK;
}

int impl_take_gradients(struct fsdp_sharded *s, uint32_t module)
{
    const struct impl_index *of = &s->of_module;

    for (uint32_t i = of->first[module]; i < of->first[module + 1]; i++) {
        struct impl_parameter *x = &s->parameter[of->parameter[i]];
        if (x->staging) {
            FSDP_TRY(add_to_sum(s, x));
        }
        x->accumulated = x->accumulated || x->fresh;
        x->fresh = false;
    }
    return FSDP_OK;
}

int impl_fill_missing(struct fsdp_sharded *s, uint32_t u)
{
    const struct impl_index *of = &s->of_unit;

    for (uint32_t i = of->first[u]; i < of->first[u + 1]; i++) {
        struct impl_parameter *x = &s->parameter[of->parameter[i]];
        if (!x->accumulated) {
            FSDP_TRY(impl_fill_zero(s, s->env->compute, u,
                                    s->unit[u].grad + x->offset, x->numel));
        }
        x->accumulated = false;
    }
    return FSDP_OK;
}

/* They may still be being reduced. */
int impl_drop_gradients(struct fsdp_sharded *s)
{
    FSDP_TRY(impl_wait(s, s->env->compute, s->last, 0, "reduce->optimizer"));
    for (uint32_t u = 0; u < s->units.n_units; u++) {
        struct impl_unit *x = &s->unit[u];
        impl_dead(s, s->env->compute, &x->grad, x->whole);
        impl_dead(s, s->env->compute, &x->grad_shard, x->chunk);
    }
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        struct impl_parameter *x = &s->parameter[p];
        impl_dead(s, s->env->compute, &x->staging, x->numel);
        x->fresh = false;
        x->accumulated = false;
    }
    return impl_arena_settle(&s->arena);
}
