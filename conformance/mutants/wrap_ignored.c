/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wrap_ignored.c - the wrap policy is not followed: the whole model is one
 * unit.
 */
#include "mutants/wrap_kit.h"

enum {
    MODULES = 64
};

static int shard(const struct fsdp_env *env, const struct fsdp_model *model,
                 const struct fsdp_units *units,
                 const struct fsdp_options *options, struct fsdp_sharded **out)
{
    static const uint32_t none[MODULES]; /* all modules: unit 0 */
    static _Thread_local struct fsdp_units whole;

    if (model->n_modules > MODULES) {
        return mutant_real.engine.shard(env, model, units, options, out);
    }
    whole = *units;
    whole.n_units = 1;
    whole.unit_of_module = none;
    return mutant_real.engine.shard(env, model, &whole, options, out);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    engine->shard = shard;
}

MUTANT(wrap_ignored) = {
    .name = "wrap-ignored",
    .text = "one unit is made of all modules, so that all of it is "
            "gathered at once",
    .evidence = "design: a policy that is not followed shows in counts and "
                "sizes",
    .kills = "comm.all-gather-count comm.message-size "
             "comm.reduce-scatter-count layout.chunk-rule "
             "memory.peak-gradients memory.peak-unsharded "
             "memory.rest-after-shard",
    .shows = mutant_plain,
    .wrap = wrap,
};
