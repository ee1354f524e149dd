/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scale_mutants.c - engines that are wrong under loss scaling: in how they undo
 * the scale, in which ranks learn of an infinity, in what a skipped step
 * changes.
 */
#include "mutants/mutant_kit.h"

#include <math.h>

static _Thread_local float factor;    /* of multiplied */
static _Thread_local bool all_finite; /* of look_at */
static _Thread_local uint32_t skips;  /* so far */

static void forget(void)
{
    skips = 0;
}

static bool plays_dynamic(const struct run_case *c)
{
    return mutant_plays(c, "scale-dynamic");
}

static bool plays_adamw(const struct run_case *c)
{
    return plays_dynamic(c) && c->optimizer == FSDP_OPTIMIZER_ADAMW;
}

/* ---- Gradients ----------------------------------------------------------- */

static float multiplied(float x)
{
    return x * factor;
}

static float without_nan(float x)
{
    return isnan(x) ? 0.0f : x;
}

static float if_finite(float x)
{
    return isfinite(x) ? x : 0.0f;
}

static float nothing(float x)
{
    (void)x;
    return 0.0f;
}

static void hide_first(const struct fsdp_piece *piece)
{
    if (piece->parameter == 0 && piece->grad) {
        (void)mutant_each(NULL, (float *)piece->grad, piece->n, if_finite);
    }
}

static float look_at(float x)
{
    all_finite = all_finite && isfinite(x);
    return x;
}

/* ---- The scale ----------------------------------------------------------- */

static int scale_forgotten(struct fsdp_sharded *s, struct fsdp_step *how)
{
    struct fsdp_step own = *how;
    int status;

    own.inverse_scale = own.inverse_scale != 0.0f ? 1.0f : 0.0f;
    status = mutant_real.engine.step(s, &own);
    how->found_inf = own.found_inf;
    return status;
}

static int scale_twice(struct fsdp_sharded *s, struct fsdp_step *how)
{
    factor = how->inverse_scale;
    FSDP_TRY(mutant_each_gradient(s, multiplied));
    return mutant_real.engine.step(s, how);
}

static int scale_after_clip(struct fsdp_sharded *s, const struct fsdp_clip *how,
                            float *out_norm)
{
    struct fsdp_clip own = *how;

    own.inverse_scale = 0.0f;
    factor = how->inverse_scale;
    FSDP_TRY(mutant_real.engine.clip_grad_norm(s, &own, out_norm));
    return mutant_each_gradient(s, multiplied);
}

/* Unscales gradients before it checks the arguments. */
static int scale_before_check(struct fsdp_sharded *s,
                              const struct fsdp_clip *how, float *out_norm)
{
    const int status = mutant_real.engine.clip_grad_norm(s, how, out_norm);

    factor = how->inverse_scale;
    if (status == FSDP_ERR_INVALID && factor != 0.0f && !mutant_now.in_pass) {
        FSDP_TRY(mutant_each_gradient(s, multiplied));
    }
    return status;
}

static int scale_before_measure(struct fsdp_sharded *s,
                                const struct fsdp_clip *how, float *out_norm)
{
    const int status = mutant_real.engine.clip_grad_norm(s, how, out_norm);

    factor = how->inverse_scale;
    if (status == FSDP_ERR_INVALID && how->error_if_nonfinite && factor > 0) {
        FSDP_TRY(mutant_each_gradient(s, multiplied));
    }
    return status;
}

/* ---- What is found ------------------------------------------------------- */

static int scale_found_alone(struct fsdp_sharded *s, struct fsdp_step *how)
{
    struct fsdp_step own = *how;

    all_finite = true;
    FSDP_TRY(mutant_each_gradient(s, look_at));
    how->found_inf = !all_finite;
    if (!all_finite) {
        return FSDP_OK;
    }
    factor = how->inverse_scale;
    own.inverse_scale = 0.0f;
    FSDP_TRY(mutant_each_gradient(s, multiplied));
    return mutant_real.engine.step(s, &own);
}

static int scale_found_for_ever(struct fsdp_sharded *s, struct fsdp_step *how)
{
    how->found_inf = 1;
    if (skips == 0) {
        FSDP_TRY(mutant_real.engine.step(s, how));
        skips = how->found_inf;
    }
    return FSDP_OK;
}

static int scale_first_unseen(struct fsdp_sharded *s, struct fsdp_step *how)
{
    FSDP_TRY(mutant_each_piece(s, hide_first));
    return mutant_real.engine.step(s, how);
}

static int scale_nan_unseen(struct fsdp_sharded *s, struct fsdp_step *how)
{
    FSDP_TRY(mutant_each_gradient(s, without_nan));
    return mutant_real.engine.step(s, how);
}

/* ---- What a skipped step changes ----------------------------------------- */

static int scale_skip_counts(struct fsdp_sharded *s, struct fsdp_step *how)
{
    FSDP_TRY(mutant_real.engine.step(s, how));
    skips += how->found_inf;
    return FSDP_OK;
}

/* Multiplies the running products of AdamW once more for each skipped step. */
static void count_skips(struct fsdp_op *op)
{
    for (uint32_t i = 0; op->kind == FSDP_OP_ADAMW && i < skips; i++) {
        op->f[5] *= op->f[2];
        op->f[6] *= op->f[3];
    }
}

static int scale_skip_decays(struct fsdp_sharded *s, struct fsdp_step *how)
{
    static const float lr[8] = {0};
    struct fsdp_step own = *how;

    FSDP_TRY(mutant_real.engine.step(s, how));
    if (!how->found_inf) {
        return FSDP_OK;
    }
    own.inverse_scale = 0.0f;
    own.lr = lr;
    own.weight_decay = NULL;
    FSDP_TRY(mutant_each_gradient(s, nothing));
    return mutant_real.engine.step(s, &own);
}

/* Gradients are unscaled in place before they are checked. */
static int scale_skip_unscales(struct fsdp_sharded *s, struct fsdp_step *how)
{
    FSDP_TRY(mutant_real.engine.step(s, how));
    factor = how->inverse_scale;
    return how->found_inf ? mutant_each_gradient(s, multiplied) : FSDP_OK;
}

static int scale_found_and_stepped(struct fsdp_sharded *s,
                                   struct fsdp_step *how)
{
    struct fsdp_step own = *how;

    FSDP_TRY(mutant_real.engine.step(s, how));
    own.inverse_scale = 0.0f;
    return how->found_inf ? mutant_real.engine.step(s, &own) : FSDP_OK;
}

const struct mutant scale_mutants[] = {
    {.name = "scale-after-clip",
     .text = "gradients are measured and clipped as they are, then unscaled",
     .evidence = "the order that a GradScaler's unscale_ is for",
     .kills = "script.norms",
     .shows = {.script = "scale-clip"},
     .calls.clip_grad_norm = scale_after_clip},
    {.name = "scale-before-check",
     .text = "a clip that is refused has undone the scale of the loss",
     .evidence = "unscale_ before clip_grad_norm_, which raises",
     .kills = "script.values",
     .shows = {.script = "scale-clip-refused"},
     .calls.clip_grad_norm = scale_before_check},
    {.name = "scale-before-measure",
     .text = "gradients are multiplied, and then their norm is an error",
     .evidence = "unscale_ before clip_grad_norm_ with error_if_nonfinite",
     .kills = "script.values",
     .shows = {.script = "scale-clip-overflow"},
     .calls.clip_grad_norm = scale_before_measure},
    {.name = "scale-first-unseen",
     .text = "what is not finite in the first parameter is not looked for",
     .evidence = "a loop over parameters that begins with 1",
     .kills = "scale.found-everywhere",
     .shows = {.script = "scale-places"},
     .calls.step = scale_first_unseen},
    {.name = "scale-forgotten",
     .text = "gradients are stepped with as they are, scaled",
     .evidence = "an argument that is accepted for its name's sake",
     .kills = "scale.unscaled-once",
     .shows = {.script = "scale-dynamic"},
     .calls.step = scale_forgotten},
    {.name = "scale-found-alone",
     .text = "a rank is told of infinities in its own shards only",
     .evidence = "a GradScaler whose found_inf is not reduced",
     .kills = "scale.found-everywhere",
     .shows = {.script = "scale-dynamic"},
     .calls.step = scale_found_alone},
    {.name = "scale-found-and-stepped",
     .text = "a step that has found an infinity is made all the same",
     .evidence = "found_inf that is told, and not looked at",
     .kills = "scale.skip-changes-nothing",
     .shows = {.script = "scale-dynamic"},
     .calls.step = scale_found_and_stepped},
    {.name = "scale-found-for-ever",
     .text = "after the first infinity every step finds one",
     .evidence = "a flag on the device that nobody clears",
     .kills = "scale.finite-goes-on",
     .shows = {.script = "scale-dynamic"},
     .calls.step = scale_found_for_ever,
     .forget = forget},
    {.name = "scale-nan-unseen",
     .text = "a NaN is no infinity, and counts as 0",
     .evidence = "isinf where isfinite was meant",
     .kills = "scale.found-everywhere",
     .shows = {.script = "scale-dynamic"},
     .calls.step = scale_nan_unseen},
    {.name = "scale-skip-counts",
     .text = "a step that is skipped is counted by AdamW",
     .evidence = "a step count that is raised before found_inf is looked at",
     .kills = "scale.next-step",
     .shows = {.in = plays_adamw},
     .op = count_skips,
     .calls.step = scale_skip_counts,
     .forget = forget},
    {.name = "scale-skip-decays",
     .text = "a step that is skipped is made with gradients of 0",
     .evidence = "infinities that are masked, and moments that decay",
     .kills = "scale.skip-changes-nothing",
     .shows = {.in = plays_adamw},
     .calls.step = scale_skip_decays},
    {.name = "scale-skip-unscales",
     .text = "the gradients of a step that is skipped have been unscaled",
     .evidence = "pytorch/pytorch#97415: unscaled in place, then looked at",
     .kills = "scale.skip-changes-nothing",
     .shows = {.in = plays_adamw},
     .calls.step = scale_skip_unscales},
    {.name = "scale-unchecked",
     .text = "a step by an inverse_scale that is none answers OK",
     .evidence = "a scale of zero, whose inverse nobody looks at",
     .kills = "error.step-scale",
     .shows = {.script = "scale-refused"},
     .fault = {MUTANT_FORGIVES, MUTANT_CALL(step), FSDP_ERR_INVALID}},
    {.name = "scale-twice",
     .text = "gradients are multiplied by inverse_scale twice",
     .evidence = "unscale_ called by the user, and by step once more",
     .kills = "scale.unscaled-once",
     .shows = {.script = "scale-dynamic"},
     .calls.step = scale_twice},
    {0},
};
