/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile_nan.c - every number that is lent to the model is NaN.
 */
#include "mutants/wrap_kit.h"

#include <math.h>

static float spoil(float x)
{
    (void)x;
    return NAN;
}

static int run(void *self, struct fsdp_stream *stream,
               const struct fsdp_collective *c)
{
    (void)self;
    FSDP_TRY(mutant_communicate(stream, c));
    return c->kind == FSDP_ALL_GATHER
               ? mutant_each(stream, c->out, c->n * mutant_real.shards, spoil)
               : FSDP_OK;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_comm(env)->run = run;
}

MUTANT(hostile_nan) = {
    .name = "hostile-nan",
    .text = "gathered parameters are NaN, which no comparison calls "
            "greater",
    .evidence = "blind spot: a check written as error > bound passes NaN",
    .kills = "gather.unsharded-values",
    .shows = mutant_plain,
    .wrap = wrap,
};
