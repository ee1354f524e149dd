/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unknown_parameter_lent.c - a parameter that the model does not have is
 * lent.
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

    return p >= n_parameters ? FSDP_OK : status;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    engine->shard = shard;
    engine->param = param;
}

MUTANT(unknown_parameter_lent) = {
    .name = "unknown-parameter-lent",
    .text = "param succeeds for a number that is no parameter",
    .evidence = "an index that is not checked",
    .kills = "error.unknown-index",
    .shows = mutant_misuse,
    .wrap = wrap,
};
