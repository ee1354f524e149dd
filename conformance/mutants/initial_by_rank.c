/* SPDX-License-Identifier: Apache-2.0 */
/*
 * initial_by_rank.c - replicas start with other values.
 */
#include "mutants/wrap_kit.h"

static int initial(void *context, uint32_t p, uint64_t first, uint64_t n,
                   void *out)
{
    float *x = out;
    uint32_t replica = mutant_real.rank / mutant_real.shards;
    float factor = (float)(1 + replica);

    FSDP_TRY(mutant_real.initial(context, p, first, n, out));
    for (uint64_t i = 0; i < n; i++) {
        x[i] *= factor;
    }
    return FSDP_OK;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_initial(engine, initial);
}

MUTANT(initial_by_rank) = {
    .name = "initial-by-rank",
    .text = "initial values differ between replicas",
    .evidence = "X07: allenai/OLMo-core#319",
    .kills = "layout.replicas-equal",
    .shows = mutant_hybrid,
    .wrap = wrap,
};
