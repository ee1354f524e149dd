/* SPDX-License-Identifier: Apache-2.0 */
/*
 * barrier_in_pass.c - ranks wait for each other at the end of each pass.
 */
#include "mutants/wrap_kit.h"

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_communicate_at_end(engine, FSDP_BARRIER);
}

MUTANT(barrier_in_pass) = {
    .name = "barrier-in-pass",
    .text = "a barrier at END",
    .evidence = "COMM-13: a step needs no barrier",
    .kills = "comm.nothing-else",
    .shows = mutant_plain,
    .wrap = wrap,
};
