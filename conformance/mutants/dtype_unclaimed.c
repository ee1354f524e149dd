/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dtype_unclaimed.c - bf16 is accepted, and float32 is what one gets.
 */
#include "mutants/wrap_kit.h"

static void change(struct fsdp_options *o)
{
    o->param_dtype = FSDP_DTYPE_NONE;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_options(engine, change);
}

static bool shows(const struct run_case *c)
{
    return c->scenario == CASE_OPTIONS;
}

MUTANT(dtype_unclaimed) = {
    .name = "dtype-unclaimed",
    .text = "a dtype that is not claimed is not refused",
    .evidence = "X27: pytorch/pytorch#194628",
    .kills = "error.unclaimed-dtype",
    .shows = shows,
    .wrap = wrap,
};
