/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unsharded_clip.c - what becomes of the gradients of the baseline between the
 * fold and the optimizer: the scale of the loss is undone, they are measured
 * and clipped.
 */
#include "ref/clip/norm.h"
#include "unsharded.h"

#include <stddef.h>

/* The gradient of p, or NULL: it is frozen, another name of an earlier one, or
 * its unit took no part in this step. */
static float *gradient(const struct fsdp_sharded *s, uint32_t p)
{
    return unsharded_is_stepped(s, p) && s->folded[unsharded_unit(s, p)] &&
                   s->touched[unsharded_unit(s, p)]
               ? s->reduced + s->start[p]
               : NULL;
}

static void multiply(struct fsdp_sharded *s, float factor)
{
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        float *g = gradient(s, p);

        for (uint64_t i = 0; g && i < fsdp_numel(s->model, p); i++) {
            g[i] *= factor;
        }
    }
}

static bool all_finite(const struct fsdp_sharded *s)
{
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        const float *g = gradient(s, p);

        if (g && !ref_all_finite(g, fsdp_numel(s->model, p))) {
            return false;
        }
    }
    return true;
}

int unsharded_unscale(struct fsdp_sharded *s, struct fsdp_step *how)
{
    FSDP_TRY(ref_check_scale(s->env, "unsharded.step", how->inverse_scale));
    how->found_inf = !all_finite(s);
    if (!how->found_inf) {
        multiply(s, how->inverse_scale);
    }
    return FSDP_OK;
}

int unsharded_clip_grad_norm(struct fsdp_sharded *s,
                             const struct fsdp_clip *given, float *out_norm)
{
    const struct fsdp_clip clip = ref_read_clip(given);
    struct ref_sum sum = {0};
    float factor;

    FSDP_TRY(ref_check_clip(s->env, &clip));
    FSDP_TRY(unsharded_reduce_all(s, "unsharded.clip"));
    for (uint32_t p = 0; p < s->model->n_parameters; p++) {
        const float *g = gradient(s, p);
        if (g) {
            ref_sum_add(&sum, clip.p, ref_clip_scale(&clip), g,
                        fsdp_numel(s->model, p));
        }
    }
    *out_norm = ref_sum_root(&sum, clip.p);
    FSDP_TRY(ref_check_norm(s->env, &clip, *out_norm));
    if (clip.inverse_scale != 0.0f) {
        multiply(s, clip.inverse_scale);
    }
    if (ref_clip_factor(&clip, *out_norm, &factor)) {
        multiply(s, factor);
    }
    return FSDP_OK;
}
