/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout_ignored.c - whatever layout was asked for, the engine knows one.
 */
#include "mutants/wrap_kit.h"

static void change(struct fsdp_options *o)
{
    o->layout = FSDP_LAYOUT_FLAT;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_options(engine, change);
}

MUTANT(layout_ignored) = {
    .name = "layout-ignored",
    .text = "units are flat, whatever the option says",
    .evidence = "an option that is read by one of two code paths",
    .kills = "comm.message-size layout.whole-rows memory.rest-after-shard",
    .shows = mutant_rows,
    .wrap = wrap,
};
