/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_bare.c - what a model costs with no engine around it: parameters,
 * gradients and moments lie in one piece each, and a step is one operator.
 * It has the functions of an engine, so that the same loop drives both.
 */
#include "tools/bench/bench_life.h"

#include <stdlib.h>

enum {
    ALIGN = 16 /* elements */
};

struct fsdp_sharded {
    const struct fsdp_env *env;
    const struct fsdp_model *model;
    struct fsdp_options options;
    uint64_t *offset; /* [n_parameters] */
    uint64_t n;
    float *value, *grad, *state[2];
    float power[2];
};

static int make(struct fsdp_sharded *s)
{
    const struct fsdp_device *d = s->env->device;
    float **part[] = {&s->value, &s->grad, &s->state[0], &s->state[1]};
    void *p;

    s->offset = calloc(s->model->n_parameters + 1u, sizeof(*s->offset));
    if (!s->offset) {
        return FSDP_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < s->model->n_parameters; i++) {
        s->offset[i] = s->n;
        s->n += (fsdp_numel(s->model, i) + ALIGN - 1) / ALIGN * ALIGN;
    }
    for (int i = 0; i < 4; i++) {
        struct fsdp_op fill = {.size = sizeof(fill),
                               .kind = FSDP_OP_FILL,
                               .unit = FSDP_NO_UNIT,
                               .dim = {s->n},
                               .n_out = 1};
        FSDP_TRY(d->alloc(d->self, s->n * sizeof(float), &p));
        *part[i] = p;
        fill.out[0] = (struct fsdp_out){p, s->n * sizeof(float)};
        FSDP_TRY(d->run(d->self, NULL, &fill));
    }
    return FSDP_OK;
}

static int initialize(struct fsdp_sharded *s, uint32_t p)
{
    const struct fsdp_device *d = s->env->device;
    uint64_t n = fsdp_numel(s->model, p);
    float *host = malloc((n + 1) * sizeof(*host));
    int status = host ? s->model->initial(s->model->context, p, 0, n, host)
                      : FSDP_ERR_NOMEM;

    if (status == FSDP_OK) {
        status = d->copy(d->self, NULL, s->value + s->offset[p], host,
                         n * sizeof(*host));
    }
    free(host);
    return status;
}

static int bare_shard(const struct fsdp_env *env,
                      const struct fsdp_model *model,
                      const struct fsdp_units *units,
                      const struct fsdp_options *options,
                      struct fsdp_sharded **out)
{
    struct fsdp_sharded *s = calloc(1, sizeof(*s));

    (void)units;
    *out = s;
    if (!s) {
        return FSDP_ERR_NOMEM;
    }
    s->env = env;
    s->model = model;
    s->options = *options;
    s->power[0] = s->power[1] = 1.0f;
    FSDP_TRY(make(s));
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        FSDP_TRY(initialize(s, p));
    }
    return FSDP_OK;
}

static void bare_destroy(struct fsdp_sharded *s)
{
    if (s) {
        const struct fsdp_device *d = s->env->device;
        (void)d->sync(d->self, NULL);
        d->free(d->self, s->value);
        d->free(d->self, s->grad);
        d->free(d->self, s->state[0]);
        d->free(d->self, s->state[1]);
        free(s->offset);
        free(s);
    }
}

static int bare_at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    (void)s;
    (void)point;
    (void)index;
    return FSDP_OK;
}

static int lend(const struct fsdp_sharded *s, float *from, uint32_t p,
                struct fsdp_tensor *out)
{
    const struct fsdp_model *m = s->model;
    int64_t stride = 1;

    *out = (struct fsdp_tensor){.data = from + s->offset[p],
                                .dtype = FSDP_DTYPE_F32,
                                .place = s->env->device->place,
                                .n_dims = m->parameter_n_dims[p]};
    for (uint32_t d = out->n_dims; d-- > 0;) {
        out->shape[d] = m->parameter_shape[p][d];
        out->stride[d] = stride;
        stride *= (int64_t)out->shape[d];
    }
    return FSDP_OK;
}

static int bare_param(struct fsdp_sharded *s, uint32_t p,
                      struct fsdp_tensor *out)
{
    return lend(s, s->value, p, out);
}

static int bare_grad(struct fsdp_sharded *s, uint32_t p,
                     struct fsdp_tensor *out)
{
    return lend(s, s->grad, p, out);
}

static int bare_sync(struct fsdp_sharded *s, uint32_t on)
{
    (void)s;
    return on ? FSDP_OK : FSDP_ERR_UNSUPPORTED;
}

static int bare_step(struct fsdp_sharded *s, struct fsdp_step *how)
{
    const struct fsdp_device *d = s->env->device;
    const struct fsdp_options *o = &s->options;
    uint64_t bytes = s->n * sizeof(float);

    s->power[0] *= o->beta1;
    s->power[1] *= o->beta2;
    struct fsdp_op op = {
        /* SGD takes what comes first of these */
        .size = sizeof(op),
        .kind =
            o->optimizer == FSDP_OPTIMIZER_SGD ? FSDP_OP_SGD : FSDP_OP_ADAMW,
        .unit = FSDP_NO_UNIT,
        .dim = {s->n},
        .f = {how->lr[0], 0.0f, o->beta1, o->beta2, o->eps, s->power[0],
              s->power[1]},
        .n_in = 4,
        .in = {{s->value, bytes},
               {s->grad, bytes},
               {s->state[0], bytes},
               {s->state[1], bytes}},
        .n_out = 3,
        .out = {{s->value, bytes}, {s->state[0], bytes}, {s->state[1], bytes}}};
    if (op.kind == FSDP_OP_SGD) {
        op.n_in = 2;
        op.n_out = 1;
    }
    return d->run(d->self, s->env->compute, &op);
}

static int bare_zero(struct fsdp_sharded *s)
{
    (void)s;
    return FSDP_OK;
}

static int bare_pieces(struct fsdp_sharded *s,
                       void (*visit)(void *, const struct fsdp_piece *),
                       void *context)
{
    (void)s;
    (void)visit;
    (void)context;
    return FSDP_ERR_UNSUPPORTED;
}

static const char *const claims[] = {NULL};

const struct fsdp_engine bench_bare = {
    .size = sizeof(bench_bare),
    .abi = FSDP_ABI_VERSION,
    .name = "bare",
    .version = "0",
    .claims = claims,
    .shard = bare_shard,
    .at = bare_at,
    .param = bare_param,
    .grad = bare_grad,
    .set_gradient_sync = bare_sync,
    .step = bare_step,
    .zero_grad = bare_zero,
    .pieces = bare_pieces,
    .destroy = bare_destroy,
};
