/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefetch_stale.c - what was gathered ahead in the first step serves for the
 * next ones.
 */
#include "mutants/wrap_kit.h"

static int run(void *self, struct fsdp_stream *stream,
               const struct fsdp_collective *c)
{
    (void)self;
    FSDP_TRY(mutant_communicate(stream, c));
    return c->kind == FSDP_ALL_GATHER ? mutant_stale(stream, c, false)
                                      : FSDP_OK;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_comm(env)->run = run;
}

static bool shows(const struct run_case *c)
{
    return c->scenario == CASE_TRAIN && c->prefetch_forward > 0 &&
           c->data == WORKLOAD_NATURAL && c->ranks > c->replicas;
}

MUTANT(prefetch_stale) = {
    .name = "prefetch-stale",
    .text = "with prefetch, weights of before the step are computed with",
    .evidence = "X50: Megatron-FSDP v2, the next forward uses updated weights",
    .kills = "gather.sees-updated-weights",
    .shows = shows,
    .engine = "impl",
    .wrap = wrap,
};
