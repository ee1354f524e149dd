/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gathered_kept.c - what an all-gather delivered stays after it was unpacked.
 */
#include "mutants/wrap_kit.h"

static int at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    int status;

    mutant_holding(point == FSDP_PRE_FORWARD);
    status = mutant_real.engine.at(s, point, index);
    if (point == FSDP_END || point == FSDP_CANCEL) {
        mutant_let_go();
    }
    return status;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_hold(env, engine, FSDP_STAGING);
    engine->at = at;
}

MUTANT(gathered_kept) = {
    .name = "gathered-kept",
    .text = "the output of the first all-gather is given back at the end of "
            "the pass only",
    .evidence = "X18: buffers of collectives held to the end of a pass",
    .kills = "memory.peak-total",
    .shows = mutant_rows,
    .wrap = wrap,
};
