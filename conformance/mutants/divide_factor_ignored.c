/* SPDX-License-Identifier: Apache-2.0 */
/*
 * divide_factor_ignored.c - the divide factor that was asked for is not
 * used.
 */
#include "mutants/wrap_kit.h"

static void change(struct fsdp_options *o)
{
    o->divide_factor = 0.0f;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_options(engine, change);
}

static bool shows(const struct run_case *c)
{
    return mutant_mlp(c) && c->scenario == CASE_TRAIN && c->ranks > 1 &&
           c->divide_factor != 0.0f;
}

MUTANT(divide_factor_ignored) = {
    .name = "divide-factor-ignored",
    .text = "gradients are divided by the world whatever the option "
            "says",
    .evidence = "X03: pytorch/pytorch#167178",
    .kills = "reduce.scale",
    .shows = shows,
    .wrap = wrap,
};
