/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cancel_leaks.c - a pass that is cancelled does not give its gradients
 * back.
 */
#include "mutants/wrap_kit.h"

static int at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    int status;

    mutant_holding(point == FSDP_CANCEL);
    status = mutant_real.engine.at(s, point, index);
    mutant_holding(false);
    return status;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_hold(env, engine, FSDP_GRAD_FULL);
    engine->at = at;
}

static bool shows(const struct run_case *c)
{
    return mutant_mlp(c) && c->scenario == CASE_CANCEL;
}

MUTANT(cancel_leaks) = {
    .name = "cancel-leaks",
    .text = "unsharded gradients of a cancelled pass stay live",
    .evidence = "X48: a leak after an exception, deepspeedai/DeepSpeed#3582",
    .kills = "memory.rest-after-step",
    .shows = shows,
    .wrap = wrap,
};
