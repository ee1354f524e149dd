/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accumulate_first_only.c - gradients of later microbatches are left out.
 */
#include "mutants/wrap_kit.h"

static int run(void *self, struct fsdp_stream *stream, const struct fsdp_op *op)
{
    (void)self;
    return op->kind == FSDP_OP_ADD ? FSDP_OK : mutant_run(stream, op);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_device(env)->run = run;
}

MUTANT(accumulate_first_only) = {
    .name = "accumulate-first-only",
    .text = "only the first microbatch of a step counts",
    .evidence = "X24: InfiniTensor/InfiniTrain#213",
    .kills = "accumulate.no-sync",
    .shows = mutant_accumulates,
    .wrap = wrap,
};
