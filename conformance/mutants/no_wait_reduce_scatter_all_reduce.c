/* SPDX-License-Identifier: Apache-2.0 */
/*
 * no_wait_reduce_scatter_all_reduce.c - replicas meet before their shards are
 * reduced.
 */
#include "mutants/wrap_kit.h"

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_forget_wait(env, "reduce-scatter->all-reduce");
}

MUTANT(no_wait_reduce_scatter_all_reduce) = {
    .name = "no-wait-reduce-scatter-all-reduce",
    .text = "replicas meet before their shards are reduced",
    .evidence = "X15: DeepSpeed#8061",
    .kills = "stream.no-race",
    .shows = mutant_hybrid,
    .engine = "impl",
    .wrap = wrap,
};
