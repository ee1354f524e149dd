/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_load_in_pass.c - weights may change under a pass.
 */
#include "mutants/wrap_kit.h"

static int load(struct fsdp_sharded *s, const char *directory)
{
    int status = mutant_real.engine.load(s, directory);

    return status == FSDP_ERR_INVALID ? FSDP_OK : status;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    engine->load = load;
}

MUTANT(checkpoint_load_in_pass) = {
    .name = "checkpoint-load-in-pass",
    .text = "a load in a pass is not refused",
    .evidence = "CKPT-5: load while gathers are in flight",
    .kills = "error.load-in-pass",
    .shows = mutant_resume,
    .wrap = wrap,
};
