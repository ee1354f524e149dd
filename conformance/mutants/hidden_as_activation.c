/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hidden_as_activation.c - unsharded gradients go by the name of
 * activations, which no bound counts.
 */
#include "mutants/wrap_kit.h"

static void live(void *self, struct fsdp_stream *stream, uint32_t kind,
                 uint32_t unit, void *p, uint64_t bytes)
{
    mutant_real.device->live(self, stream,
                             kind == FSDP_GRAD_FULL ? FSDP_ACTIVATION : kind,
                             unit, p, bytes);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    mutant_device(env)->live = live;
}

MUTANT(hidden_as_activation) = {
    .name = "hidden-as-activation",
    .text = "GRAD_FULL is declared as ACTIVATION",
    .evidence = "design: a kind that is misnamed",
    .kills = "memory.peak-gradients",
    .shows = mutant_plain,
    .wrap = wrap,
};
