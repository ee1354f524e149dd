/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_early.c - a step that is made in a pass: each unit is stepped after its
 * reduction, on the stream where that ends, beside the backward of earlier
 * units. Nothing in the pass uses a unit that was stepped, unless the caller
 * unshards it by hand; whatever comes after the pass waits for all steps.
 */
#include "impl_calls.h"

#include <stdlib.h>
#include <string.h>

/* ---- What is refused ---------------------------------------------------- */

int impl_check_groups(const struct fsdp_sharded *s, const struct fsdp_step *how,
                      const char *where)
{
    const uint32_t groups = s->options.n_groups ? s->options.n_groups : 1;

    return (how->n_groups ? how->n_groups : 1) == groups && how->lr
               ? FSDP_OK
               : impl_fail(s->env, FSDP_ERR_INVALID, where,
                           "%u parameter groups, but the options have %u, each "
                           "with a learning rate",
                           how->n_groups, groups);
}

int impl_check_unset(const struct fsdp_sharded *s, const char *where)
{
    return !s->early.set ? FSDP_OK
                         : impl_fail(s->env, FSDP_ERR_INVALID, where,
                                     "a step was set for the next pass, which "
                                     "comes first");
}

/* How many reductions of a unit a plan has: one for each backward window. */
static uint32_t reductions(const struct impl_plan *plan, uint32_t u)
{
    uint32_t n = 0;

    for (uint32_t k = 0; k < plan->n_actions; k++) {
        n += plan->action[k].what == IMPL_REDUCE && plan->action[k].unit == u;
    }
    return n;
}

static int check_windows(const struct fsdp_sharded *s)
{
    for (uint32_t i = 0; i < s->model->n_sequences; i++) {
        for (uint32_t u = 0; u < s->units.n_units; u++) {
            if (s->plan[i].reduces_again && reductions(&s->plan[i], u) > 1) {
                return impl_fail(s->env, FSDP_ERR_INVALID, "impl.set_step",
                                 "unit %u has several backward windows in "
                                 "sequence %u: the later ones would see what "
                                 "the first has stepped",
                                 u, i);
            }
        }
    }
    return FSDP_OK;
}

static int check_early(const struct fsdp_sharded *s,
                       const struct fsdp_step *step)
{
    FSDP_TRY(impl_at_rest(s, "impl.set_step"));
    FSDP_TRY(impl_check_groups(s, step, "impl.set_step"));
    if (step->inverse_scale != 0.0f) {
        return impl_fail(s->env, FSDP_ERR_INVALID, "impl.set_step",
                         "inverse_scale %g: it is not known in time whether "
                         "all gradients are finite",
                         (double)step->inverse_scale);
    }
    return check_windows(s);
}

int impl_set_step(struct fsdp_sharded *s, const struct fsdp_step *step)
{
    const size_t n = step->n_groups ? step->n_groups : 1;
    float *numbers;

    FSDP_TRY(check_early(s, step));
    numbers = realloc(s->early.numbers, 2 * n * sizeof(*numbers));
    if (!numbers) {
        return impl_out_of_memory(s->env);
    }
    memcpy(numbers, step->lr, n * sizeof(*numbers));
    if (step->weight_decay) {
        memcpy(numbers + n, step->weight_decay, n * sizeof(*numbers));
    }
    s->early = (struct impl_early){
        .set = true,
        .how = {.size = sizeof(s->early.how),
                .n_groups = step->n_groups,
                .lr = numbers,
                .weight_decay = step->weight_decay ? numbers + n : NULL},
        .numbers = numbers};
    return FSDP_OK;
}

/* ---- In the pass -------------------------------------------------------- */

void impl_early_begin(struct fsdp_sharded *s)
{
    s->early.on = s->early.set;
    s->early.counted = false;
}

bool impl_steps_early(const struct fsdp_sharded *s, uint32_t u)
{
    const struct impl_unit *x = &s->unit[u];

    return s->early.on && !x->frozen && x->knob.sync &&
           (s->replicas == 1 || x->knob.all_reduce);
}

int impl_step_early(struct fsdp_sharded *s, uint32_t u)
{
    FSDP_TRY(
        impl_optimize_unit(s, s->last, u, &s->early.how, !s->early.counted));
    s->early.counted = true;
    return FSDP_OK;
}

int impl_early_settle(struct fsdp_sharded *s)
{
    FSDP_TRY(impl_landed_all(s));
    if (s->early.on && s->early.counted) {
        FSDP_TRY(impl_wait(s, s->env->compute, s->last, 0, "step->compute"));
        s->stepped = true; /* gathers wait for compute */
    }
    return FSDP_OK;
}

int impl_early_end(struct fsdp_sharded *s)
{
    FSDP_TRY(impl_early_settle(s));
    s->early.set = s->early.on = false;
    return FSDP_OK;
}
