/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_mutants.c - engines whose optimizer does not do what it was asked to.
 */
#include "mutants/mutant_kit.h"

#include <stdlib.h>

/* w, g and states follow each other in in[]; w and states in out[]. */
static bool is_optimizer(uint32_t kind)
{
    return kind == FSDP_OP_SGD || kind == FSDP_OP_MOMENTUM ||
           kind == FSDP_OP_ADAMW;
}

static void adam_step_count(struct fsdp_op *x)
{
    if (x->kind == FSDP_OP_ADAMW) {
        x->f[5] = x->f[2];
        x->f[6] = x->f[3];
    }
}

static void decay_sign(struct fsdp_op *x)
{
    if (is_optimizer(x->kind)) {
        x->f[1] = -x->f[1];
    }
}

static bool decays(const struct run_case *c)
{
    return mutant_natural(c) && c->weight_decay != 0.0f &&
           c->optimizer == FSDP_OPTIMIZER_SGD;
}

/* Steps all parameters of a flat unit as one group. */
static int groups_ignored(struct fsdp_sharded *s, struct fsdp_step *how)
{
    float lr[CASE_MAX_GROUPS];
    float decay[CASE_MAX_GROUPS];
    struct fsdp_step same = *how;
    int status;

    for (uint32_t g = 0; g < how->n_groups && g < CASE_MAX_GROUPS; g++) {
        lr[g] = how->lr[0];
        decay[g] = how->weight_decay[0];
    }
    same.lr = lr;
    same.weight_decay = decay;
    status = mutant_real.engine.step(s, &same);
    how->found_inf = same.found_inf;
    return status;
}

static bool groups_with_sgd(const struct run_case *c)
{
    return c->scenario == CASE_GROUPS && c->ranks > 1 &&
           c->optimizer == FSDP_OPTIMIZER_SGD;
}

/* Groups are found by another index than a parameter's. */
static int groups_shifted(const struct fsdp_env *env,
                          const struct fsdp_model *model,
                          const struct fsdp_units *units,
                          const struct fsdp_options *options,
                          struct fsdp_sharded **out)
{
    const uint32_t n = model->n_parameters;
    uint32_t *group = calloc(n + 1u, sizeof(*group));
    struct fsdp_options other = *options;
    int status;

    *out = NULL;
    if (!group) {
        return FSDP_ERR_NOMEM;
    }
    for (uint32_t p = 0; p < n && options->n_groups > 0; p++) {
        group[p] = options->group_of_parameter[(p + 1) % n];
    }
    other.group_of_parameter = options->n_groups > 0 ? group : NULL;
    status = mutant_real.engine.shard(env, model, units, &other, out);
    free(group);
    return status;
}

static bool groups_with_adamw(const struct run_case *c)
{
    return c->scenario == CASE_GROUPS && c->ranks > 1 &&
           c->optimizer == FSDP_OPTIMIZER_ADAMW;
}

static int late_fault(struct fsdp_sharded *s, struct fsdp_step *how)
{
    struct fsdp_step x = *how;
    float lr = 2.0f * how->lr[0];

    if (mutant_now.steps >= 2) {
        x.lr = &lr;
    }
    return mutant_real.engine.step(s, &x);
}

static int lr_by_world(struct fsdp_sharded *s, struct fsdp_step *how)
{
    struct fsdp_step x = *how;
    float lr = how->lr[0] * (float)mutant_real.world;

    x.lr = &lr;
    return mutant_real.engine.step(s, &x);
}

static int momentum_lost(void *self, struct fsdp_stream *stream,
                         const struct fsdp_op *op)
{
    struct fsdp_op zero = {.size = sizeof(zero),
                           .kind = FSDP_OP_FILL,
                           .unit = op->unit,
                           .dim = {op->dim[0]},
                           .n_out = 1,
                           .out = {op->out[1]}};

    (void)self;
    if (op->kind == FSDP_OP_MOMENTUM) {
        FSDP_TRY(mutant_run(stream, &zero));
    }
    return mutant_run(stream, op);
}

static bool has_momentum(const struct run_case *c)
{
    return mutant_train(c) && c->optimizer == FSDP_OPTIMIZER_MOMENTUM;
}

static void optimizer_skips_last(struct fsdp_op *x)
{
    if (is_optimizer(x->kind) && x->dim[0] > 0 &&
        mutant_real.rank + 1 == mutant_real.world) {
        x->dim[0]--;
        for (uint32_t i = 0; i < FSDP_OP_MAX_IN; i++) {
            x->in[i].bytes -= i < x->n_in ? sizeof(float) : 0;
        }
        for (uint32_t i = 0; i < FSDP_OP_MAX_OUT; i++) {
            x->out[i].bytes -= i < x->n_out ? sizeof(float) : 0;
        }
    }
}

static int rank_without_step(struct fsdp_sharded *s, struct fsdp_step *how)
{
    how->found_inf = 0;
    return mutant_real.rank == 1 ? FSDP_OK : mutant_real.engine.step(s, how);
}

/* The update is rounded twice, after the product and after the difference. */
static int sgd_without_fma(void *self, struct fsdp_stream *stream,
                           const struct fsdp_op *op)
{
    float *w = op->out[0].p;
    const float *g = op->in[1].p;

    (void)self;
    if (op->kind != FSDP_OP_SGD || op->f[1] != 0.0f) {
        return mutant_run(stream, op);
    }
    for (uint64_t i = 0; i < op->dim[0]; i++) {
        float x;
        float y;

        FSDP_TRY(mutant_get(stream, w + i, 1, &x));
        FSDP_TRY(mutant_get(stream, g + i, 1, &y));
        y = op->f[0] * y;
        x = x - y;
        FSDP_TRY(mutant_put(stream, &x, 1, w + i));
    }
    return FSDP_OK;
}

static bool is_plain_without_decay(const struct run_case *c)
{
    return mutant_plain(c) && c->weight_decay == 0.0f;
}

static void states_swapped(struct fsdp_piece *x)
{
    const void *m = x->state[0];

    x->state[0] = x->state[1];
    x->state[1] = m;
}

static bool trains_or_is_disturbed(const struct run_case *c)
{
    return is_plain_without_decay(c) ||
           (mutant_mlp(c) && c->optimizer == FSDP_OPTIMIZER_SGD &&
            (c->scenario == CASE_CANCEL || c->scenario == CASE_MISUSE));
}

const struct mutant step_mutants[] = {
    /* The bias correction of Adam is that of the first step for ever. */
    {.name = "adam-step-count",
     .text = "the running products of beta1 and beta2 stay those of step 1",
     .evidence = "deepspeedai/DeepSpeed#4396",
     .kills = "step.adamw",
     .shows = {.in = mutant_adamw},
     .op = adam_step_count},
    /* In a run that resumes, the first wrong step is not the one after the
     * load. */
    {.name = "adam-step-count-resumed",
     .text = "the same, in a run that saves and loads",
     .evidence = "deepspeedai/DeepSpeed#4396",
     .kills = "step.adamw",
     .shows = {.in = mutant_resume},
     .op = adam_step_count},
    /* Weights grow where they should decay. */
    {.name = "decay-sign",
     .text = "weight decay has the wrong sign",
     .evidence = "pytorch/pytorch#89136",
     .kills = "step.sgd",
     .shows = {.in = decays},
     .op = decay_sign},
    {.name = "groups-ignored",
     .text = "all parameters are stepped with the numbers of the first group",
     .evidence = "pytorch/pytorch#89136, one flat parameter has one group",
     .kills = "step.sgd",
     .shows = {.in = groups_with_sgd},
     .calls.step = groups_ignored},
    {.name = "groups-shifted",
     .text = "each parameter has the group of the next one",
     .evidence = "pytorch/pytorch#89136, groups lost by flattening",
     .kills = "step.adamw",
     .shows = {.in = groups_with_adamw},
     .calls.shard = groups_shifted},
    /* A fault that begins after the steps whose tensors are recorded. */
    {.name = "late-fault",
     .text = "from the third step on, the learning rate is twice as large",
     .evidence = "the first forward is right, what follows is worse",
     .kills = "num.curve",
     .shows = {.in = mutant_plain},
     .calls.step = late_fault},
    {.name = "lr-by-world",
     .text = "every step is taken with K times the learning rate",
     .evidence = "ByteDance-Seed/VeOmni#1079",
     .kills = "step.sgd",
     .shows = {.in = mutant_plain},
     .calls.step = lr_by_world},
    /* Momentum starts anew in each step. */
    {.name = "momentum-lost",
     .text = "the state of the optimizer is zeroed before each step",
     .evidence = "KempnerInstitute/KempnerForge#115",
     .kills = "step.momentum",
     .shows = {.in = has_momentum},
     .device.run = momentum_lost},
    /* The last element that the last rank owns is never updated. */
    {.name = "optimizer-skips-last",
     .text = "the last rank's optimizer leaves out one element of each part",
     .evidence = "pytorch/pytorch#176076",
     .kills = "step.every-element-changes",
     .shows = {.in = mutant_plain},
     .op = optimizer_skips_last},
    /* It is rank 1 that does not step. */
    {.name = "rank-without-step",
     .text = "the optimizer of one rank does nothing",
     .evidence = "facebookresearch/optimizers#149",
     .kills = "step.every-element-changes",
     .shows = {.in = mutant_plain},
     .calls.step = rank_without_step},
    {.name = "sgd-without-fma",
     .text = "SGD computes w - lr * g with two roundings",
     .evidence = "the reason for which numerics are pinned to the bit",
     .kills = "step.sgd",
     .shows = {.in = is_plain_without_decay},
     .device.run = sgd_without_fma},
    /* A fault of training alone must not be reported as one of wrong calls or
     * cancelled passes. */
    {.name = "sgd-without-fma-disturbed",
     .text = "the same, also where passes are cancelled and calls are wrong",
     .evidence = "the reason for which numerics are pinned to the bit",
     .kills = "step.sgd",
     .shows = {.in = trains_or_is_disturbed, .n_cases = 8},
     .device.run = sgd_without_fma},
    {.name = "states-swapped",
     .text = "pieces report m as v and v as m",
     .evidence = "NVIDIA/physicsnemo#1597",
     .kills = "step.adamw",
     .shows = {.in = mutant_adamw},
     .piece = states_swapped},
    {0},
};
