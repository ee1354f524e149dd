/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lr_by_world.c - the learning rate is multiplied by the world.
 */
#include "mutants/wrap_kit.h"

static int step(struct fsdp_sharded *s, struct fsdp_step *how)
{
    struct fsdp_step x = *how;
    float lr = how->lr[0] * (float)mutant_real.world;

    x.lr = &lr;
    return mutant_real.engine.step(s, &x);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    engine->step = step;
}

MUTANT(lr_by_world) = {
    .name = "lr-by-world",
    .text = "every step is taken with K times the learning rate",
    .evidence = "X49: ByteDance-Seed/VeOmni#1079",
    .kills = "step.sgd",
    .shows = mutant_plain,
    .wrap = wrap,
};
