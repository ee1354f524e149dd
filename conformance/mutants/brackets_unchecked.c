/* SPDX-License-Identifier: Apache-2.0 */
/*
 * brackets_unchecked.c - BEGIN in a pass, and END before its end, are
 * ignored without a word.
 */
#include "mutants/wrap_kit.h"

static bool is_bracket(uint32_t point)
{
    return point == FSDP_BEGIN || point == FSDP_END;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_forgive(engine, is_bracket);
}

MUTANT(brackets_unchecked) = {
    .name = "brackets-unchecked",
    .text = "BEGIN twice and an early END are not refused",
    .evidence = "X22: pytorch/pytorch#117510",
    .kills = "error.out-of-order "
             "error.pass-edges",
    .shows = mutant_misuse,
    .wrap = wrap,
};
