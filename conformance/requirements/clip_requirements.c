/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clip_requirements.c - gradients clipped by their global norm.
 */
#include "requirements/families.h"

#include "judge/compare/compare_checks.h"
#include "judge/replay/replay_clip.h"

#include <fsdp/arith/bits.h>
#include <math.h>

/*
 * clip.norm: the norm is that of all shards together, once. A norm of a rank's
 * own shards makes ranks clip differently, and a norm that counts each replica
 * is too large; a curve shows either late, if at all.
 */
static bool norm_applies(const struct expect *e)
{
    return compare_case_staged(e) && e->c->scenario == CASE_CLIP;
}

/* In an arithmetic of its own a sum of n squares is off by n roundings. */
static bool is_near(const struct expect *e, float got, float want)
{
    double allowed = ((double)e->total + 8.0) * 0x1p-24 * (double)want;

    return fabs((double)got - (double)want) <= allowed;
}

/* frozen.not-in-norm: whatever a flat gradient has in the place of a frozen
 * parameter does not count. */
static bool leaves_frozen_out(const struct expect *e)
{
    return norm_applies(e) && compare_case_freezes(e);
}

/* ignored.not-in-norm: nor does the gradient of an ignored parameter, which is
 * the model's own. */
static bool ignores_some(const struct expect *e)
{
    bool ignores = false;

    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        ignores = ignores || expect_is_ignored(e, p);
    }
    return norm_applies(e) && ignores;
}

static bool said(const struct expect *e, const struct record *r, uint32_t n,
                 uint32_t step, float want, struct finding *f)
{
    for (uint32_t k = 0; k < e->c->ranks; k++) {
        const struct record_answer *answer = replay_said_norm(r, k, n, step);
        struct finding at = finding_at("norm", step, -1, k);
        float got;

        if (!answer) {
            return finding_text(f, at, "this rank said no gradient norm");
        }
        got = fsdp_f32_from_bits((uint32_t)answer->status);
        if (e->profile == EXPECT_OWN ? !is_near(e, got, want)
                                     : !(got == want)) {
            return finding_bits(f, at, got, want,
                                "not the norm of the gradients of all shards");
        }
    }
    return true;
}

static bool norm_holds(const struct expect *e, const struct record *r,
                       struct finding *f)
{
    for (uint32_t t = 0; t < compare_recorded_steps(e); t++) {
        for (uint32_t n = 0; n <= CASE_N_NORMS; n++) {
            struct fsdp_clip clip;
            float want;

            case_clip(e->c, t, &clip);
            if (!replay_norm(e, r, n < CASE_N_NORMS ? case_norm_p[n] : clip.p,
                             t, &want, f) ||
                !said(e, r, n, t, want, f)) {
                return false;
            }
        }
    }
    return true;
}

/* Halves the norm that the last rank returned. */
static bool norm_spoil(const struct expect *e, struct record *r)
{
    struct record_answer *answer =
        replay_said_norm(r, e->c->ranks - 1, CASE_N_NORMS, 0);

    if (!answer) {
        return false;
    }
    answer->status ^= 1 << 23;
    return true;
}

/*
 * clip.scale: clipping multiplies once, where the norm is larger than is
 * allowed, and elsewhere leaves every bit; measuring alone changes nothing.
 * AdamW, which no scale disturbs, would hide all of that.
 */

/* Two roundings of the factor and one of the product. */
static bool scale_is_near(float got, float want)
{
    return fabs((double)got - (double)want) <=
           4.0 * 0x1p-24 * fabs((double)want) + 0x1p-149;
}

static bool scale_of_part(const struct expect *e, const struct record *r,
                          const struct compare_part *part, struct finding *f)
{
    const float *before = compare_values(r, RECORD_REDUCED, part);
    const float *got = compare_values(r, RECORD_CLIPPED, part);
    const struct record_answer *answer =
        replay_said_norm(r, part->rank, CASE_N_NORMS, part->step);
    bool clips;
    float factor;

    if (!e->stepped[part->parameter]) {
        return true;
    }
    if (!before || !got || !answer) {
        return compare_missing(part, !before ? RECORD_REDUCED : RECORD_CLIPPED,
                               f);
    }
    clips = replay_clip_factor(
        e, part->step, fsdp_f32_from_bits((uint32_t)answer->status), &factor);
    for (uint64_t i = 0; i < part->n; i++) {
        float want = clips ? before[i] * factor : before[i];

        if (e->profile == EXPECT_OWN && scale_is_near(got[i], want)) {
            continue;
        }
        if (!compare_element(e, part, RECORD_CLIPPED, i, got[i], want, f)) {
            return false;
        }
    }
    return true;
}

/* Turns the sign, as the last bits may differ between arithmetics. */
static bool scale_spoil(const struct expect *e, struct record *r)
{
    struct record_tensor *t = compare_tensor_to_spoil(r, RECORD_CLIPPED, 0);

    (void)e;
    for (uint64_t i = 0; t && i < t->n; i++) {
        if (t->data[i] < 0.0f || t->data[i] > 0.0f) {
            t->data[i] = -t->data[i];
            return true;
        }
    }
    return false;
}

const struct requirement clip_requirements[] = {
    {.since = "1.1",
     .must = 1,
     .level = LEVEL_STEP,
     .needs = "layout.chunk-rule grad.finite reduce.replicas-equal"},
    {.id = "clip.norm",
     .text = "The norm that clipping gives every rank is that of the gradients "
             "of all shards, before they are clipped and each counted once, "
             "for p = 1, 2 and infinity, correctly rounded (in an arithmetic "
             "of its own within the roundings of the sum).",
     .claim = "clip",
     .applies = norm_applies,
     .holds = norm_holds,
     .spoil = norm_spoil},
    {.id = "frozen.not-in-norm",
     .text = "Clipping knows the gradients of trainable parameters only.",
     .claim = "frozen",
     .applies = leaves_frozen_out,
     .holds = norm_holds,
     .spoil = norm_spoil},
    {.id = "ignored.not-in-norm",
     .text = "Clipping knows no gradient of what is ignored.",
     .claim = "ignored",
     .applies = ignores_some,
     .holds = norm_holds,
     .spoil = norm_spoil},
    {.id = "clip.scale",
     .text = "Clipping multiplies every gradient once by max_norm / (norm + "
             "1e-6), if the norm that it gives is beyond max_norm, and else "
             "leaves all as they are, bit for bit.",
     .beside_training = true,
     .needs = "clip.norm",
     .claim = "clip",
     .applies = norm_applies,
     .spoil = scale_spoil,
     .check = &check_each_part,
     .part = {scale_of_part, 0, STEPS_RECORDED}},
    {0},
};
