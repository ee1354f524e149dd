/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adam_step_count.c - the bias correction of Adam is that of the first step
 * for ever.
 */
#include "mutants/wrap_kit.h"

static int run(void *self, struct fsdp_stream *stream, const struct fsdp_op *op)
{
    (void)self;
    struct fsdp_op x = *op;

    if (op->kind == FSDP_OP_ADAMW) {
        x.f[5] = x.f[2];
        x.f[6] = x.f[3];
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
    return mutant_train(c) && c->optimizer == FSDP_OPTIMIZER_ADAMW;
}

MUTANT(adam_step_count) = {
    .name = "adam-step-count",
    .text = "the running products of beta1 and beta2 stay those of step "
            "1",
    .evidence = "X40: deepspeedai/DeepSpeed#4396",
    .kills = "step.adamw",
    .shows = shows,
    .wrap = wrap,
};
