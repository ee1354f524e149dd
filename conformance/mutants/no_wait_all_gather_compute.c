/* SPDX-License-Identifier: Apache-2.0 */
/*
 * no_wait_all_gather_compute.c - compute does not wait for the all-gather of
 * its parameters.
 */
#include "mutants/wrap_kit.h"

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_forget_wait(env, "all-gather->compute");
}

MUTANT(no_wait_all_gather_compute) = {
    .name = "no-wait-all-gather-compute",
    .text = "compute does not wait for the all-gather of its parameters",
    .evidence =
        "X17: DeepSpeed#5216: parameters are used before they are complete",
    .kills = "stream.no-race",
    .shows = mutant_plain,
    .engine = "impl",
    .wrap = wrap,
};
