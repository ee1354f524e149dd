/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_dated.c - every save writes down how many there were before it.
 */
#include "mutants/wrap_kit.h"

#include <string.h>

static _Thread_local uint32_t n_saves;

static int save_begin(struct fsdp_sharded *s, const struct fsdp_save *save)
{
    const char *name[4] = {"date"};
    const void *data[4] = {&n_saves};
    uint64_t bytes[4] = {sizeof n_saves};
    struct fsdp_save dated = *save;

    for (uint32_t i = 0; i < save->n_extra && i < 3; i++) {
        name[i + 1] = save->extra_name[i];
        data[i + 1] = save->extra_data[i];
        bytes[i + 1] = save->extra_bytes[i];
    }
    n_saves++;
    dated.n_extra = save->n_extra + 1;
    dated.extra_name = name;
    dated.extra_data = data;
    dated.extra_bytes = bytes;
    return mutant_real.engine.save_begin(s, &dated);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    n_saves = 0;
    engine->save_begin = save_begin;
}

MUTANT(checkpoint_dated) = {
    .name = "checkpoint-dated",
    .text = "equal states are saved as different files",
    .evidence = "C1: archives that have a date in them",
    .kills = "checkpoint.canonical",
    .shows = mutant_resume,
    .wrap = wrap,
};
