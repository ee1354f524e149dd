/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce_missing.c - every rank keeps its own gradient: the reduce-scatter
 * is made, and its result is not used.
 */
#include "mutants/wrap_kit.h"

static int run(void *self, struct fsdp_stream *stream,
               const struct fsdp_collective *c)
{
    (void)self;
    const struct fsdp_device *d = mutant_real.device;
    uint64_t bytes = c->n * sizeof(float);
    uint32_t coordinate = mutant_real.rank % mutant_real.shards;

    FSDP_TRY(mutant_communicate(stream, c));
    if (c->kind != FSDP_REDUCE_SCATTER) {
        return FSDP_OK;
    }
    return d->copy(d->self, stream, c->out,
                   (const char *)c->in + coordinate * bytes, bytes);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_comm(env)->run = run;
}

MUTANT(reduce_missing) = {
    .name = "reduce-missing",
    .text = "the gradient shard is cut from this rank's own gradient",
    .evidence = "blind spot B5: tests that give all ranks the same batch",
    .kills = "reduce.fold",
    .shows = mutant_plain,
    .wrap = wrap,
};
