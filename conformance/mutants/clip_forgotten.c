/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clip_forgotten.c - says the norm and clips nothing.
 */
#include "mutants/wrap_kit.h"

#include <math.h>

static int clip(struct fsdp_sharded *s, const struct fsdp_clip *how,
                float *out_norm)
{
    struct fsdp_clip own = *how;

    if (own.max_norm > 0.0f) {
        own.max_norm = INFINITY;
    }
    return mutant_real.engine.clip_grad_norm(s, &own, out_norm);
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    engine->clip_grad_norm = clip;
}

MUTANT(clip_forgotten) = {
    .name = "clip-forgotten",
    .text = "the norm is measured and nothing is clipped",
    .evidence = "X12: DeepSpeed#5150",
    .kills = "clip.scale",
    .shows = mutant_clips,
    .wrap = wrap,
};
