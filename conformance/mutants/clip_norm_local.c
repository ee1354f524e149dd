/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clip_norm_local.c - each rank clips by the norm of its own shards.
 */
#include "mutants/wrap_kit.h"

#include <math.h>

static _Thread_local double squares;

static void add(void *context, const struct fsdp_piece *piece)
{
    (void)context;
    for (uint64_t i = 0; piece->grad && i < piece->n; i++) {
        float g = 0.0f;

        (void)mutant_get(NULL, (const float *)piece->grad + i, 1, &g);
        squares += (double)g * (double)g;
    }
}

/* By as much less or more as the norm of all is beyond its own. */
static int clip(struct fsdp_sharded *s, const struct fsdp_clip *how,
                float *out_norm)
{
    struct fsdp_clip own = *how;

    own.max_norm = INFINITY;
    FSDP_TRY(mutant_real.engine.clip_grad_norm(s, how->p > 0.0f ? &own : how,
                                               out_norm));
    squares = 0.0;
    FSDP_TRY(mutant_real.engine.pieces(s, add, NULL));
    own.max_norm = how->max_norm;
    if (how->p == 2.0f && *out_norm > 0.0f && squares > 0.0) {
        own.max_norm *= *out_norm / (float)sqrt(squares);
    }
    FSDP_TRY(mutant_real.engine.clip_grad_norm(s, &own, out_norm));
    if (how->p == 2.0f) {
        *out_norm = (float)sqrt(squares);
    }
    return FSDP_OK;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    engine->clip_grad_norm = clip;
}

static bool shows(const struct run_case *c)
{
    return mutant_clips(c) && c->ranks > c->replicas;
}

MUTANT(clip_norm_local) = {
    .name = "clip-norm-local",
    .text = "a rank clips by the norm of its own shards",
    .evidence = "X11: torchtitan#766, pytorch#170862",
    .kills = "clip.norm",
    .shows = shows,
    .wrap = wrap,
};
