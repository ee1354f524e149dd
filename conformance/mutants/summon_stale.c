/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summon_stale.c - what unshard_all shows are weights of the first step.
 */
#include "mutants/wrap_kit.h"

static _Thread_local bool summoning;

static int run(void *self, struct fsdp_stream *stream,
               const struct fsdp_collective *c)
{
    (void)self;
    FSDP_TRY(mutant_communicate(stream, c));
    return c->kind == FSDP_ALL_GATHER ? mutant_stale(stream, c, !summoning)
                                      : FSDP_OK;
}

static int unshard_all(struct fsdp_sharded *s)
{
    int status;

    summoning = true;
    status = mutant_real.engine.unshard_all(s);
    summoning = false;
    return status;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    summoning = false;
    mutant_comm(env)->run = run;
    engine->unshard_all = unshard_all;
}

static bool shows(const struct run_case *c)
{
    return mutant_mlp(c) && c->scenario == CASE_SUMMON &&
           c->ranks > c->replicas && c->steps > 1;
}

MUTANT(summon_stale) = {
    .name = "summon-stale",
    .text = "unshard_all shows values of an earlier gather",
    .evidence = "X38: pytorch/pytorch#117421",
    .kills = "gather.summoned-values",
    .shows = shows,
    .wrap = wrap,
};
