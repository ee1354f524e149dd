/* SPDX-License-Identifier: Apache-2.0 */
/*
 * curve_requirements.c - losses: every rank's in every life, and an
 * evaluation's, must be those of the unsharded run.
 */
#include "requirements/families.h"

#include "judge/compare/compare_checks.h"
#include "judge/replay/bounds.h"

#include <fsdp/arith/bits.h>
#include <math.h>
#include <string.h>

/*
 * num.loss-finite: a loss that is NaN compares false with everything, so it is
 * looked for.
 */
static bool loss_finite_of_rank(const struct expect *e,
                                const struct record_rank *rank, uint32_t k,
                                struct finding *f)
{
    for (uint64_t i = 0; i < compare_n_losses(e); i++) {
        struct finding at =
            finding_at("loss", (int64_t)(i / e->c->microbatches),
                       (int64_t)(i % e->c->microbatches), k);

        if (!rank->loss || i >= rank->n_losses) {
            return finding_text(f, at, "this loss is not recorded");
        }
        if (!isfinite(rank->loss[i])) {
            return finding_bits(f, at, rank->loss[i], 0.0f, "not finite");
        }
    }
    return true;
}

static bool loss_finite_spoil(const struct expect *e, struct record_rank *rank)
{
    (void)e;
    if (!rank->loss || rank->n_losses == 0) {
        return false;
    }
    rank->loss[rank->n_losses - 1] = NAN;
    return true;
}

/* num.curve: the main promise: sharding changes where values are, and no
 * value. */
static bool is_undisturbed(const struct expect *e)
{
    return compare_case_trains(e) && e->c->scenario != CASE_CANCEL &&
           e->c->scenario != CASE_MISUSE;
}

static bool curve_holds(const struct expect *e, const struct record *r,
                        struct finding *f)
{
    return compare_curves(e, r, e->baseline, compare_n_losses(e), f);
}

/* Calls `check` for every loss of every rank and the baseline's of the same
 * rank. */
static bool each_loss(const struct expect *e, const struct record *r,
                      bool (*check)(const struct expect *e, float got,
                                    float want, struct finding at,
                                    struct finding *f),
                      struct finding *f)
{
    for (uint64_t i = 0; i < compare_n_losses(e); i++) {
        for (uint32_t k = 0; k < e->c->ranks; k++) {
            struct finding at =
                finding_at("loss", (int64_t)(i / e->c->microbatches),
                           (int64_t)(i % e->c->microbatches), k);
            const struct record_rank *got = compare_rank(r, k);
            const struct record_rank *want =
                !e->baseline ? NULL : compare_rank(e->baseline, k);

            if (!got || !got->loss || i >= got->n_losses || !want ||
                !want->loss || i >= want->n_losses) {
                return finding_text(
                    f, at, "this loss or the baseline's is not recorded");
            }
            if (!check(e, got->loss[i], want->loss[i], at, f)) {
                return false;
            }
        }
    }
    return true;
}

/*
 * num.curve-bound: another arithmetic follows the curve of the unsharded run,
 * as far as rounding lets it, on every rank.
 */
static bool curve_bound_of_loss(const struct expect *e, float got, float want,
                                struct finding at, struct finding *f)
{
    return bounds_hold(e, &got, &want, 1, (uint32_t)at.step, at, f);
}

static bool curve_bound_holds(const struct expect *e, const struct record *r,
                              struct finding *f)
{
    return each_loss(e, r, curve_bound_of_loss, f);
}

/*
 * num.local-loss: the folded loss does not show it if two ranks have swapped
 * their batches.
 */
static bool local_loss_of_loss(const struct expect *e, float got, float want,
                               struct finding at, struct finding *f)
{
    (void)e;
    return (want == want && fsdp_f32_bits(got) == fsdp_f32_bits(want)) ||
           finding_bits(f, at, got, want, "this rank's loss differs in bits");
}

static bool local_loss_holds(const struct expect *e, const struct record *r,
                             struct finding *f)
{
    return each_loss(e, r, local_loss_of_loss, f);
}

/* num.loss-falls: equal curves prove nothing if nothing is learned. */
static bool loss_falls_applies(const struct expect *e)
{
    return compare_case_trains(e) && strcmp(e->c->workload, "mlp") == 0 &&
           strcmp(e->c->size, "seed") == 0 && e->c->data == WORKLOAD_NATURAL &&
           e->c->steps >= 40;
}

static bool loss_falls_holds(const struct expect *e, const struct record *r,
                             struct finding *f)
{
    struct finding at = finding_at("loss", (int64_t)e->c->steps - 1, -1, -1);
    float first;
    float last;

    if (!compare_loss(e, r, 0, &first) ||
        !compare_loss(e, r, compare_n_losses(e) - 1, &last)) {
        return finding_text(f, at, "a rank's loss is not recorded");
    }
    return last < first || finding_bits(f, at, last, first,
                                        "not below the loss of the first step");
}

/* Gives every rank the loss in the end that it began with. */
static bool loss_falls_spoil(const struct expect *e, struct record *r)
{
    for (uint32_t k = 0; k < e->c->ranks; k++) {
        struct record_rank *rank = compare_rank_to_spoil(r, k);

        if (!rank || !rank->loss || rank->n_losses < compare_n_losses(e)) {
            return false;
        }
        rank->loss[compare_n_losses(e) - 1] = rank->loss[0];
    }
    return true;
}

/*
 * num.deterministic: a second life in the same process, with used memory, is
 * the same life.
 */
static bool deterministic_applies(const struct expect *e)
{
    return e->c->scenario == CASE_AGAIN;
}

static bool deterministic_of_rank(const struct expect *e,
                                  const struct record_rank *rank, uint32_t k,
                                  struct finding *f)
{
    if (!rank->loss || !rank->other_loss ||
        rank->n_losses != compare_n_losses(e) ||
        rank->n_other_losses != rank->n_losses) {
        return finding_count(f, finding_at("loss", -1, -1, k),
                             rank->n_other_losses, compare_n_losses(e),
                             "losses recorded of the first life");
    }
    for (uint32_t i = 0; i < rank->n_losses; i++) {
        if (fsdp_f32_bits(rank->loss[i]) !=
            fsdp_f32_bits(rank->other_loss[i])) {
            return finding_bits(
                f,
                finding_at("loss", i / e->c->microbatches,
                           i % e->c->microbatches, k),
                rank->loss[i], rank->other_loss[i],
                "the second life differs from the first (want)");
        }
    }
    return true;
}

static bool deterministic_spoil(const struct expect *e,
                                struct record_rank *rank)
{
    uint32_t bits;

    (void)e;
    if (!rank->loss || rank->n_losses == 0) {
        return false;
    }
    /* Bits are compared, so that a NaN, too, becomes another one. */
    memcpy(&bits, &rank->loss[rank->n_losses - 1], sizeof(bits));
    bits ^= 1;
    memcpy(&rank->loss[rank->n_losses - 1], &bits, sizeof(bits));
    return true;
}

/*
 * eval.equals-training-forward: an evaluation sees the weights of the next
 * training forward, and leaves no trace. Where it calls other modules than
 * training does, the baseline says what it must return.
 */
static bool equals_training_forward_applies(const struct expect *e)
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
        e->baseline ? compare_rank(e->baseline, k) : NULL;
    struct finding at = finding_at("evaluation", t, -1, k);

    if (!rank || !rank->other_loss || t >= rank->n_other_losses) {
        return finding_missing(f, at, "the baseline has no such evaluation");
    }
    if (e->profile == EXPECT_OWN && !workload_is_exact(e->c->data)) {
        return bounds_hold(e, &got, &rank->other_loss[t], 1, t + 1, at, f);
    }
    return fsdp_f32_bits(got) == fsdp_f32_bits(rank->other_loss[t]) ||
           finding_bits(f, at, got, rank->other_loss[t],
                        "differs from the baseline's evaluation");
}

static bool equals_training_forward_of_rank(const struct expect *e,
                                            const struct record_rank *rank,
                                            uint32_t k, struct finding *f)
{
    uint64_t per_step = e->c->microbatches;

    if (!rank->other_loss || rank->n_other_losses != e->c->steps) {
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
        /* With another arithmetic any earlier fault moves the loss away from
         * the baseline: where the training forward says what it must be, only
         * that is asked. */
        if (!(e->profile == EXPECT_OWN && is_alike(e)) &&
            !as_baseline(e, k, t, got, f)) {
            return false;
        }
        if (t + 1 == e->c->steps || !is_alike(e)) {
            continue; /* no training forward follows */
        }
        if (!rank->loss || (t + 1) * per_step >= rank->n_losses) {
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

static bool equals_training_forward_spoil(const struct expect *e,
                                          struct record_rank *rank)
{
    (void)e;
    if (!rank->other_loss || rank->n_other_losses == 0) {
        return false;
    }
    rank->other_loss[0] = NAN;
    return true;
}

const struct requirement curve_requirements[] = {
    {.since = "1.0", .must = 1, .level = LEVEL_STEP},
    {.id = "num.loss-finite",
     .text = "Every rank's loss of every microbatch is finite.",
     .needs = "run.shows-every-step grad.finite step.weights",
     .applies = compare_case_trains,
     .check = &check_each_rank,
     .rank = {loss_finite_of_rank, loss_finite_spoil}},
    {.id = "num.curve",
     .text = "The loss curve, folded over ranks, equals the unsharded "
             "baseline's at every microbatch, bit for bit.",
     .needs = "num.loss-finite grad.local reduce.baseline step.state "
              "step.weights offload.same-bits",
     .profile = PROFILE_BITS,
     .applies = is_undisturbed,
     .holds = curve_holds,
     .spoil = compare_spoil_curve},
    {.id = "num.curve-bound",
     .text = "In an arithmetic of its own every rank's loss of every "
             "microbatch is the baseline's within the bound of roundings.",
     .since = "1.1",
     .needs = "num.loss-finite grad.bound step.bound clip.scale",
     .profile = PROFILE_BOUND,
     .applies = is_undisturbed,
     .holds = curve_bound_holds,
     .spoil = compare_spoil_curve},
    {.id = "num.local-loss",
     .text = "Each rank's own loss equals the loss of the same rank in the "
             "baseline, bit for bit.",
     .needs = "num.curve",
     .profile = PROFILE_BITS,
     .applies = is_undisturbed,
     .holds = local_loss_holds,
     .spoil = compare_spoil_curve},
    {.id = "num.loss-falls",
     .text = "On the natural data of the seed model the loss of the last step "
             "is below that of the first.",
     .needs = "num.curve",
     .applies = loss_falls_applies,
     .holds = loss_falls_holds,
     .spoil = loss_falls_spoil},
    {.id = "num.deterministic",
     .text = "Training again after destroy gives the same losses on every "
             "rank, bit for bit.",
     .needs = "run.shows-every-step stream.no-race",
     .applies = deterministic_applies,
     .check = &check_each_rank,
     .rank = {deterministic_of_rank, deterministic_spoil}},
    {.id = "eval.equals-training-forward",
     .text = "The evaluation after a step gives each rank the loss that it has "
             "in the baseline and, if it calls what training calls, that of "
             "the next step's first forward, bit for bit (in an arithmetic of "
             "its own the latter, or else the former within the bound).",
     .needs = "num.loss-finite",
     .claim = "eval",
     .applies = equals_training_forward_applies,
     .check = &check_each_rank,
     .rank = {equals_training_forward_of_rank, equals_training_forward_spoil}},
    {0},
};
