/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefetch_too_deep.c - gathers further ahead than it was told.
 */
#include "mutants/wrap_kit.h"

#include <string.h>

static void change(struct fsdp_options *o)
{
    o->prefetch_forward += o->prefetch_forward > 0 ? 2 : 0;
    o->prefetch_backward += o->prefetch_backward > 0 ? 2 : 0;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_options(engine, change);
}

/* All four layers at once are more than the two largest. */
static bool shows(const struct run_case *c)
{
    return strcmp(c->workload, "mlp") == 0 && strcmp(c->size, "seed") == 0 &&
           c->scenario == CASE_TRAIN && c->wrap == CASE_WRAP_LAYER &&
           c->strategy == CASE_FULL_SHARD && c->prefetch_forward < 2 &&
           c->prefetch_backward == 1;
}

MUTANT(prefetch_too_deep) = {
    .name = "prefetch-too-deep",
    .text = "two more units are gathered ahead than the options say",
    .evidence = "PREF-3: a limit in flight that is not kept",
    .kills = "memory.prefetch-bound",
    .shows = shows,
    .n_cases = 1,
    .engine = "impl",
    .wrap = wrap,
};
