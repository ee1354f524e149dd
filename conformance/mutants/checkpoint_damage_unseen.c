/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_damage_unseen.c - a turned bit is loaded like any other.
 */
#include "mutants/wrap_kit.h"

static int load(struct fsdp_sharded *s, const char *directory)
{
    int status = mutant_real.engine.load(s, directory);

    return status == FSDP_ERR_FORMAT ? FSDP_OK : status;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    engine->load = load;
}

MUTANT(checkpoint_damage_unseen) = {
    .name = "checkpoint-damage-unseen",
    .text = "a damaged checkpoint is not refused",
    .evidence = "X41: deepspeedai/DeepSpeed#1748",
    .kills = "error.load-damaged",
    .shows = mutant_resume,
    .wrap = wrap,
};
