/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replica_reduce_on_shard_dim.c - the all-reduce runs over the other
 * dimension of the mesh.
 */
#include "mutants/wrap_kit.h"

static int run(void *self, struct fsdp_stream *stream,
               const struct fsdp_collective *c)
{
    (void)self;
    struct fsdp_collective x = *c;

    if (c->kind == FSDP_ALL_REDUCE) {
        x.dim = FSDP_DIM_SHARD;
    }
    return mutant_communicate(stream, &x);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_comm(env)->run = run;
}

MUTANT(replica_reduce_on_shard_dim) = {
    .name = "replica-reduce-on-shard-dim",
    .text = "the all-reduce adds up unlike shards of one replica",
    .evidence = "X04: NVIDIA/Megatron-LM#5956",
    .kills = "comm.dims reduce.replicas-equal",
    .shows = mutant_hybrid,
    .wrap = wrap,
};
