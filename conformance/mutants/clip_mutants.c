/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clip_mutants.c - engines that measure another norm of the gradients than the
 * whole one, or do not clip by it.
 */
#include "mutants/mutant_kit.h"

#include <math.h>

static _Thread_local double squares; /* of clip_norm_local */
static _Thread_local double sizes;   /* of clip_half_up */
static _Thread_local float factor;   /* of clip_scales_always, clip_at_max */

static int clip_counts_replicas(struct fsdp_sharded *s,
                                const struct fsdp_clip *how, float *out_norm)
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

static bool clips_replicas(const struct run_case *c)
{
    return mutant_clips(c) && c->replicas > 1;
}

static int clip_forgotten(struct fsdp_sharded *s, const struct fsdp_clip *how,
                          float *out_norm)
{
    struct fsdp_clip own = *how;

    if (own.max_norm > 0.0f) {
        own.max_norm = INFINITY;
    }
    return mutant_real.engine.clip_grad_norm(s, &own, out_norm);
}

static float add_square(float x)
{
    squares += (double)x * (double)x;
    return x;
}

/* Clips by this rank's own norm in place of that of all ranks. */
static int clip_norm_local(struct fsdp_sharded *s, const struct fsdp_clip *how,
                           float *out_norm)
{
    struct fsdp_clip own = *how;

    own.max_norm = INFINITY;
    FSDP_TRY(mutant_real.engine.clip_grad_norm(s, how->p > 0.0f ? &own : how,
                                               out_norm));
    squares = 0.0;
    FSDP_TRY(mutant_each_gradient(s, add_square));
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

static bool clips_shards(const struct run_case *c)
{
    return mutant_clips(c) && c->ranks > c->replicas;
}

static float scaled(float x)
{
    return x * factor;
}

static int clip_scales_always(struct fsdp_sharded *s,
                              const struct fsdp_clip *how, float *out_norm)
{
    FSDP_TRY(mutant_real.engine.clip_grad_norm(s, how, out_norm));
    factor = how->max_norm / (*out_norm + 1e-6f);
    return how->max_norm < 0x1p60f && factor > 1.0f
               ? mutant_each_gradient(s, scaled)
               : FSDP_OK;
}

static int clip_at_max(struct fsdp_sharded *s, const struct fsdp_clip *how,
                       float *out_norm)
{
    FSDP_TRY(mutant_real.engine.clip_grad_norm(s, how, out_norm));
    factor = how->max_norm / (*out_norm + 1e-6f);
    return *out_norm == how->max_norm ? mutant_each_gradient(s, scaled)
                                      : FSDP_OK;
}

static float add_size(float x)
{
    sizes += (double)fabsf(x);
    return x;
}

/* Only where a double holds the whole sum, and this rank has all gradients. */
static int clip_half_up(struct fsdp_sharded *s, const struct fsdp_clip *how,
                        float *out_norm)
{
    double half;

    sizes = 0.0;
    FSDP_TRY(mutant_each_gradient(s, add_size));
    FSDP_TRY(mutant_real.engine.clip_grad_norm(s, how, out_norm));
    half = ((double)nextafterf(*out_norm, INFINITY) - (double)*out_norm) / 2;
    if (how->p == 1.0f && sizes - (double)*out_norm == half) {
        *out_norm = nextafterf(*out_norm, INFINITY);
    }
    return FSDP_OK;
}

static bool clips_half(const struct run_case *c)
{
    return mutant_plays(c, "norm-half");
}

static bool clips_half_alone(const struct run_case *c)
{
    return clips_half(c) && c->ranks == c->replicas;
}

static int clip_unchecked(struct fsdp_sharded *s, const struct fsdp_clip *how,
                          float *out_norm)
{
    return how->max_norm > 0.0f
               ? mutant_real.engine.clip_grad_norm(s, how, out_norm)
               : FSDP_OK;
}

const struct mutant clip_mutants[] = {
    {.name = "clip-at-max",
     .text = "a norm that equals what is clipped to is clipped",
     .evidence = "a coefficient of less than 1 is applied wherever it is not "
                 "above it",
     .kills = "script.values",
     .shows = {.script = "norm-half"},
     .calls.clip_grad_norm = clip_at_max},
    /* Some add one half and cut. */
    {.name = "norm-half-up",
     .text = "a norm half way between two floats is rounded up",
     .evidence = "numerics: ties to even is the least known of the modes",
     .kills = "script.norms",
     .shows = {.in = clips_half_alone},
     .calls.clip_grad_norm = clip_half_up},
    /* The norm is summed over all ranks, replicas too. */
    {.name = "clip-counts-replicas",
     .text = "each replica is counted in the norm",
     .evidence = "pytorch/pytorch#88955, ByteDance-Seed/VeOmni#184",
     .kills = "clip.norm",
     .shows = {.in = clips_replicas},
     .calls.clip_grad_norm = clip_counts_replicas},
    {.name = "clip-forgotten",
     .text = "the norm is measured and nothing is clipped",
     .evidence = "deepspeedai/DeepSpeed#5150",
     .kills = "clip.scale",
     .shows = {.in = mutant_clips},
     .calls.clip_grad_norm = clip_forgotten},
    {.name = "clip-norm-local",
     .text = "a rank clips by the norm of its own shards",
     .evidence = "pytorch/torchtitan#766, pytorch/pytorch#170862",
     .kills = "clip.norm",
     .shows = {.in = clips_shards},
     .calls.clip_grad_norm = clip_norm_local},
    {.name = "clip-scales-always",
     .text = "gradients below the norm that is allowed are scaled up to it",
     .evidence = "a coefficient that is not clamped to 1",
     .kills = "clip.scale",
     .shows = {.in = mutant_clips},
     .calls.clip_grad_norm = clip_scales_always},
    /* Clipping to an impossible norm does nothing, and no error. */
    {.name = "clip-unchecked",
     .text = "clipping to 0 or NaN is answered with OK",
     .evidence = "gradients that are not numbers",
     .kills = "error.clip-arguments",
     .shows = {.in = mutant_clips},
     .calls.clip_grad_norm = clip_unchecked},
    {0},
};
