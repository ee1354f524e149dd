/* SPDX-License-Identifier: Apache-2.0 */
/*
 * no_wait_dead_reuse.c - storage is filled anew before what was there has been
 * read.
 */
#include "mutants/wrap_kit.h"

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_forget_wait(env, "dead->reuse");
}

MUTANT(no_wait_dead_reuse) = {
    .name = "no-wait-dead-reuse",
    .text = "storage is filled anew before what was there has been read",
    .evidence = "X15: pytorch#180665, Megatron-LM#6187",
    .kills = "stream.no-race",
    .shows = mutant_plain,
    .engine = "impl",
    .wrap = wrap,
};
