/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zero_grad_noop.c - gradients of the step before are never dropped.
 */
#include "mutants/wrap_kit.h"

static int zero_grad(struct fsdp_sharded *s)
{
    (void)s;
    return FSDP_OK;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    engine->zero_grad = zero_grad;
}

MUTANT(zero_grad_noop) = {
    .name = "zero-grad-noop",
    .text = "zero_grad does nothing",
    .evidence = "X24: deepspeedai/DeepSpeed#966",
    .kills = "memory.rest-after-step reduce.fold",
    .shows = mutant_plain,
    .wrap = wrap,
};
