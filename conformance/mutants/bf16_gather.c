/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bf16_gather.c - parameters are rounded to bf16 on the wire.
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
    FSDP_TRY(mutant_communicate(stream, c));
    return c->kind == FSDP_ALL_GATHER
               ? mutant_each(stream, c->out, c->n * mutant_real.shards, shorten)
               : FSDP_OK;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_comm(env)->run = run;
}

MUTANT(bf16_gather) = {
    .name = "bf16-gather",
    .text = "gathered parameters lose 16 bits",
    .evidence = "X27: pytorch/pytorch#190626",
    .kills = "gather.unsharded-values",
    .shows = mutant_plain,
    .wrap = wrap,
};
