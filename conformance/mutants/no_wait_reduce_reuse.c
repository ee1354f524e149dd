/* SPDX-License-Identifier: Apache-2.0 */
/*
 * no_wait_reduce_reuse.c - a gradient is given up while it is being sent.
 */
#include "mutants/wrap_kit.h"

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_forget_wait(env, "reduce->reuse");
}

MUTANT(no_wait_reduce_reuse) = {
    .name = "no-wait-reduce-reuse",
    .text = "a gradient is given up while it is being sent",
    .evidence = "X15: pytorch#180665",
    .kills = "stream.no-race",
    .shows = mutant_ahead,
    .engine = "impl",
    .wrap = wrap,
};
