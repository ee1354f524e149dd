/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_optimizer.c - the optimizer sees shards only, in as few passes as
 * hyperparameters allow: where weight decay and learning rate are the same
 * throughout, one over all that a rank owns of a unit.
 */
#include "impl_state.h"

struct hyper {
    float lr, weight_decay;
};

uint32_t impl_n_states(uint32_t optimizer)
{
    return optimizer == FSDP_OPTIMIZER_ADAMW      ? 2
           : optimizer == FSDP_OPTIMIZER_MOMENTUM ? 1
                                                  : 0;
}

static struct hyper hyper_of(const struct impl_span *span,
                             const struct fsdp_step *how)
{
    bool decays = span->decays && how->weight_decay;

    return (struct hyper){how->lr[span->group],
                          decays ? how->weight_decay[span->group] : 0.0f};
}

static struct fsdp_op make_op(const struct fsdp_sharded *s, uint32_t u,
                              const struct hyper *h, uint64_t local, uint64_t n)
{
    static const uint32_t kind[] = {[FSDP_OPTIMIZER_SGD] = FSDP_OP_SGD,
                                    [FSDP_OPTIMIZER_MOMENTUM] =
                                        FSDP_OP_MOMENTUM,
                                    [FSDP_OPTIMIZER_ADAMW] = FSDP_OP_ADAMW};
    const struct fsdp_options *o = &s->options;
    const struct impl_unit *x = &s->unit[u];
    uint64_t bytes = n * sizeof(*x->shard);
    struct fsdp_op op = {
        .kind = kind[o->optimizer],
        .unit = u,
        .dim = {n},
        .f = {h->lr, h->weight_decay},
        .n_in = 2,
        .in = {{x->shard + local, bytes}, {x->grad_shard + local, bytes}},
        .n_out = 1,
        .out = {{x->shard + local, bytes}}};

    if (o->optimizer == FSDP_OPTIMIZER_MOMENTUM) {
        op.f[2] = o->momentum;
    } else if (o->optimizer == FSDP_OPTIMIZER_ADAMW) {
        op.f[2] = o->beta1;
        op.f[3] = o->beta2;
        op.f[4] = o->eps;
        op.f[5] = x->power[0];
        op.f[6] = x->power[1];
    }
    for (uint32_t i = 0; i < s->n_states; i++) {
        float *state = x->state[i] + local;
        op.in[op.n_in++] = (struct fsdp_in){state, bytes};
        op.out[op.n_out++] = (struct fsdp_out){state, bytes};
    }
    return op;
}

/* Spans from i on that are neighbours and have the same numbers in this step;
 * returns the first that is not. */
static uint32_t gather_spans(const struct fsdp_sharded *s, uint32_t i,
                             const struct fsdp_step *how, struct hyper *h,
                             uint64_t *n)
{
    const struct impl_span *first = &s->span[i];

    *h = hyper_of(first, how);
    *n = first->n;
    for (i++; i < s->n_spans; i++) {
        const struct impl_span *next = &s->span[i];
        struct hyper own = hyper_of(next, how);
        if (next->unit != first->unit || next->local != first->local + *n ||
            !(own.lr == h->lr && own.weight_decay == h->weight_decay)) {
            break;
        }
        *n += next->n;
    }
    return i;
}

void impl_set_steps(struct fsdp_sharded *s, uint64_t steps,
                    const float power[2])
{
    s->steps = steps;
    for (uint32_t i = 0; i < 2; i++) {
        s->power[i] = power[i];
        for (uint32_t u = 0; u < s->units.n_units; u++) {
            s->unit[u].power[i] = power[i];
        }
    }
}

static void multiply(const struct fsdp_options *o, float power[2])
{
    power[0] *= o->beta1;
    power[1] *= o->beta2;
}

/* Only what takes part in a step counts it. */
static void count(struct fsdp_sharded *s)
{
    bool changes = false;

    for (uint32_t u = 0; u < s->units.n_units; u++) {
        if (s->unit[u].grad_shard) {
            multiply(&s->options, s->unit[u].power);
            changes = true;
        }
    }
    if (changes) {
        multiply(&s->options, s->power);
        s->steps++;
    }
}

int impl_optimize(struct fsdp_sharded *s, const struct fsdp_step *how)
{
    uint32_t next;

    count(s);
    s->stepped = true;
    for (uint32_t i = 0; i < s->n_spans; i = next) {
        const struct impl_span *span = &s->span[i];
        struct hyper h;
        uint64_t n;

        next = gather_spans(s, i, how, &h, &n);
        if (s->unit[span->unit].grad_shard) { /* it took part in this step */
            FSDP_TRY(impl_run(s, s->env->compute,
                              make_op(s, span->unit, &h, span->local, n)));
        }
    }
    return FSDP_OK;
}
