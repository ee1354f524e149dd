/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drive_optimizer.c - what a case asks of the optimizer: parameter groups and
 * clipping.
 *
 * Groups are told when sharding, by an array that is there for the call only,
 * and lies elsewhere on every rank; then by numbers of their own in each step.
 * Of clipping the norm of a step's gradients, as the engine says it, is noted
 * in bits beside the answers; and the gradients that it leaves.
 */
#include "run/drive.h"

#include <fsdp/arith/bits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int drive_shard_model(struct driver *x)
{
    const struct run_case *c = x->d->c;
    struct fsdp_options options = x->options;
    const uint32_t n = x->told.n_parameters;
    const uint32_t elsewhere = x->env.rank * 4; /* another address */
    uint32_t *made = calloc((size_t)n + elsewhere + 1, sizeof(*made));
    uint32_t *group = made ? made + elsewhere : NULL;
    int status;

    if (!group) {
        return FSDP_ERR_NOMEM;
    }
    for (uint32_t p = 0; p < n; p++) {
        group[p] = case_group_of(c, p);
    }
    if (case_groups(c) > 1) {
        options.n_groups = case_groups(c);
        options.group_of_parameter = group;
    }
    status =
        x->engine.shard(&x->env, &x->told, x->units, &options, &x->sharded);
    memset(group, 0xff, n * sizeof(*group)); /* who still reads it is wrong */
    free(made);
    return status;
}

int drive_step_groups(struct driver *x, struct fsdp_step *step)
{
    const struct run_case *c = x->d->c;
    float lr[CASE_MAX_GROUPS];
    float decay[CASE_MAX_GROUPS];
    int status;

    step->n_groups = case_groups(c);
    for (uint32_t g = 0; g < step->n_groups; g++) {
        lr[g] = case_group_lr(c, g);
        decay[g] = case_group_decay(c, g);
    }
    step->lr = lr;
    step->weight_decay = decay;
    status = x->engine.step(x->sharded, step);
    step->lr = step->weight_decay = NULL;
    return status;
}

/* ---- Clipping ---- */

static bool asks_norms(const struct driver *x)
{
    return x->d->c->scenario == CASE_CLIP;
}

static int ask_norm(struct driver *x, uint32_t n, const struct fsdp_clip *clip)
{
    char name[CASE_NORM_BYTES];
    float norm = NAN;

    FSDP_TRY(x->engine.clip_grad_norm(x->sharded, clip, &norm));
    case_norm_name(n, x->step, name);
    return x->recording ? drive_answer_number(x, name, fsdp_f32_bits(norm))
                        : FSDP_OK;
}

int drive_clip(struct driver *x)
{
    struct fsdp_clip clip;

    if (!asks_norms(x)) {
        return FSDP_OK;
    }
    FSDP_TRY(drive_wrong_clip(x, false));
    for (uint32_t n = 0; n < CASE_N_NORMS; n++) {
        clip = (struct fsdp_clip){
            .size = sizeof(clip), .max_norm = INFINITY, .p = case_norm_p[n]};
        FSDP_TRY(ask_norm(x, n, &clip));
    }
    case_clip(x->d->c, x->step, &clip);
    FSDP_TRY(ask_norm(x, CASE_N_NORMS, &clip));
    return x->recording ? drive_record_pieces(x, RECORD_CLIPPED, x->step)
                        : FSDP_OK;
}

static int clip_refused(struct driver *x, const char *name, float max_norm,
                        float p)
{
    const struct fsdp_clip clip = {
        .size = sizeof(clip), .max_norm = max_norm, .p = p};
    float norm;

    return drive_answer(x, name,
                        x->engine.clip_grad_norm(x->sharded, &clip, &norm));
}

int drive_wrong_clip(struct driver *x, bool in_pass)
{
    if (!asks_norms(x) || x->serial || x->step > 0 || x->microbatch > 0) {
        return FSDP_OK;
    }
    if (!x->engine.clip_grad_norm) {
        return FSDP_ERR_INVALID; /* it is claimed */
    }
    if (in_pass) {
        return clip_refused(x, "clip-in-pass", 1.0f, 2.0f);
    }
    FSDP_TRY(clip_refused(x, "clip-to-zero", 0.0f, 2.0f));
    FSDP_TRY(clip_refused(x, "clip-to-nan", NAN, 2.0f));
    return clip_refused(x, "clip-by-third", 1.0f, 3.0f);
}
