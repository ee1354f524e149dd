/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refusal_disturbs.c - a call that is refused leaves its trace.
 */
#include "mutants/wrap_kit.h"

static bool is_refused(uint32_t point, int status)
{
    return status == FSDP_ERR_INVALID && point != FSDP_END;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_disturb(env, engine, is_refused);
}

MUTANT(refusal_disturbs) = {
    .name = "refusal-disturbs",
    .text = "the pass in which a point was refused is averaged in "
            "another way",
    .evidence = "X32: a failure that changes what it refused to do",
    .kills = "error.misuse-harmless",
    .shows = mutant_misuse,
    .wrap = wrap,
};
