/* SPDX-License-Identifier: Apache-2.0 */
/*
 * padding_garbage.c - nobody fills the tail of a flat gradient.
 */
#include "mutants/wrap_kit.h"

static int run(void *self, struct fsdp_stream *stream, const struct fsdp_op *op)
{
    (void)self;
    if (op->kind == FSDP_OP_FILL && op->dim[0] < mutant_real.shards) {
        return FSDP_OK;
    }
    return mutant_run(stream, op);
}

static bool shows(const struct run_case *c)
{
    return mutant_plain(c) && c->ranks == 3;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_device(env)->run = run;
}

MUTANT(padding_garbage) = {
    .name = "padding-garbage",
    .text = "what pads a gradient is whatever was there before",
    .evidence = "X46: pytorch/pytorch#83111, DeepSpeed test_zero_allreduce",
    .kills = "comm.padding-zero",
    .shows = shows,
    .wrap = wrap,
};
