/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce_input_held.c - what a reduce-scatter has read is given back at the
 * end of the pass.
 */
#include "mutants/wrap_kit.h"

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_hold_pass(env, engine, FSDP_GRAD_FULL);
}

MUTANT(reduce_input_held) = {
    .name = "reduce-input-held",
    .text = "unsharded gradients stay live until END",
    .evidence = "X18: pytorch/pytorch#179443",
    .kills = "memory.peak-gradients",
    .shows = mutant_plain,
    .wrap = wrap,
};
