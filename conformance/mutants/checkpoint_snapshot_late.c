/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_snapshot_late.c - a save is a promise: what is written is what is
 * there when it is waited for.
 */
#include "mutants/wrap_kit.h"

#include <stdio.h>
#include <string.h>

enum {
    EXTRAS = 3,
    EXTRA_BYTES = 256
};

static _Thread_local struct fsdp_save kept;
static _Thread_local char directory[4200];
static _Thread_local const char *name[EXTRAS];
static _Thread_local const void *data[EXTRAS];
static _Thread_local uint64_t bytes[EXTRAS];
static _Thread_local unsigned char copy[EXTRAS][EXTRA_BYTES];

/* The caller's own is as it was; only the engine's is not. */
static void keep(const struct fsdp_save *save)
{
    kept = *save;
    (void)snprintf(directory, sizeof directory, "%s", save->directory);
    for (uint32_t i = 0; i < save->n_extra && i < EXTRAS; i++) {
        name[i] = save->extra_name[i];
        bytes[i] = save->extra_bytes[i] < EXTRA_BYTES ? save->extra_bytes[i]
                                                      : EXTRA_BYTES;
        memcpy(copy[i], save->extra_data[i], bytes[i]);
        data[i] = copy[i];
    }
    kept.directory = directory;
    kept.extra_name = name;
    kept.extra_data = data;
    kept.extra_bytes = bytes;
}

/* The real one writes elsewhere, so that all refusals are its own. */
static int save_begin(struct fsdp_sharded *s, const struct fsdp_save *save)
{
    char wrong[4300];
    struct fsdp_save elsewhere = *save;
    int status;

    (void)snprintf(wrong, sizeof wrong, "%s/elsewhere", save->directory);
    elsewhere.directory = wrong;
    status = mutant_real.engine.save_begin(s, &elsewhere);
    if (status == FSDP_OK) {
        keep(save);
    }
    return status;
}

static int save_wait(struct fsdp_sharded *s)
{
    FSDP_TRY(mutant_real.engine.save_wait(s));
    FSDP_TRY(mutant_real.engine.save_begin(s, &kept));
    return mutant_real.engine.save_wait(s);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    memset(directory, 0, sizeof directory);
    engine->save_begin = save_begin;
    engine->save_wait = save_wait;
}

MUTANT(checkpoint_snapshot_late) = {
    .name = "checkpoint-snapshot-late",
    .text = "a checkpoint has the weights of the step that was trained while "
            "it was written",
    .evidence = "X39: pytorch/pytorch#198020",
    .kills = "checkpoint.canonical checkpoint.moments checkpoint.parameters",
    .shows = mutant_resume,
    .wrap = wrap,
};
