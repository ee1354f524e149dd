/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_in_pass.c - a save is taken whenever it is asked for, also in the
 * middle of an all-gather.
 */
#include "mutants/wrap_kit.h"

static _Thread_local bool saving, refused; /* by the real one */

static int save_begin(struct fsdp_sharded *s, const struct fsdp_save *save)
{
    int status = mutant_real.engine.save_begin(s, save);

    if (saving) {
        return status; /* one at a time: that is another fault */
    }
    saving = true;
    refused = status != FSDP_OK;
    return FSDP_OK;
}

static int save_wait(struct fsdp_sharded *s)
{
    int status = saving && refused ? FSDP_OK : mutant_real.engine.save_wait(s);

    saving = false;
    refused = false;
    return status;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    saving = refused = false;
    engine->save_begin = save_begin;
    engine->save_wait = save_wait;
}

MUTANT(checkpoint_in_pass) = {
    .name = "checkpoint-in-pass",
    .text = "a save in a pass, or with gradients, is not refused",
    .evidence = "X39: pytorch/pytorch#198020",
    .kills = "error.save-out-of-place",
    .shows = mutant_resume,
    .wrap = wrap,
};
