/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_gathers_all.c - a load has the whole model in memory before it
 * shards it.
 */
#include "mutants/wrap_kit.h"

/* More than the largest unit, less than what training needs. */
static _Thread_local uint64_t bytes;

static int shard(const struct fsdp_env *env, const struct fsdp_model *model,
                 const struct fsdp_units *units,
                 const struct fsdp_options *options, struct fsdp_sharded **out)
{
    uint64_t most = 0;

    for (uint32_t u = 0; u < units->n_units; u++) {
        uint64_t numel = 0;
        for (uint32_t p = 0; p < model->n_parameters; p++) {
            if (units->unit_of_module[model->parameter_module[p]] == u) {
                numel += fsdp_numel(model, p);
            }
        }
        most = numel > most ? numel : most;
    }
    bytes = (most + env->world) * sizeof(float);
    return mutant_real.engine.shard(env, model, units, options, out);
}

static int load(struct fsdp_sharded *s, const char *directory)
{
    const struct fsdp_device *d = mutant_real.device;
    void *all = NULL;
    int status;

    FSDP_TRY(d->alloc(d->self, bytes, &all));
    d->live(d->self, NULL, FSDP_STAGING, FSDP_NO_UNIT, all, bytes);
    status = mutant_real.engine.load(s, directory);
    d->dead(d->self, NULL, all);
    d->free(d->self, all);
    return status;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    engine->shard = shard;
    engine->load = load;
}

MUTANT(checkpoint_gathers_all) = {
    .name = "checkpoint-gathers-all",
    .text = "a load needs memory for more than what a rank owns",
    .evidence = "CKPT-9: memory flat",
    .kills = "memory.checkpoint-bound",
    .shows = mutant_resume,
    .wrap = wrap,
};
