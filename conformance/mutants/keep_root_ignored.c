/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keep_root_ignored.c - the root is resharded after forward though it was to
 * be kept.
 */
#include "mutants/wrap_kit.h"

#include <string.h>

static void change(struct fsdp_options *o)
{
    o->keep_root = 0;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_options(engine, change);
}

static bool shows(const struct run_case *c)
{
    return c->keep_root && c->scenario == CASE_TRAIN &&
           c->strategy == CASE_FULL_SHARD && strcmp(c->size, "odd") == 0;
}

MUTANT(keep_root_ignored) = {
    .name = "keep-root-ignored",
    .text = "the root unit is gathered twice a step",
    .evidence = "X23: pytorch/pytorch#149029",
    .kills = "comm.all-gather-count",
    .shows = shows,
    .wrap = wrap,
};
