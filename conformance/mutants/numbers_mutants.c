/* SPDX-License-Identifier: Apache-2.0 */
/*
 * numbers_mutants.c - engines that are right with numbers of ordinary size, and
 * for a while: wrong with subnormal ones, ties, infinities, after a load or a
 * cancel under no sync, in the 301st step.
 */
#include "mutants/mutant_kit.h"

#include <math.h>

enum {
    LAST_STEPPED = 300,
    LAST_CORRECTED = 100
};

static _Thread_local bool all_finite;

/* ---- Subnormal numbers -------------------------------------------------- */

static float flushed(float x)
{
    return fpclassify(x) == FP_SUBNORMAL ? 0.0f : x;
}

static int subnormals_flushed(struct fsdp_sharded *s, struct fsdp_step *how)
{
    FSDP_TRY(mutant_each_gradient(s, flushed));
    return mutant_real.engine.step(s, how);
}

/* ---- Norms -------------------------------------------------------------- */

static float look_at(float x)
{
    all_finite = all_finite && isfinite(x);
    return x;
}

/* Rounds a norm down to the next number, as if the sum had lost its small
 * terms. */
static int norm_rounds_down(struct fsdp_sharded *s, const struct fsdp_clip *how,
                            float *out_norm)
{
    FSDP_TRY(mutant_real.engine.clip_grad_norm(s, how, out_norm));
    if (how->p == 1.0f && isfinite(*out_norm)) {
        *out_norm = nextafterf(*out_norm, 0.0f);
    }
    return FSDP_OK;
}

static int nonfinite_clipped(struct fsdp_sharded *s,
                             const struct fsdp_clip *how, float *out_norm)
{
    struct fsdp_clip own = *how;

    own.error_if_nonfinite = 0;
    return mutant_real.engine.clip_grad_norm(s, &own, out_norm);
}

static int nonfinite_not_stepped(struct fsdp_sharded *s, struct fsdp_step *how)
{
    all_finite = true;
    FSDP_TRY(mutant_each_gradient(s, look_at));
    return all_finite ? mutant_real.engine.step(s, how) : FSDP_OK;
}

/* ---- What was said of sync ---------------------------------------------- */

static int load_resets_sync(struct fsdp_sharded *s, const char *directory)
{
    FSDP_TRY(mutant_real.engine.load(s, directory));
    return mutant_real.engine.set_gradient_sync(s, 1);
}

static int cancel_resets_sync(struct fsdp_sharded *s, uint32_t point,
                              uint32_t index)
{
    FSDP_TRY(mutant_real.engine.at(s, point, index));
    return point == FSDP_CANCEL ? mutant_real.engine.set_gradient_sync(s, 1)
                                : FSDP_OK;
}

/* ---- Many steps --------------------------------------------------------- */

static int steps_stop(struct fsdp_sharded *s, struct fsdp_step *how)
{
    return mutant_now.steps < LAST_STEPPED ? mutant_real.engine.step(s, how)
                                           : FSDP_OK;
}

static bool plays_four_hundred(const struct run_case *c)
{
    return mutant_plays(c, "four-hundred");
}

/* Ends the bias correction after some steps, as if the products of the betas
 * were 0 by then. */
static void correction_ends(struct fsdp_op *op)
{
    if (op->kind == FSDP_OP_ADAMW && mutant_now.steps >= LAST_CORRECTED) {
        op->f[5] = op->f[6] = 0.0f;
    }
}

static bool corrects_for_long(const struct run_case *c)
{
    return plays_four_hundred(c) && c->optimizer == FSDP_OPTIMIZER_ADAMW;
}

const struct mutant numbers_mutants[] = {
    {.name = "subnormals-flushed",
     .text = "subnormal gradients are 0 for the optimizer",
     .evidence = "a library that sets FTZ for its thread",
     .kills = "script.values",
     .shows = {.script = "subnormal"},
     .calls.step = subnormals_flushed},
    {.name = "norm-rounds-down",
     .text = "a norm that lies just above the middle of two is the lower one",
     .evidence = "a sum in double, in which that is a tie",
     .kills = "script.norms",
     .shows = {.script = "norm-tie"},
     .calls.clip_grad_norm = norm_rounds_down},
    {.name = "nonfinite-clipped",
     .text = "clip_grad_norm ignores error_if_nonfinite",
     .evidence = "an argument that is accepted for its name's sake",
     .kills = "script.answers script.norms",
     .shows = {.script = "not-finite"},
     .calls.clip_grad_norm = nonfinite_clipped},
    {.name = "nonfinite-not-stepped",
     .text = "a rank whose gradients are not finite makes no step",
     .evidence = "a scaler's check that is always on, rank by rank",
     .kills = "script.values",
     .shows = {.script = "not-finite"},
     .calls.step = nonfinite_not_stepped},
    {.name = "load-resets-sync",
     .text = "after a load gradients are reduced, whatever was said",
     .evidence = "a load that makes the engine's state anew",
     .kills = "script.collectives script.rest",
     .shows = {.script = "sync-kept"},
     .calls.load = load_resets_sync},
    {.name = "cancel-resets-sync",
     .text = "after a cancelled pass gradients are reduced, whatever was said",
     .evidence = "an exception that leaves a context manager",
     .kills = "script.collectives script.rest",
     .shows = {.script = "sync-kept"},
     .calls.at = cancel_resets_sync},
    {.name = "correction-ends",
     .text = "from the 101st step on AdamW corrects no bias",
     .evidence = "a phase of warm-up that is over, as in 1-bit Adam",
     .kills = "script.losses",
     .shows = {.in = corrects_for_long},
     .op = correction_ends},
    {.name = "steps-stop",
     .text = "from the 301st on steps do nothing",
     .evidence = "a schedule of warm-up and decay that is over",
     .kills = "script.losses",
     .shows = {.script = "four-hundred"},
     .calls.step = steps_stop},
    {0},
};
