/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decay_sign.c - weights grow where they should decay.
 */
#include "mutants/wrap_kit.h"

/* w, g and states follow each other in in[]; w and states in out[]. */
static bool is_optimizer(uint32_t kind)
{
    return kind == FSDP_OP_SGD || kind == FSDP_OP_MOMENTUM ||
           kind == FSDP_OP_ADAMW;
}

static int run(void *self, struct fsdp_stream *stream, const struct fsdp_op *op)
{
    (void)self;
    struct fsdp_op x = *op;

    if (is_optimizer(op->kind)) {
        x.f[1] = -x.f[1];
    }
    return mutant_run(stream, &x);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_device(env)->run = run;
}

static bool shows(const struct run_case *c)
{
    return mutant_natural(c) && c->weight_decay != 0.0f &&
           c->optimizer == FSDP_OPTIMIZER_SGD;
}

MUTANT(decay_sign) = {
    .name = "decay-sign",
    .text = "weight decay has the wrong sign",
    .evidence = "X51: pytorch/pytorch#89136",
    .kills = "step.sgd",
    .shows = shows,
    .wrap = wrap,
};
