/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replica_reduce_missing.c - gradients stay within a group of shards: the
 * all-reduce between replicas is left out.
 */
#include "mutants/wrap_kit.h"

static int run(void *self, struct fsdp_stream *stream,
               const struct fsdp_collective *c)
{
    (void)self;
    return c->kind == FSDP_ALL_REDUCE ? FSDP_OK : mutant_communicate(stream, c);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_comm(env)->run = run;
}

MUTANT(replica_reduce_missing) = {
    .name = "replica-reduce-missing",
    .text = "no all-reduce over replicas",
    .evidence = "X06: NVIDIA-NeMo/Automodel#3135",
    .kills = "comm.all-reduce-count reduce.replicas-equal",
    .shows = mutant_hybrid,
    .wrap = wrap,
};
