/* SPDX-License-Identifier: Apache-2.0 */
/*
 * momentum_lost.c - momentum starts anew in each step.
 */
#include "mutants/wrap_kit.h"

static int run(void *self, struct fsdp_stream *stream, const struct fsdp_op *op)
{
    (void)self;
    struct fsdp_op zero = {.size = sizeof zero,
                           .kind = FSDP_OP_FILL,
                           .unit = op->unit,
                           .dim = {op->dim[0]},
                           .n_out = 1,
                           .out = {op->out[1]}};

    if (op->kind == FSDP_OP_MOMENTUM) {
        FSDP_TRY(mutant_run(stream, &zero));
    }
    return mutant_run(stream, op);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_device(env)->run = run;
}

static bool shows(const struct run_case *c)
{
    return mutant_train(c) && c->optimizer == FSDP_OPTIMIZER_MOMENTUM;
}

MUTANT(momentum_lost) = {
    .name = "momentum-lost",
    .text = "the state of the optimizer is zeroed before each step",
    .evidence = "X40: KempnerInstitute/KempnerForge#115",
    .kills = "step.momentum",
    .shows = shows,
    .wrap = wrap,
};
