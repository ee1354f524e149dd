/* SPDX-License-Identifier: Apache-2.0 */
/*
 * divide_before_reduce.c - local gradients are divided before they are
 * folded, so that every one of them is rounded once more.
 */
#include "mutants/wrap_kit.h"

static int scale(void *self, struct fsdp_stream *stream,
                 const struct fsdp_op *op)
{
    (void)self;
    return op->kind == FSDP_OP_SCALE ? FSDP_OK : mutant_run(stream, op);
}

static float divide(float x)
{
    return x * (1.0f / (float)mutant_real.world);
}

static int run(void *self, struct fsdp_stream *stream,
               const struct fsdp_collective *c)
{
    (void)self;
    if (c->kind == FSDP_REDUCE_SCATTER) {
        FSDP_TRY(mutant_each(stream, (void *)c->in, c->n * mutant_real.shards,
                             divide));
    }
    return mutant_communicate(stream, c);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_comm(env)->run = run;
    mutant_device(env)->run = scale;
}

static bool shows(const struct run_case *c)
{
    return mutant_plain(c) && c->ranks == 3;
}

MUTANT(divide_before_reduce) = {
    .name = "divide-before-reduce",
    .text = "gradients are multiplied by 1 / divide factor before the "
            "fold",
    .evidence = "X45: facebookresearch/fairscale#565",
    .kills = "reduce.fold",
    .shows = shows,
    .wrap = wrap,
};
