/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mesh_unchecked.c - a mesh that is not the world is accepted.
 */
#include "mutants/wrap_kit.h"

#include <string.h>

static int shard(const struct fsdp_env *env, const struct fsdp_model *model,
                 const struct fsdp_units *units,
                 const struct fsdp_options *options, struct fsdp_sharded **out)
{
    static _Thread_local struct fsdp_env alone;
    const uint32_t *extent = env->mesh->extent;

    alone = *env;
    alone.world = extent[FSDP_DIM_REPLICATE] * extent[FSDP_DIM_SHARD];
    return mutant_real.engine.shard(alone.world == env->world ? env : &alone,
                                    model, units, options, out);
}

/* Ranks are not asked: there are fewer than the mesh has. */
static int exchange(void *self, const void *mine, uint64_t bytes, void *all)
{
    (void)self;
    for (uint64_t r = 0; r < 2 * (uint64_t)mutant_real.world; r++) {
        memcpy((char *)all + r * bytes, mine, bytes);
    }
    return FSDP_OK;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    engine->shard = shard;
    env->exchange = exchange;
}

static bool shows(const struct run_case *c)
{
    return c->scenario == CASE_OPTIONS && c->ranks == c->replicas;
}

MUTANT(mesh_unchecked) = {
    .name = "mesh-unchecked",
    .text = "a mesh whose product is not the world is not refused",
    .evidence = "X05: pytorch/pytorch#154888",
    .kills = "error.options",
    .shows = shows,
    .wrap = wrap,
};
