/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eval_keeps_unsharded.c - after an evaluation, parameters stay unsharded
 * until the next pass.
 */
#include "mutants/wrap_kit.h"

static int at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    if (point == FSDP_BEGIN) {
        mutant_let_go();
        mutant_holding(index == FSDP_SEQUENCE_EVAL);
    }
    return mutant_real.engine.at(s, point, index);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_hold(env, engine, FSDP_PARAM_FULL);
    engine->at = at;
}

static bool shows(const struct run_case *c)
{
    return mutant_mlp(c) && c->scenario == CASE_EVAL && c->ranks > c->replicas;
}

MUTANT(eval_keeps_unsharded) = {
    .name = "eval-keeps-unsharded",
    .text = "what an evaluation gathered is not given back",
    .evidence = "X23: pytorch/pytorch#72541",
    .kills = "memory.rest-after-step",
    .shows = shows,
    .wrap = wrap,
};
