/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_in_pass.c - step is taken for granted in the middle of a pass.
 */
#include "mutants/wrap_kit.h"

static int step(struct fsdp_sharded *s, struct fsdp_step *how)
{
    int status = mutant_real.engine.step(s, how);

    return status == FSDP_ERR_INVALID ? FSDP_OK : status;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    engine->step = step;
}

static bool shows(const struct run_case *c)
{
    return c->scenario == CASE_MISUSE && c->sync[0] &&
           (c->sync[1] || c->microbatches < 2);
}

MUTANT(step_in_pass) = {
    .name = "step-in-pass",
    .text = "step succeeds where it must be refused, and does nothing",
    .evidence = "X16: pytorch/pytorch#180666",
    .kills = "error.step-arguments "
             "error.step-in-pass",
    .shows = shows,
    .wrap = wrap,
};
