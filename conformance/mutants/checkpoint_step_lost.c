/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_step_lost.c - the bias correction of Adam begins anew after a
 * load.
 */
#include "mutants/wrap_kit.h"

static _Thread_local float begun[2]; /* products at the load; 0: none yet */
static _Thread_local bool loaded;

static int load(struct fsdp_sharded *s, const char *directory)
{
    int status = mutant_real.engine.load(s, directory);

    loaded = loaded || status == FSDP_OK;
    return status;
}

static int run(void *self, struct fsdp_stream *stream, const struct fsdp_op *op)
{
    (void)self;
    struct fsdp_op x = *op;

    if (op->kind == FSDP_OP_ADAMW && loaded) {
        if (begun[0] == 0.0f) {
            begun[0] = op->f[5] / op->f[2];
            begun[1] = op->f[6] / op->f[3];
        }
        x.f[5] = op->f[5] / begun[0];
        x.f[6] = op->f[6] / begun[1];
    }
    return mutant_run(stream, &x);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    loaded = false;
    begun[0] = begun[1] = 0.0f;
    engine->load = load;
    mutant_device(env)->run = run;
}

MUTANT(checkpoint_step_lost) = {
    .name = "checkpoint-step-lost",
    .text = "the running products of the betas are not part of a checkpoint",
    .evidence = "X40: deepspeedai/DeepSpeed#4396",
    .kills = "checkpoint.step",
    .shows = mutant_resume,
    .wrap = wrap,
};
