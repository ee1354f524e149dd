/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accumulate_overwrites.c - a later gradient takes the place of the sum so
 * far.
 */
#include "mutants/wrap_kit.h"

static int run(void *self, struct fsdp_stream *stream, const struct fsdp_op *op)
{
    (void)self;
    const struct fsdp_device *d = mutant_real.device;

    if (op->kind != FSDP_OP_ADD) {
        return mutant_run(stream, op);
    }
    return d->copy(d->self, stream, op->out[0].p, op->in[1].p,
                   op->out[0].bytes);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_device(env)->run = run;
}

MUTANT(accumulate_overwrites) = {
    .name = "accumulate-overwrites",
    .text = "only the last microbatch of a step counts",
    .evidence = "X24: NVIDIA/Megatron-LM#7186",
    .kills = "accumulate.no-sync",
    .shows = mutant_accumulates,
    .wrap = wrap,
};
