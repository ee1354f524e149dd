/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clip_counts_replicas.c - the norm is summed over all ranks, replicas too.
 */
#include "mutants/wrap_kit.h"

#include <math.h>

static int clip(struct fsdp_sharded *s, const struct fsdp_clip *how,
                float *out_norm)
{
    const float replicas = (float)mutant_real.replicas;
    const float times = how->p == 1.0f   ? replicas
                        : how->p == 2.0f ? sqrtf(replicas)
                                         : 1.0f;
    struct fsdp_clip own = *how;

    own.max_norm /= times;
    FSDP_TRY(mutant_real.engine.clip_grad_norm(s, &own, out_norm));
    *out_norm *= times;
    return FSDP_OK;
}

static void wrap(struct fsdp_env *env, struct fsdp_engine *engine)
{
    mutant_keep(env, engine);
    engine->clip_grad_norm = clip;
}

static bool shows(const struct run_case *c)
{
    return mutant_clips(c) && c->replicas > 1;
}

MUTANT(clip_counts_replicas) = {
    .name = "clip-counts-replicas",
    .text = "each replica is counted in the norm",
    .evidence = "X09, X10: pytorch#88955, ByteDance-Seed/VeOmni#184",
    .kills = "clip.norm",
    .shows = shows,
    .wrap = wrap,
};
