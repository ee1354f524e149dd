/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reshard_late.c - what a unit was unsharded into is given back at the end
 * of the pass.
 */
#include "mutants/wrap_kit.h"

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_hold_pass(env, engine, FSDP_PARAM_FULL);
}

MUTANT(reshard_late) = {
    .name = "reshard-late",
    .text = "unsharded parameters stay live until END",
    .evidence = "X19: pytorch/pytorch#83917",
    .kills = "memory.peak-unsharded",
    .shows = mutant_plain,
    .wrap = wrap,
};
