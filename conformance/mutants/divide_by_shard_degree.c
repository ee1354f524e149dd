/* SPDX-License-Identifier: Apache-2.0 */
/*
 * divide_by_shard_degree.c - with replicas, gradients are divided by the
 * ranks of a shard group only.
 */
#include "mutants/wrap_kit.h"

static int run(void *self, struct fsdp_stream *stream, const struct fsdp_op *op)
{
    (void)self;
    struct fsdp_op x = *op;

    if (op->kind == FSDP_OP_SCALE) {
        x.f[0] = 1.0f / (float)mutant_real.shards;
    }
    return mutant_run(stream, &x);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_device(env)->run = run;
}

MUTANT(divide_by_shard_degree) = {
    .name = "divide-by-shard-degree",
    .text = "the divisor is the extent of the shard dimension, not the "
            "world",
    .evidence = "X04: pytorch/torchtitan#1551, pytorch/pytorch#160285",
    .kills = "reduce.scale",
    .shows = mutant_hybrid,
    .wrap = wrap,
};
