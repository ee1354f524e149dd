/* SPDX-License-Identifier: Apache-2.0 */
/*
 * divide_twice.c - gradients are divided by the world twice, as by an engine
 * and by a communicator that averages.
 */
#include "mutants/wrap_kit.h"

static int run(void *self, struct fsdp_stream *stream, const struct fsdp_op *op)
{
    (void)self;
    if (op->kind == FSDP_OP_SCALE) {
        FSDP_TRY(mutant_run(stream, op));
    }
    return mutant_run(stream, op);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_device(env)->run = run;
}

MUTANT(divide_twice) = {
    .name = "divide-twice",
    .text = "the reduced gradient is multiplied by 1 / divide factor "
            "twice",
    .evidence = "X02: meta-pytorch/torchtune#2172",
    .kills = "reduce.fold reduce.scale",
    .shows = mutant_plain,
    .wrap = wrap,
};
