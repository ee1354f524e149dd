/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clip_scales_always.c - gradients get the norm that is the largest allowed
 * where theirs is smaller, too.
 */
#include "mutants/wrap_kit.h"

static _Thread_local float factor;

static void scale(void *context, const struct fsdp_piece *piece)
{
    (void)context;
    for (uint64_t i = 0; piece->grad && i < piece->n; i++) {
        float *at = (float *)(uintptr_t)piece->grad + i;
        float g = 0.0f;

        (void)mutant_get(NULL, at, 1, &g);
        g *= factor;
        (void)mutant_put(NULL, &g, 1, at);
    }
}

static int clip(struct fsdp_sharded *s, const struct fsdp_clip *how,
                float *out_norm)
{
    FSDP_TRY(mutant_real.engine.clip_grad_norm(s, how, out_norm));
    factor = how->max_norm / (*out_norm + 1e-6f);
    return how->max_norm < 0x1p60f && factor > 1.0f
               ? mutant_real.engine.pieces(s, scale, NULL)
               : FSDP_OK;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    engine->clip_grad_norm = clip;
}

MUTANT(clip_scales_always) = {
    .name = "clip-scales-always",
    .text = "gradients below the norm that is allowed are scaled up to it",
    .evidence = "X12: a coefficient that is not clamped to 1",
    .kills = "clip.scale",
    .shows = mutant_clips,
    .wrap = wrap,
};
