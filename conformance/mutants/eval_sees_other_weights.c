/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eval_sees_other_weights.c - an evaluation does not see the weights that
 * training sees.
 */
#include "mutants/wrap_kit.h"

static _Thread_local bool evaluating;

static int at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    if (point == FSDP_BEGIN) {
        evaluating = index == FSDP_SEQUENCE_EVAL;
    }
    return mutant_real.engine.at(s, point, index);
}

static int run(void *self, struct fsdp_stream *stream,
               const struct fsdp_collective *c)
{
    (void)self;
    FSDP_TRY(mutant_communicate(stream, c));
    return c->kind == FSDP_ALL_GATHER ? mutant_stale(stream, c, !evaluating)
                                      : FSDP_OK;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    evaluating = false;
    engine->at = at;
    mutant_comm(env)->run = run;
}

static bool shows(const struct run_case *c)
{
    return mutant_mlp(c) && c->scenario == CASE_EVAL && c->ranks > c->replicas;
}

MUTANT(eval_sees_other_weights) = {
    .name = "eval-sees-other-weights",
    .text = "in an evaluation, gathered parameters are those of the "
            "first step",
    .evidence = "X50: Megatron-FSDP v2, the test that the next forward uses "
                "updated weights",
    .kills = "eval.equals-training-forward",
    .shows = shows,
    .wrap = wrap,
};
