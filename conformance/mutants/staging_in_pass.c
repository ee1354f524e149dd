/* SPDX-License-Identifier: Apache-2.0 */
/*
 * staging_in_pass.c - packing buffers as large as all shards live during a
 * pass.
 */
#include "mutants/wrap_kit.h"

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_ballast(env, engine, FSDP_STAGING);
}

MUTANT(staging_in_pass) = {
    .name = "staging-in-pass",
    .text = "staging memory grows with the model, not with the largest "
            "unit",
    .evidence = "X18: ISEEKYAN/Megatron-LM#158",
    .kills = "memory.peak-total",
    .shows = mutant_plain,
    .wrap = wrap,
};
