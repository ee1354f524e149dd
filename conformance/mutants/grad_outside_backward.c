/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grad_outside_backward.c - storage for a gradient is lent outside the
 * backward.
 */
#include "mutants/wrap_kit.h"

static int grad(struct fsdp_sharded *s, uint32_t p, struct fsdp_tensor *out)
{
    int status = mutant_real.engine.grad(s, p, out);

    return status == FSDP_ERR_INVALID ? FSDP_OK : status;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    engine->grad = grad;
}

MUTANT(grad_outside_backward) = {
    .name = "grad-outside-backward",
    .text = "grad succeeds outside its module's backward",
    .evidence = "X22: pytorch/pytorch#117510",
    .kills = "error.gradient-after-backward "
             "error.gradient-outside-backward",
    .shows = mutant_misuse,
    .wrap = wrap,
};
