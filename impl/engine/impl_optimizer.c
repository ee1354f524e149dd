/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_optimizer.c - the optimizer sees shards only, in as few passes as
 * hyperparameters allow: where a step's numbers are the same throughout, one
 * over all that a rank owns of a unit.
 */
#include "impl_calls.h"

/* The numbers that a step uses for a span. Fields that the optimizer does not
 * have are 0. */
struct hyper {
    float lr, weight_decay;
    float momentum;
    float beta1, beta2, eps, power[2];
};

uint32_t impl_n_states(uint32_t optimizer)
{
    return optimizer == FSDP_OPTIMIZER_ADAMW      ? 2
           : optimizer == FSDP_OPTIMIZER_MOMENTUM ? 1
                                                  : 0;
}

static struct hyper hyper_of(const struct fsdp_sharded *s,
                             const struct impl_span *span,
                             const struct fsdp_step *how)
{
    const struct fsdp_options *o = &s->options;
    uint32_t g = span->group;
    bool decays = span->decays && how->weight_decay;
    struct hyper h = {.lr = how->lr[g],
                      .weight_decay = decays ? how->weight_decay[g] : 0.0f};

    if (o->optimizer == FSDP_OPTIMIZER_MOMENTUM) {
        h.momentum = span->momentum;
    } else if (o->optimizer == FSDP_OPTIMIZER_ADAMW) {
        h.beta1 = span->beta1;
        h.beta2 = span->beta2;
        h.eps = span->eps;
        h.power[0] = span->power[0];
        h.power[1] = span->power[1];
    }
    return h;
}

static bool is_same(const struct hyper *a, const struct hyper *b)
{
    return a->lr == b->lr && a->weight_decay == b->weight_decay &&
           a->momentum == b->momentum && a->beta1 == b->beta1 &&
           a->beta2 == b->beta2 && a->eps == b->eps &&
           a->power[0] == b->power[0] && a->power[1] == b->power[1];
}

static struct fsdp_op make_op(const struct fsdp_sharded *s, uint32_t u,
                              const struct hyper *h,
                              const struct impl_span *span, uint64_t n)
{
    static const uint32_t kind[] = {[FSDP_OPTIMIZER_SGD] = FSDP_OP_SGD,
                                    [FSDP_OPTIMIZER_MOMENTUM] =
                                        FSDP_OP_MOMENTUM,
                                    [FSDP_OPTIMIZER_ADAMW] = FSDP_OP_ADAMW};
    const struct fsdp_options *o = &s->options;
    const struct impl_unit *x = &s->unit[u];
    float *shard = (x->borrowed ? x->borrowed : x->shard) + span->local;
    uint64_t bytes = n * sizeof(*shard);
    struct fsdp_op op = {
        .kind = kind[o->optimizer],
        .unit = u,
        .dim = {n},
        .f = {h->lr, h->weight_decay},
        .n_in = 2,
        .in = {{shard, bytes}, {x->grad_shard + span->grad, bytes}},
        .n_out = 1,
        .out = {{shard, bytes}}};

    if (o->optimizer == FSDP_OPTIMIZER_MOMENTUM) {
        op.f[2] = h->momentum;
    } else if (o->optimizer == FSDP_OPTIMIZER_ADAMW) {
        op.f[2] = h->beta1;
        op.f[3] = h->beta2;
        op.f[4] = h->eps;
        op.f[5] = h->power[0];
        op.f[6] = h->power[1];
    }
    for (uint32_t i = 0; i < s->n_states; i++) {
        float *state = x->state[i] + span->state;
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

    *h = hyper_of(s, first, how);
    *n = first->n;
    for (i++; i < s->n_spans; i++) {
        const struct impl_span *next = &s->span[i];
        struct hyper own = hyper_of(s, next, how);
        if (next->unit != first->unit || next->local != first->local + *n ||
            next->grad != first->grad + *n ||
            next->state != first->state + *n || !is_same(&own, h)) {
            break;
        }
        *n += next->n;
    }
    return i;
}

/* beta^steps, as a step multiplies; until it stays what it is, as a checkpoint
 * may claim any number of steps. */
static float product(float beta, uint64_t steps)
{
    float p = 1.0f;
    float before = 0.0f;

    for (uint64_t i = 0; i < steps && p != before; i++) {
        before = p;
        p *= beta;
    }
    return p;
}

/* The products of the options' betas over all steps are kept; products of other
 * betas, or over fewer steps, are computed again. */
void impl_settle_powers(struct fsdp_sharded *s)
{
    const struct fsdp_options *o = &s->options;

    for (uint32_t i = 0; i < s->n_spans; i++) {
        struct impl_span *span = &s->span[i];
        const bool all = span->steps == s->steps;

        span->power[0] = all && span->beta1 == o->beta1
                             ? s->power[0]
                             : product(span->beta1, span->steps);
        span->power[1] = all && span->beta2 == o->beta2
                             ? s->power[1]
                             : product(span->beta2, span->steps);
    }
}

void impl_set_steps(struct fsdp_sharded *s, uint64_t steps,
                    const float power[2])
{
    s->steps = steps;
    s->power[0] = power[0];
    s->power[1] = power[1];
    for (uint32_t u = 0; u < s->units.n_units; u++) {
        s->unit[u].steps = steps;
    }
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        s->parameter[p].begun = 0;
    }
    for (uint32_t i = 0; i < s->n_spans; i++) {
        s->span[i].steps = steps;
    }
    impl_settle_powers(s);
}

/* Only what takes part in a step counts it. */
static void count(struct fsdp_sharded *s, uint32_t u, bool first)
{
    if (first) {
        s->power[0] *= s->options.beta1;
        s->power[1] *= s->options.beta2;
        s->steps++;
    }
    s->unit[u].steps++;
    for (uint32_t i = s->unit[u].first_span; i < s->unit[u + 1].first_span;
         i++) {
        s->span[i].power[0] *= s->span[i].beta1;
        s->span[i].power[1] *= s->span[i].beta2;
    }
}

int impl_optimize_unit(struct fsdp_sharded *s, struct fsdp_stream *stream,
                       uint32_t u, const struct fsdp_step *how, bool first)
{
    uint32_t next;

    count(s, u, first);
    FSDP_TRY(impl_borrow(s, stream, u));
    for (uint32_t i = s->unit[u].first_span; i < s->unit[u + 1].first_span;
         i = next) {
        struct hyper h;
        uint64_t n;

        next = gather_spans(s, i, how, &h, &n);
        FSDP_TRY(impl_run_at(s, s->unit[u].step_on_host, stream,
                             make_op(s, u, &h, &s->span[i], n)));
    }
    return impl_return(s, stream, u);
}

int impl_optimize(struct fsdp_sharded *s, const struct fsdp_step *how)
{
    bool first = true;

    s->stepped = true;
    if (s->lands) { /* all-gathers, too, are over by then */
        FSDP_TRY(
            impl_wait(s, s->bringing, s->env->compute, 0, "compute->copy"));
    }
    for (uint32_t u = 0; u < s->units.n_units; u++) {
        if (s->unit[u].grad_shard) { /* it takes part in this step */
            FSDP_TRY(impl_optimize_unit(s, s->env->compute, u, how, first));
            first = false;
        }
    }
    return FSDP_OK;
}
