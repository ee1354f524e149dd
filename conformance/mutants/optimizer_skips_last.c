/* SPDX-License-Identifier: Apache-2.0 */
/*
 * optimizer_skips_last.c - the last element that the last rank owns is never
 * updated.
 */
#include "mutants/wrap_kit.h"

/* w, g and states follow each other in in[]; w and states in out[]. */
static bool is_optimizer(uint32_t kind)
{
    return kind == FSDP_OP_SGD || kind == FSDP_OP_MOMENTUM ||
           kind == FSDP_OP_ADAMW;
}

static int run(void *self, struct fsdp_stream *stream, const struct fsdp_op *op)
{
    (void)self;
    struct fsdp_op x = *op;

    if (is_optimizer(op->kind) && op->dim[0] > 0 &&
        mutant_real.rank + 1 == mutant_real.world) {
        x.dim[0]--;
        for (uint32_t i = 0; i < FSDP_OP_MAX_IN; i++) {
            x.in[i].bytes -= i < op->n_in ? sizeof(float) : 0;
        }
        for (uint32_t i = 0; i < FSDP_OP_MAX_OUT; i++) {
            x.out[i].bytes -= i < op->n_out ? sizeof(float) : 0;
        }
    }
    return mutant_run(stream, &x);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_device(env)->run = run;
}

MUTANT(optimizer_skips_last) = {
    .name = "optimizer-skips-last",
    .text = "the last rank's optimizer leaves out one element of each "
            "part",
    .evidence = "X13: pytorch/pytorch#176076",
    .kills = "step.every-element-changes",
    .shows = mutant_plain,
    .wrap = wrap,
};
