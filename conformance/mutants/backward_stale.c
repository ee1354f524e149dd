/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backward_stale.c - the backward sees older weights than its forward did.
 */
#include "mutants/wrap_kit.h"

static _Thread_local bool backward;

static int at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    if (point == FSDP_PRE_FORWARD || point == FSDP_PRE_BACKWARD) {
        backward = point == FSDP_PRE_BACKWARD;
    }
    return mutant_real.engine.at(s, point, index);
}

static int run(void *self, struct fsdp_stream *stream,
               const struct fsdp_collective *c)
{
    (void)self;
    FSDP_TRY(mutant_communicate(stream, c));
    return c->kind == FSDP_ALL_GATHER ? mutant_stale(stream, c, !backward)
                                      : FSDP_OK;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    backward = false;
    engine->at = at;
    mutant_comm(env)->run = run;
}

MUTANT(backward_stale) = {
    .name = "backward-stale",
    .text = "gathered for a backward, parameters are those of the first "
            "step",
    .evidence = "X33: NVIDIA-NeMo/Automodel#3411",
    .kills = "grad.local",
    .shows = mutant_plain,
    .wrap = wrap,
};
