/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_drops_pending.c - step succeeds although gradients are pending that
 * were not reduced.
 */
#include "mutants/wrap_kit.h"

static _Thread_local bool in_pass;

static int at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    int status = mutant_real.engine.at(s, point, index);

    if (status == FSDP_OK) {
        in_pass = point != FSDP_END && point != FSDP_CANCEL;
    }
    return status;
}

static int step(struct fsdp_sharded *s, struct fsdp_step *how)
{
    int status = mutant_real.engine.step(s, how);

    return status == FSDP_ERR_INVALID && !in_pass ? FSDP_OK : status;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    in_pass = false;
    engine->at = at;
    engine->step = step;
}

static bool shows(const struct run_case *c)
{
    return c->scenario == CASE_MISUSE && c->microbatches > 1 && !c->sync[0];
}

MUTANT(step_drops_pending) = {
    .name = "step-drops-pending",
    .text = "step while gradients are pending is not refused",
    .evidence = "X24: allenai/open-instruct#1498",
    .kills = "error.step-arguments "
             "error.step-with-pending",
    .shows = shows,
    .wrap = wrap,
};
