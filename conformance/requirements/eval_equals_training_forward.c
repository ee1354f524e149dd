/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eval_equals_training_forward.c - an evaluation sees the weights of the next
 * training forward, and leaves no trace. Where it calls other modules than
 * training does, what it gives is known from the baseline.
 */
#include "judge/replay/bounds.h"

#include <fsdp/arith/bits.h>
#include <math.h>

static bool applies(const struct expect *e)
{
    return e->c->scenario == CASE_EVAL;
}

/* Whether an evaluation passes the points of the training forward. */
static bool is_alike(const struct expect *e)
{
    const struct fsdp_sequence *train = e->model->sequence[FSDP_SEQUENCE_TRAIN];
    const struct fsdp_sequence *eval = e->model->sequence[FSDP_SEQUENCE_EVAL];
    uint32_t i = 0;

    while (i < eval->n && i < train->n && eval->point[i] == train->point[i] &&
           eval->module[i] == train->module[i]) {
        i++;
    }
    return i == eval->n &&
           (i == train->n || (train->point[i] != FSDP_PRE_FORWARD &&
                              train->point[i] != FSDP_POST_FORWARD));
}

static bool as_baseline(const struct expect *e, uint32_t k, uint32_t t,
                        float got, struct finding *f)
{
    const struct record_rank *rank =
        e->baseline != NULL ? compare_rank(e->baseline, k) : NULL;
    struct finding at = finding_at("evaluation", t, -1, k);

    if (rank == NULL || rank->other_loss == NULL || t >= rank->n_other_losses) {
        return finding_missing(f, at, "the baseline has no such evaluation");
    }
    if (e->profile == EXPECT_OWN && e->c->data != WORKLOAD_EXACT) {
        return bounds_hold(e, &got, &rank->other_loss[t], 1, t + 1, at, f);
    }
    return fsdp_f32_bits(got) == fsdp_f32_bits(rank->other_loss[t]) ||
           finding_bits(f, at, got, rank->other_loss[t],
                        "differs from the baseline's evaluation");
}

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    uint64_t per_step = e->c->microbatches;

    if (rank->other_loss == NULL || rank->n_other_losses != e->c->steps) {
        return finding_count(f, finding_at("evaluation", -1, -1, k),
                             rank->n_other_losses, e->c->steps,
                             "losses of evaluations recorded");
    }
    for (uint32_t t = 0; t < e->c->steps; t++) {
        struct finding at = finding_at("evaluation", t, -1, k);
        float got = rank->other_loss[t];

        if (!isfinite(got)) {
            return finding_bits(f, at, got, 0.0f, "not finite");
        }
        /* Another arithmetic gets elsewhere by every fault before it: where
         * training says what must come out, that is asked alone. */
        if (!(e->profile == EXPECT_OWN && is_alike(e)) &&
            !as_baseline(e, k, t, got, f)) {
            return false;
        }
        if (t + 1 == e->c->steps || !is_alike(e)) {
            continue; /* no training forward follows */
        }
        if (rank->loss == NULL || (t + 1) * per_step >= rank->n_losses) {
            return finding_text(f, at, "the next step's loss is not recorded");
        }
        if (fsdp_f32_bits(got) !=
            fsdp_f32_bits(rank->loss[(t + 1) * per_step])) {
            return finding_bits(f, at, got, rank->loss[(t + 1) * per_step],
                                "differs from the next training forward");
        }
    }
    return true;
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_ranks(e, r, check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    struct record_rank *rank = compare_rank_to_spoil(r, r->n_ranks - 1);

    (void)e;
    if (rank == NULL) {
        return false;
    }

    if (rank->other_loss == NULL || rank->n_other_losses == 0) {
        return false;
    }
    rank->other_loss[0] = NAN;
    return true;
}

REQUIREMENT(eval_equals_training_forward) = {
    .id = "eval.equals-training-forward",
    .text = "The evaluation after a step gives each rank the loss that it "
            "has in the baseline and, if it calls what training calls, "
            "that of the next step's first forward, bit for bit (in an "
            "arithmetic of its own the latter, or else the former within "
            "the bound).",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_STEP,
    .needs = "num.loss-finite",
    .claim = "eval",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
