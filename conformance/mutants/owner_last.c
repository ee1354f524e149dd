/* SPDX-License-Identifier: Apache-2.0 */
/*
 * owner_last.c - gradients are folded in the order of a ring, the owner
 * last, where ranks in order are asked for.
 */
#include "mutants/wrap_kit.h"

static int run(void *self, struct fsdp_stream *stream,
               const struct fsdp_collective *c)
{
    (void)self;
    struct fsdp_collective x = *c;

    if (c->kind == FSDP_REDUCE_SCATTER || c->kind == FSDP_ALL_REDUCE) {
        x.fold = FSDP_FOLD_RING;
    }
    return mutant_communicate(stream, &x);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_comm(env)->run = run;
}

MUTANT(owner_last) = {
    .name = "owner-last",
    .text = "folds in ring order where rank order is declared",
    .evidence = "NCCL ring reduce-scatter against a fold by rank",
    .kills = "comm.fold-declared reduce.fold",
    .shows = mutant_plain,
    .wrap = wrap,
};
