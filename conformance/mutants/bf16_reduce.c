/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bf16_reduce.c - gradients are rounded to bf16 before they are folded.
 */
#include "mutants/wrap_kit.h"

#include <fsdp/arith/bf16.h>

static float shorten(float x)
{
    return fsdp_bf16_to_f32(fsdp_bf16_from_f32(x));
}

static int run(void *self, struct fsdp_stream *stream,
               const struct fsdp_collective *c)
{
    (void)self;
    if (c->kind == FSDP_REDUCE_SCATTER) {
        FSDP_TRY(mutant_each(stream, (void *)c->in, c->n * mutant_real.shards,
                             shorten));
    }
    return mutant_communicate(stream, c);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_comm(env)->run = run;
}

MUTANT(bf16_reduce) = {
    .name = "bf16-reduce",
    .text = "gradients lose 16 bits on the way to the reduce-scatter",
    .evidence = "X27: pytorch/pytorch#106395",
    .kills = "reduce.fold",
    .shows = mutant_plain,
    .wrap = wrap,
};
