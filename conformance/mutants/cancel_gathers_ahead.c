/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cancel_gathers_ahead.c - a pass that is cancelled had gathered further ahead
 * than it may.
 */
#include "mutants/wrap_kit.h"

#include <string.h>

static void change(struct fsdp_options *o)
{
    o->prefetch_backward += o->prefetch_backward > 0 ? 1 : 0;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_options(engine, change);
}

/* Where a pass is cancelled enough units are still to come. */
static bool shows(const struct run_case *c)
{
    return strcmp(c->workload, "gpt") == 0 && c->scenario == CASE_CANCEL &&
           c->prefetch_backward > 0 && c->strategy == CASE_HYBRID_SHARD;
}

MUTANT(cancel_gathers_ahead) = {
    .name = "cancel-gathers-ahead",
    .text = "before CANCEL one unit more is gathered than the options say",
    .evidence = "PREF-3: a limit in flight that is not kept",
    .kills = "comm.all-gather-count",
    .shows = shows,
    .engine = "impl",
    .n_cases = 1,
    .wrap = wrap,
};
