/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drive_clip.c - the norm of a step's gradients, as the engine says it, noted
 * in bits beside the answers; and the gradients that clipping leaves.
 */
#include "run/drive.h"

#include <fsdp/arith/bits.h>
#include <math.h>

static bool asks(const struct driver *x)
{
    return x->d->c->scenario == CASE_CLIP;
}

static int ask(struct driver *x, uint32_t n, const struct fsdp_clip *clip)
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

    if (!asks(x)) {
        return FSDP_OK;
    }
    FSDP_TRY(drive_wrong_clip(x, false));
    for (uint32_t n = 0; n < CASE_N_NORMS; n++) {
        clip = (struct fsdp_clip){
            .size = sizeof clip, .max_norm = INFINITY, .p = case_norm_p[n]};
        FSDP_TRY(ask(x, n, &clip));
    }
    case_clip(x->d->c, x->step, &clip);
    FSDP_TRY(ask(x, CASE_N_NORMS, &clip));
    return x->recording ? drive_record_pieces(x, RECORD_CLIPPED, x->step)
                        : FSDP_OK;
}

static int refused(struct driver *x, const char *name, float max_norm, float p)
{
    const struct fsdp_clip clip = {
        .size = sizeof clip, .max_norm = max_norm, .p = p};
    float norm;

    return drive_answer(x, name,
                        x->engine.clip_grad_norm(x->sharded, &clip, &norm));
}

int drive_wrong_clip(struct driver *x, bool in_pass)
{
    if (!asks(x) || x->serial || x->step > 0 || x->microbatch > 0) {
        return FSDP_OK;
    }
    if (!x->engine.clip_grad_norm) {
        return FSDP_ERR_INVALID; /* it is claimed */
    }
    if (in_pass) {
        return refused(x, "clip-in-pass", 1.0f, 2.0f);
    }
    FSDP_TRY(refused(x, "clip-to-zero", 0.0f, 2.0f));
    FSDP_TRY(refused(x, "clip-to-nan", NAN, 2.0f));
    return refused(x, "clip-by-third", 1.0f, 3.0f);
}
