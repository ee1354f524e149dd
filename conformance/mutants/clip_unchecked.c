/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clip_unchecked.c - what cannot be clipped to is passed over in silence.
 */
#include "mutants/wrap_kit.h"

static int clip(struct fsdp_sharded *s, const struct fsdp_clip *how,
                float *out_norm)
{
    return how->max_norm > 0.0f
               ? mutant_real.engine.clip_grad_norm(s, how, out_norm)
               : FSDP_OK;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    engine->clip_grad_norm = clip;
}

MUTANT(clip_unchecked) = {
    .name = "clip-unchecked",
    .text = "clipping to 0 or NaN is answered with OK",
    .evidence = "CLIP-6: gradients that are no numbers",
    .kills = "error.clip-arguments",
    .shows = mutant_clips,
    .wrap = wrap,
};
