/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refusal_silent.c - refuses as it should, and says nothing.
 */
#include "mutants/wrap_kit.h"

static _Thread_local struct fsdp_error nobody_reads;
static _Thread_local struct fsdp_env silent; /* is borrowed until destroy */

static int shard(const struct fsdp_env *env, const struct fsdp_model *model,
                 const struct fsdp_units *units,
                 const struct fsdp_options *options, struct fsdp_sharded **out)
{
    silent = *env;

    nobody_reads = (struct fsdp_error){0};
    silent.error = &nobody_reads;
    return mutant_real.engine.shard(&silent, model, units, options, out);
}

static bool shows(const struct run_case *c)
{
    return c->scenario == CASE_OPTIONS;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    engine->shard = shard;
}

MUTANT(refusal_silent) = {
    .name = "refusal-silent",
    .text = "options are refused without a word",
    .evidence = "ERR-2, ERR-3: errors must name what is wrong",
    .kills = "error.says-why",
    .shows = shows,
    .wrap = wrap,
};
