/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clip_scale.c - clipping multiplies where the norm is beyond the largest that
 * is allowed, once, and elsewhere leaves every bit; measuring alone changes
 * nothing. Behind AdamW, which no scale disturbs, all of that hides.
 */
#include "judge/replay/replay_clip.h"

#include <fsdp/arith/bits.h>
#include <math.h>

static bool applies(const struct expect *e)
{
    return compare_case_staged(e) && e->c->scenario == CASE_CLIP;
}

/* Two roundings of the factor and one of the product. */
static bool is_near(float got, float want)
{
    return fabs((double)got - (double)want) <=
           4.0 * 0x1p-24 * fabs((double)want) + 0x1p-149;
}

static bool check(const struct expect *e, const struct record *r,
                  const struct compare_part *part, struct finding *f)
{
    const float *before = compare_values(r, RECORD_REDUCED, part);
    const float *got = compare_values(r, RECORD_CLIPPED, part);
    const struct record_answer *answer =
        replay_said_norm(r, part->rank, CASE_N_NORMS, part->step);
    bool clips;
    float factor;

    if (!e->trained[part->unit]) {
        return true;
    }
    if (before == NULL || got == NULL || answer == NULL) {
        return compare_missing(
            part, before == NULL ? RECORD_REDUCED : RECORD_CLIPPED, f);
    }
    clips = replay_clip_factor(
        e, part->step, fsdp_f32_from_bits((uint32_t)answer->status), &factor);
    for (uint64_t i = 0; i < part->n; i++) {
        float want = clips ? before[i] * factor : before[i];

        if (e->profile == EXPECT_OWN && is_near(got[i], want)) {
            continue;
        }
        if (!compare_element(e, part, RECORD_CLIPPED, i, got[i], want, f)) {
            return false;
        }
    }
    return true;
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_parts(e, r, 0, compare_recorded_steps(e), check, f);
}

/* The sign: the last bits are an arithmetic's own. */
static bool spoil(const struct expect *e, struct record *r)
{
    struct record_tensor *t = compare_tensor_to_spoil(r, RECORD_CLIPPED, 0);

    (void)e;
    for (uint64_t i = 0; t != NULL && i < t->n; i++) {
        if (t->data[i] < 0.0f || t->data[i] > 0.0f) {
            t->data[i] = -t->data[i];
            return true;
        }
    }
    return false;
}

REQUIREMENT(clip_scale) = {
    .id = "clip.scale",
    .text = "Clipping multiplies every gradient once by max_norm / (norm + "
            "1e-6), if the norm that it gives is beyond max_norm, and else "
            "leaves all as they are, bit for bit.",
    .since = "1.1",
    .must = 1,
    .level = LEVEL_STEP,
    .needs = "clip.norm",
    .claim = "clip",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
