/* SPDX-License-Identifier: Apache-2.0 */
/*
 * initial_same_shards.c - every shard starts as a copy of the first.
 */
#include "mutants/wrap_kit.h"

static int initial(void *context, uint32_t p, uint64_t first, uint64_t n,
                   void *out)
{
    (void)first;
    return mutant_real.initial(context, p, 0, n, out);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_initial(engine, initial);
}

MUTANT(initial_same_shards) = {
    .name = "initial-same-shards",
    .text = "initial values are asked for from element 0, whatever the "
            "shard",
    .evidence = "X08: pytorch/torchtitan#3106",
    .kills = "layout.initial-values",
    .shows = mutant_plain,
    .wrap = wrap,
};
