/* SPDX-License-Identifier: Apache-2.0 */
/*
 * no_wait_reduce_optimizer.c - the optimizer does not wait for reduced
 * gradients.
 */
#include "mutants/wrap_kit.h"

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_forget_wait(env, "reduce->optimizer");
}

MUTANT(no_wait_reduce_optimizer) = {
    .name = "no-wait-reduce-optimizer",
    .text = "the optimizer does not wait for reduced gradients",
    .evidence = "X29: pytorch#115710",
    .kills = "stream.no-race",
    .shows = mutant_plain,
    .engine = "impl",
    .wrap = wrap,
};
