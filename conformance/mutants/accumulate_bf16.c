/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accumulate_bf16.c - the sum over microbatches is kept in bf16.
 */
#include "mutants/wrap_kit.h"

#include <fsdp/arith/bf16.h>

static float shorten(float x)
{
    return fsdp_bf16_to_f32(fsdp_bf16_from_f32(x));
}

static int run(void *self, struct fsdp_stream *stream, const struct fsdp_op *op)
{
    (void)self;
    FSDP_TRY(mutant_run(stream, op));
    return op->kind == FSDP_OP_ADD
               ? mutant_each(stream, op->out[0].p, op->dim[0], shorten)
               : FSDP_OK;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_device(env)->run = run;
}

MUTANT(accumulate_bf16) = {
    .name = "accumulate-bf16",
    .text = "the sum of gradients is rounded to bf16 after each "
            "addition",
    .evidence = "X27: pytorch/pytorch#106395",
    .kills = "accumulate.no-sync",
    .shows = mutant_accumulates,
    .wrap = wrap,
};
