/* SPDX-License-Identifier: Apache-2.0 */
/*
 * no_wait_compute_reduce_scatter.c - a gradient is sent before compute has made
 * it.
 */
#include "mutants/wrap_kit.h"

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_forget_wait(env, "compute->reduce-scatter");
}

MUTANT(no_wait_compute_reduce_scatter) = {
    .name = "no-wait-compute-reduce-scatter",
    .text = "a gradient is sent before compute has made it",
    .evidence = "X16: pytorch#180666",
    .kills = "stream.no-race",
    .shows = mutant_plain,
    .engine = "impl",
    .wrap = wrap,
};
