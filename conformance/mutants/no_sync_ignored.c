/* SPDX-License-Identifier: Apache-2.0 */
/*
 * no_sync_ignored.c - every microbatch is reduced, asked for or not.
 */
#include "mutants/wrap_kit.h"

static int set_gradient_sync(struct fsdp_sharded *s, uint32_t on)
{
    (void)on;
    return mutant_real.engine.set_gradient_sync(s, 1);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    engine->set_gradient_sync = set_gradient_sync;
}

static bool shows(const struct run_case *c)
{
    return mutant_accumulates(c) && c->replicas == 1;
}

MUTANT(no_sync_ignored) = {
    .name = "no-sync-ignored",
    .text = "set_gradient_sync(0) has no effect",
    .evidence = "X26: NVIDIA/cosmos-framework#161",
    .kills = "accumulate.no-sync comm.reduce-scatter-count "
             "memory.peak-gradients memory.peak-total",
    .shows = shows,
    .wrap = wrap,
};
