/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quotient_not_product.c - the reduced gradient is divided by the world
 * instead of multiplied by its inverse: half an ulp apart.
 */
#include "mutants/wrap_kit.h"

static float divide(float x)
{
    return x / (float)mutant_real.world;
}

static int run(void *self, struct fsdp_stream *stream, const struct fsdp_op *op)
{
    (void)self;
    return op->kind == FSDP_OP_SCALE
               ? mutant_each(stream, op->out[0].p, op->dim[0], divide)
               : mutant_run(stream, op);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_device(env)->run = run;
}

static bool shows(const struct run_case *c)
{
    return mutant_plain(c) && c->ranks == 3;
}

MUTANT(quotient_not_product) = {
    .name = "quotient-not-product",
    .text = "g / K is computed where g * (1 / K) is specified",
    .evidence = "the reason for which numerics are pinned to the bit",
    .kills = "reduce.fold",
    .shows = shows,
    .wrap = wrap,
};
