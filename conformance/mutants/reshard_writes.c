/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reshard_writes.c - resharding after a look at all parameters changes one.
 */
#include "mutants/wrap_kit.h"

static _Thread_local void *shard; /* the last unit's */

static void live(void *self, struct fsdp_stream *stream, uint32_t kind,
                 uint32_t unit, void *p, uint64_t n)
{
    if (kind == FSDP_PARAM_SHARD && n) {
        shard = p;
    }
    mutant_real.device->live(self, stream, kind, unit, p, n);
}

static int reshard_all(struct fsdp_sharded *s)
{
    const struct fsdp_device *d = mutant_real.device;
    const float x = 42.0f;

    FSDP_TRY(mutant_real.engine.reshard_all(s));
    FSDP_TRY(d->sync(d->self, NULL)); /* it is wrong, and no race */
    return shard && mutant_real.rank == 0 ? mutant_put(NULL, &x, 1, shard)
                                          : FSDP_OK;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    shard = NULL;
    mutant_device(env)->live = live;
    engine->reshard_all = reshard_all;
}

static bool shows(const struct run_case *c)
{
    return mutant_mlp(c) && c->scenario == CASE_SUMMON;
}

MUTANT(reshard_writes) = {
    .name = "reshard-writes",
    .text = "reshard_all writes an element of the first shard",
    .evidence = "X46: pytorch/pytorch#83111",
    .kills = "step.final-weights",
    .shows = shows,
    .wrap = wrap,
};
