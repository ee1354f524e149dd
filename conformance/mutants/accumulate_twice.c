/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accumulate_twice.c - what a later microbatch adds is added twice.
 */
#include "mutants/wrap_kit.h"

static int run(void *self, struct fsdp_stream *stream, const struct fsdp_op *op)
{
    (void)self;
    if (op->kind == FSDP_OP_ADD) {
        FSDP_TRY(mutant_run(stream, op));
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
    return mutant_natural(c) && c->microbatches == 3 && c->sync[0] &&
           !c->sync[1];
}

MUTANT(accumulate_twice) = {
    .name = "accumulate-twice",
    .text = "later gradients of a step count double",
    .evidence = "X25: pytorch/pytorch#90546",
    .kills = "accumulate.interleaved",
    .shows = shows,
    .wrap = wrap,
};
