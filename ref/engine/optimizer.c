/* SPDX-License-Identifier: Apache-2.0 */
/*
 * optimizer.c - 4. The optimizer sees shards only, part by part, so that
 * padding is never touched. Formulas: op.h, SGD, MOMENTUM, ADAMW.
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
        op.f[2] = h->momentum;
    } else if (h->optimizer == FSDP_OPTIMIZER_ADAMW) {
        op.f[2] = h->beta1;
        op.f[3] = h->beta2;
        op.f[4] = h->eps;
        op.f[5] = h->power[0];
        op.f[6] = h->power[1];
    }
    for (uint32_t i = 0; i < ref_optimizer_states(h->optimizer); i++) {
        op.in[op.n_in++] = (struct fsdp_in){state[i], bytes};
        op.out[op.n_out++] = (struct fsdp_out){state[i], bytes};
    }
    return op;
}

struct ref_hyper ref_hyper(const struct fsdp_options *o, const float power[2],
                           uint32_t flags, uint32_t group,
                           const struct fsdp_step *step)
{
    bool decays = step->weight_decay && !(flags & FSDP_NO_DECAY);

    return (struct ref_hyper){.optimizer = o->optimizer,
                              .lr = step->lr[group],
                              .weight_decay =
                                  decays ? step->weight_decay[group] : 0.0f,
                              .momentum = o->momentum,
                              .beta1 = o->beta1,
                              .beta2 = o->beta2,
                              .eps = o->eps,
                              .power = {power[0], power[1]}};
}

static int step_part(struct fsdp_sharded *s, const struct ref_part *part,
                     const struct fsdp_step *step)
{
    struct ref_unit *x = &s->unit[s->parameter[part->parameter].unit];
    struct ref_hyper h = ref_hyper(
        &s->options, x->power, s->model->parameter_flags[part->parameter],
        s->group ? s->group[part->parameter] : 0, step);
    float *state[2] = {NULL, NULL};

    if (!x->grad_shard || part->frozen) {
        return FSDP_OK;
    }
    for (uint32_t i = 0; i < s->n_states; i++) {
        state[i] = x->state[i] + part->state;
    }
    return ref_run(s, ref_optimizer_op(&h, part->n, x->grad_shard + part->grad,
                                       x->shard + part->local, state));
}

void ref_set_steps(struct fsdp_sharded *s, uint64_t steps, const float power[2])
{
    s->steps = steps;
    for (uint32_t i = 0; i < 2; i++) {
        s->power[i] = power[i];
        for (uint32_t u = 0; u < s->units->n_units; u++) {
            s->unit[u].power[i] = power[i];
        }
    }
}

static void count(const struct fsdp_sharded *s, float power[2])
{
    power[0] *= s->options.beta1;
    power[1] *= s->options.beta2;
}

int ref_step(struct fsdp_sharded *s, struct fsdp_step *step)
{
    bool changes = false;

    for (uint32_t u = 0; u < s->units->n_units; u++) {
        if (s->unit[u].grad_shard) { /* it took part */
            count(s, s->unit[u].power);
            changes = true;
        }
    }
    if (changes) {
        count(s, s->power);
        s->steps++;
    }
    for (uint32_t i = 0; i < s->n_parts; i++) {
        FSDP_TRY(step_part(s, &s->part[i], step));
    }
    return FSDP_OK;
}
