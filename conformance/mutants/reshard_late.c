/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reshard_late.c - what a unit was unsharded into is given back at the end
 * of the pass.
 */
#include "mutants/wrap_kit.h"

static int at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    int status = mutant_real.engine.at(s, point, index);

    if (point == FSDP_END) {
        mutant_let_go();
    }
    return status;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_hold(env, engine, FSDP_PARAM_FULL);
    mutant_holding(true);
    engine->at = at;
}

MUTANT(reshard_late) = {
    .name = "reshard-late",
    .text = "unsharded parameters stay live until END",
    .evidence = "X19: pytorch/pytorch#83917",
    .kills = "memory.peak-unsharded",
    .shows = mutant_plain,
    .wrap = wrap,
};
