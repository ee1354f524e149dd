/* SPDX-License-Identifier: Apache-2.0 */
/*
 * no_average.c - gradients are added up over ranks and never divided.
 */
#include "mutants/wrap_kit.h"

static int run(void *self, struct fsdp_stream *stream, const struct fsdp_op *op)
{
    (void)self;
    return op->kind == FSDP_OP_SCALE ? FSDP_OK : mutant_run(stream, op);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_device(env)->run = run;
}

MUTANT(no_average) = {
    .name = "no-average",
    .text = "the reduced gradient is not multiplied by 1 / divide "
            "factor",
    .evidence = "X02: meta-pytorch/torchtune#2172",
    .kills = "reduce.scale",
    .shows = mutant_plain,
    .wrap = wrap,
};
