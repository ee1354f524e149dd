/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clip_norm.c - the norm is that of all shards together, once. One of a rank's
 * own shards makes ranks clip differently, and one that counts replicas is too
 * large; a curve shows either late, if at all.
 */
#include "judge/replay/replay_clip.h"

#include <fsdp/arith/bits.h>
#include <math.h>

static bool applies(const struct expect *e)
{
    return compare_case_staged(e) && e->c->scenario == CASE_CLIP;
}

/* In an arithmetic of its own a sum of n squares is off by n roundings. */
static bool is_near(const struct expect *e, float got, float want)
{
    double allowed = ((double)e->total + 8.0) * 0x1p-24 * (double)want;

    return fabs((double)got - (double)want) <= allowed;
}

static bool said(const struct expect *e, const struct record *r, uint32_t n,
                 uint32_t step, float want, struct finding *f)
{
    for (uint32_t k = 0; k < e->c->ranks; k++) {
        const struct record_answer *answer = replay_said_norm(r, k, n, step);
        struct finding at = finding_at("norm", step, -1, k);
        float got;

        if (answer == NULL) {
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

static bool holds(const struct expect *e, const struct record *r,
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

/* Half of what the last rank said. */
static bool spoil(const struct expect *e, struct record *r)
{
    struct record_answer *answer =
        replay_said_norm(r, e->c->ranks - 1, CASE_N_NORMS, 0);

    if (answer == NULL) {
        return false;
    }
    answer->status ^= 1 << 23;
    return true;
}

REQUIREMENT(clip_norm) = {
    .id = "clip.norm",
    .text = "The norm that clipping gives every rank is that of the gradients "
            "of all shards, before they are clipped and each counted once, for "
            "p = 1, 2 and infinity, correctly rounded (in an arithmetic of its "
            "own within the roundings of the sum).",
    .since = "1.1",
    .must = 1,
    .level = LEVEL_STEP,
    .needs = "layout.chunk-rule grad.finite reduce.replicas-equal",
    .claim = "clip",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
