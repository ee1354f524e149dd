/* SPDX-License-Identifier: Apache-2.0 */
/*
 * no_wait_all_reduce_reuse.c - the next contribution overwrites one that is
 * still being added.
 */
#include "mutants/wrap_kit.h"

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_forget_wait(env, "all-reduce->reuse");
}

MUTANT(no_wait_all_reduce_reuse) = {
    .name = "no-wait-all-reduce-reuse",
    .text = "the next contribution overwrites one that is still being added",
    .evidence = "X15: pytorch#180665",
    .kills = "stream.no-race",
    .shows = mutant_hybrid_ahead,
    .engine = "impl",
    .wrap = wrap,
};
