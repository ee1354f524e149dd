/* SPDX-License-Identifier: Apache-2.0 */
/*
 * param_outside_window.c - parameters of a unit that is sharded are lent all
 * the same.
 */
#include "mutants/wrap_kit.h"

static _Thread_local uint32_t n_parameters;

static int shard(const struct fsdp_env *env, const struct fsdp_model *model,
                 const struct fsdp_units *units,
                 const struct fsdp_options *options, struct fsdp_sharded **out)
{
    n_parameters = model->n_parameters;
    return mutant_real.engine.shard(env, model, units, options, out);
}

static int param(struct fsdp_sharded *s, uint32_t p, struct fsdp_tensor *out)
{
    int status = mutant_real.engine.param(s, p, out);

    return status == FSDP_ERR_INVALID && p < n_parameters ? FSDP_OK : status;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    engine->shard = shard;
    engine->param = param;
}

static bool shows(const struct run_case *c)
{
    return mutant_mlp(c) && c->scenario == CASE_MISUSE &&
           c->ranks > c->replicas;
}

MUTANT(param_outside_window) = {
    .name = "param-outside-window",
    .text = "param succeeds outside its unit's window",
    .evidence = "X44: deepspeedai/DeepSpeed#8486",
    .kills = "error.outside-window",
    .shows = shows,
    .wrap = wrap,
};
