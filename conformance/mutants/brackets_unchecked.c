/* SPDX-License-Identifier: Apache-2.0 */
/*
 * brackets_unchecked.c - BEGIN in a pass, and END before its end, are
 * ignored without a word.
 */
#include "mutants/wrap_kit.h"

static int at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    int status = mutant_real.engine.at(s, point, index);

    return status == FSDP_ERR_INVALID &&
                   (point == FSDP_BEGIN || point == FSDP_END)
               ? FSDP_OK
               : status;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    engine->at = at;
}

static bool shows(const struct run_case *c)
{
    return mutant_mlp(c) && c->scenario == CASE_MISUSE;
}

MUTANT(brackets_unchecked) = {
    .name = "brackets-unchecked",
    .text = "BEGIN twice and an early END are not refused",
    .evidence = "X22: pytorch/pytorch#117510",
    .kills = "error.out-of-order "
             "error.pass-edges",
    .shows = shows,
    .wrap = wrap,
};
