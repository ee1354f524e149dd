/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_key_of_some.c - what only some ranks have to save is not saved.
 */
#include "mutants/wrap_kit.h"

static int save_begin(struct fsdp_sharded *s, const struct fsdp_save *save)
{
    struct fsdp_save fewer = *save;

    fewer.n_extra = save->n_extra < 2 ? save->n_extra : 2;
    return mutant_real.engine.save_begin(s, &fewer);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    engine->save_begin = save_begin;
}

MUTANT(checkpoint_key_of_some) = {
    .name = "checkpoint-key-of-some",
    .text = "state that rank 0 has not is left out of a checkpoint",
    .evidence = "X42: NVIDIA/Megatron-LM#6573",
    .kills = "checkpoint.extra",
    .shows = mutant_resume,
    .wrap = wrap,
};
