/* SPDX-License-Identifier: Apache-2.0 */
/*
 * optimizer.c - 4. The optimizer sees shards only, part by part, so that
 * padding is never touched. op.h has the formulas of SGD, MOMENTUM and ADAMW.
 */
#include "sharded.h"

#include <stddef.h>

uint32_t ref_optimizer_states(uint32_t optimizer)
{
    return optimizer == FSDP_OPTIMIZER_ADAMW      ? 2
           : optimizer == FSDP_OPTIMIZER_MOMENTUM ? 1
                                                  : 0;
}

struct fsdp_op ref_optimizer_op(const struct ref_hyper *h, uint64_t n,
                                const float *g, float *w, float *const *state)
{
    static const uint32_t kind[] = {[FSDP_OPTIMIZER_SGD] = FSDP_OP_SGD,
                                    [FSDP_OPTIMIZER_MOMENTUM] =
                                        FSDP_OP_MOMENTUM,
                                    [FSDP_OPTIMIZER_ADAMW] = FSDP_OP_ADAMW};
    uint64_t bytes = n * sizeof(*w);
    struct fsdp_op op = {.kind = kind[h->optimizer],
                         .unit = FSDP_NO_UNIT,
                         .dim = {n},
                         .f = {h->lr, h->weight_decay},
                         .n_in = 2,
                         .in = {{w, bytes}, {g, bytes}},
                         .n_out = 1,
                         .out = {{w, bytes}}};

    if (h->optimizer == FSDP_OPTIMIZER_MOMENTUM) {
        op.f[2] = h->of.momentum;
    } else if (h->optimizer == FSDP_OPTIMIZER_ADAMW) {
        op.f[2] = h->of.beta1;
        op.f[3] = h->of.beta2;
        op.f[4] = h->of.eps;
        op.f[5] = h->of.power[0];
        op.f[6] = h->of.power[1];
    }
    for (uint32_t i = 0; i < ref_optimizer_states(h->optimizer); i++) {
        op.in[op.n_in++] = (struct fsdp_in){state[i], bytes};
        op.out[op.n_out++] = (struct fsdp_out){state[i], bytes};
    }
    return op;
}

static float own(const float *of_group, uint32_t group, float option)
{
    return of_group ? of_group[group] : option;
}

struct ref_numbers ref_numbers(const struct fsdp_options *o, uint32_t p)
{
    uint32_t g;

    if (o->n_groups == 0) {
        return (struct ref_numbers){0,        o->momentum, o->beta1,
                                    o->beta2, o->eps,      {1.0f, 1.0f}};
    }
    g = o->group_of_parameter[p];
    return (struct ref_numbers){.group = g,
                                .momentum =
                                    own(o->momentum_of_group, g, o->momentum),
                                .beta1 = own(o->beta1_of_group, g, o->beta1),
                                .beta2 = own(o->beta2_of_group, g, o->beta2),
                                .eps = own(o->eps_of_group, g, o->eps),
                                .power = {1.0f, 1.0f}};
}

void ref_count(struct ref_numbers *numbers)
{
    numbers->power[0] *= numbers->beta1;
    numbers->power[1] *= numbers->beta2;
}

struct ref_hyper ref_hyper(uint32_t optimizer,
                           const struct ref_numbers *numbers, uint32_t flags,
                           const struct fsdp_step *step)
{
    bool decays = step->weight_decay && !(flags & FSDP_NO_DECAY);

    return (struct ref_hyper){
        .optimizer = optimizer,
        .lr = step->lr[numbers->group],
        .weight_decay = decays ? step->weight_decay[numbers->group] : 0.0f,
        .of = *numbers};
}

static int step_part(struct fsdp_sharded *s, const struct ref_part *part,
                     const struct fsdp_step *step)
{
    const struct ref_parameter *of = &s->parameter[part->parameter];
    struct ref_unit *x = &s->unit[of->unit];
    struct ref_hyper h =
        ref_hyper(s->options.optimizer, &of->numbers,
                  s->model->parameter_flags[part->parameter], step);
    float *state[2] = {NULL, NULL};

    if (part->frozen) {
        return FSDP_OK;
    }
    for (uint32_t i = 0; i < s->n_states; i++) {
        state[i] = x->state[i] + part->state;
    }
    return ref_run(
        s, x->step_at,
        ref_optimizer_op(&h, part->n, x->grad_shard + part->grad,
                         (x->brought ? x->brought : x->shard) + part->local,
                         state));
}

/* beta^steps, rounded after each product. It stops once the product no longer
 * changes, since a checkpoint may claim any number of steps. */
static float product(float beta, uint64_t steps)
{
    float power = 1.0f;
    float before = 0.0f;

    for (uint64_t i = 0; i < steps && power != before; i++) {
        before = power;
        power *= beta;
    }
    return power;
}

/* A checkpoint holds only the products of the options' betas; those of other
 * betas are computed from the number of steps. */
void ref_set_steps(struct fsdp_sharded *s, uint64_t steps, const float power[2])
{
    const struct fsdp_options *o = &s->options;

    s->steps = steps;
    s->power[0] = power[0];
    s->power[1] = power[1];
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        struct ref_numbers *x = &s->parameter[p].numbers;

        s->parameter[p].steps = steps;
        x->power[0] =
            x->beta1 == o->beta1 ? power[0] : product(x->beta1, steps);
        x->power[1] =
            x->beta2 == o->beta2 ? power[1] : product(x->beta2, steps);
    }
}

void ref_set_own_steps(struct fsdp_sharded *s, uint32_t p, uint64_t steps)
{
    struct ref_parameter *x = &s->parameter[p];

    x->steps = steps;
    x->numbers.power[0] = product(x->numbers.beta1, steps);
    x->numbers.power[1] = product(x->numbers.beta2, steps);
}

/* Copies a shard to where its step is made; return_shard copies it back. */
static int bring_shard(struct fsdp_sharded *s, uint32_t u)
{
    struct ref_unit *x = &s->unit[u];

    if (x->shard_at == x->step_at) {
        return FSDP_OK;
    }
    FSDP_TRY(ref_take(s, x->step_at, FSDP_STAGING, u, x->chunk, FSDP_DTYPE_F32,
                      &x->brought));
    return ref_cross(s, x->step_at, x->chunk * sizeof(*x->shard), x->shard,
                     x->brought);
}

static int return_shard(struct fsdp_sharded *s, uint32_t u)
{
    struct ref_unit *x = &s->unit[u];

    if (x->brought) {
        FSDP_TRY(ref_cross(s, x->shard_at, x->chunk * sizeof(*x->shard),
                           x->brought, x->shard));
    }
    ref_drop(s, x->step_at, &x->brought);
    return FSDP_OK;
}

int ref_step_unit(struct fsdp_sharded *s, uint32_t u,
                  const struct fsdp_step *step, bool first)
{
    if (first) {
        s->power[0] *= s->options.beta1;
        s->power[1] *= s->options.beta2;
        s->steps++;
    }
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        struct ref_parameter *x = &s->parameter[p];

        if (x->unit == u) {
            ref_count(&x->numbers);
            x->steps++;
        }
    }
    FSDP_TRY(bring_shard(s, u));
    for (uint32_t i = 0; i < s->n_parts; i++) {
        if (s->parameter[s->part[i].parameter].unit == u) {
            FSDP_TRY(step_part(s, &s->part[i], step));
        }
    }
    return return_shard(s, u);
}

/* Steps the units that have a gradient. */
int ref_step(struct fsdp_sharded *s, const struct fsdp_step *step)
{
    bool first = true;

    for (uint32_t u = 0; u < s->units->n_units; u++) {
        if (s->unit[u].grad_shard) {
            FSDP_TRY(ref_step_unit(s, u, step, first));
            first = false;
        }
    }
    return FSDP_OK;
}

int ref_check_groups(const struct fsdp_sharded *s, const struct fsdp_step *step,
                     const char *where)
{
    const uint32_t groups = s->options.n_groups ? s->options.n_groups : 1;

    return (step->n_groups ? step->n_groups : 1) == groups
               ? FSDP_OK
               : ref_fail(s->env, FSDP_ERR_INVALID, where,
                          "%u parameter groups, but the options have %u",
                          step->n_groups, groups);
}
