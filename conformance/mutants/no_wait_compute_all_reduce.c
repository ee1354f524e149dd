/* SPDX-License-Identifier: Apache-2.0 */
/*
 * no_wait_compute_all_reduce.c - a replica's gradient is sent before compute
 * has made it.
 */
#include "mutants/wrap_kit.h"

static bool replicated(const struct run_case *c)
{
    return mutant_train(c) && c->strategy == CASE_NO_SHARD && c->ranks > 1;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_forget_wait(env, "compute->all-reduce");
}

MUTANT(no_wait_compute_all_reduce) = {
    .name = "no-wait-compute-all-reduce",
    .text = "a replica's gradient is sent before compute has made it",
    .evidence = "X16: pytorch#180666",
    .kills = "stream.no-race",
    .shows = replicated,
    .engine = "impl",
    .wrap = wrap,
};
