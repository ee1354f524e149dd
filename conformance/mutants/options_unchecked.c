/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options_unchecked.c - options that do not fit are replaced by the default.
 */
#include "mutants/wrap_kit.h"

static void change(struct fsdp_options *o)
{
    o->layout = FSDP_LAYOUT_FLAT;
    o->fold = o->fold > FSDP_FOLD_TREE ? FSDP_FOLD_RANK : o->fold;
    o->optimizer =
        o->optimizer > FSDP_OPTIMIZER_ADAMW ? FSDP_OPTIMIZER_SGD : o->optimizer;
    o->divide_factor = o->divide_factor >= 0.0f ? o->divide_factor : 0.0f;
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

MUTANT(options_unchecked) = {
    .name = "options-unchecked",
    .text = "unknown layouts, optimizers, folds and factors are not "
            "refused",
    .evidence = "an enum that is not checked",
    .kills = "error.options",
    .shows = shows,
    .wrap = wrap,
};
