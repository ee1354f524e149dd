/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile_one_rank_wrong.c - the last rank changes one bit of one gradient,
 * once.
 */
#include "mutants/wrap_kit.h"

#include <fsdp/arith/bits.h>

static _Thread_local bool done;

static int run(void *self, struct fsdp_stream *stream, const struct fsdp_op *op)
{
    (void)self;
    float x;

    FSDP_TRY(mutant_run(stream, op));
    if (op->kind != FSDP_OP_SCALE || op->dim[0] == 0 || done ||
        mutant_real.rank + 1 != mutant_real.world) {
        return FSDP_OK;
    }
    done = true;
    FSDP_TRY(mutant_get(stream, op->out[0].p, 1, &x));
    x = fsdp_f32_from_bits(fsdp_f32_bits(x) ^ 1u);
    return mutant_put(stream, &x, 1, op->out[0].p);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    done = false;
    mutant_device(env)->run = run;
}

MUTANT(hostile_one_rank_wrong) = {
    .name = "hostile-one-rank-wrong",
    .text = "one bit of one element of one rank's first reduced "
            "gradient is wrong",
    .evidence = "X15: pytorch/pytorch#180665",
    .kills = "reduce.fold",
    .shows = mutant_plain,
    .wrap = wrap,
};
