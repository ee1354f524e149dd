/* SPDX-License-Identifier: Apache-2.0 */
/*
 * second_life.c - something stays behind of a model that was destroyed.
 */
#include "mutants/wrap_kit.h"

static _Thread_local uint32_t lives;

static int shard(const struct fsdp_env *env, const struct fsdp_model *model,
                 const struct fsdp_units *units,
                 const struct fsdp_options *options, struct fsdp_sharded **out)
{
    lives++;
    return mutant_real.engine.shard(env, model, units, options, out);
}

static int run(void *self, struct fsdp_stream *stream, const struct fsdp_op *op)
{
    (void)self;
    struct fsdp_op x = *op;

    if (op->kind == FSDP_OP_SCALE && lives > 1) {
        x.f[0] = 1.0f;
    }
    return mutant_run(stream, &x);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    lives = 0;
    engine->shard = shard;
    mutant_device(env)->run = run;
}

static bool shows(const struct run_case *c)
{
    return mutant_natural(c) && c->scenario == CASE_AGAIN &&
           c->microbatches == 1;
}

MUTANT(second_life) = {
    .name = "second-life",
    .text = "the second model of a process is not averaged",
    .evidence = "X48: deepspeedai/DeepSpeed#3582",
    .kills = "num.deterministic reduce.scale",
    .shows = shows,
    .wrap = wrap,
};
