/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cancel_disturbs.c - what follows a cancelled pass is not what follows a
 * whole one.
 */
#include "mutants/wrap_kit.h"

static _Thread_local bool disturbed;

static int at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    int status = mutant_real.engine.at(s, point, index);

    if (point == FSDP_CANCEL) {
        disturbed = true;
    } else if (point == FSDP_END) {
        disturbed = false;
    }
    return status;
}

static int run(void *self, struct fsdp_stream *stream, const struct fsdp_op *op)
{
    struct fsdp_op x = *op;

    (void)self;
    if (op->kind == FSDP_OP_SCALE && disturbed) {
        x.f[0] *= 2.0f;
    }
    return mutant_run(stream, &x);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    disturbed = false;
    engine->at = at;
    mutant_device(env)->run = run;
}

static bool shows(const struct run_case *c)
{
    return mutant_mlp(c) && c->scenario == CASE_CANCEL;
}

MUTANT(cancel_disturbs) = {
    .name = "cancel-disturbs",
    .text = "the pass after a cancelled one is averaged in another way",
    .evidence = "X48: deepspeedai/DeepSpeed#3582",
    .kills = "error.cancel-harmless",
    .shows = shows,
    .wrap = wrap,
};
