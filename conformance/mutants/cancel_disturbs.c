/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cancel_disturbs.c - what follows a cancelled pass is not what follows a
 * whole one.
 */
#include "mutants/wrap_kit.h"

static bool is_cancelled(uint32_t point, int status)
{
    (void)status;
    return point == FSDP_CANCEL;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_disturb(env, engine, is_cancelled);
}

static bool shows(const struct run_case *c)
{
    return mutant_mlp(c) && c->scenario == CASE_CANCEL;
}

MUTANT(cancel_disturbs) = {
    .name = "cancel-disturbs",
    .text = "the pass after a cancelled one is averaged in another way",
    .evidence = "X48: deepspeedai/DeepSpeed#3582",
    .kills = "error.cancel-harmless",
    .shows = shows,
    .wrap = wrap,
};
