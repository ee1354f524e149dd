/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_curves.c - folded losses, and the records of other cases whose curve
 * and final weights must be the same.
 */
#include "judge/compare/compare.h"

#include "cases/case_claims.h"
#include "cases/case_script.h"
#include "judge/judge_adapter.h"

#include <fsdp/arith/bits.h>
#include <string.h>

uint64_t compare_n_losses(const struct expect *e)
{
    return (uint64_t)e->c->steps * case_losses_a_step(e->c);
}

/* Folds loss i of `n` ranks; of one rank it is the loss itself. */
static bool fold_loss(const struct expect *e, const struct record *r,
                      uint32_t n, uint64_t i, float *out)
{
    float x[WORLD_MAX_RANKS];

    if (n > WORLD_MAX_RANKS) {
        return false;
    }
    for (uint32_t k = 0; k < n; k++) {
        const struct record_rank *rank = compare_rank(r, k);

        if (!rank || !rank->loss || i >= rank->n_losses) {
            return false;
        }
        x[k] = rank->loss[i];
    }
    *out = n == 1 ? x[0] : expect_fold_loss(e, x);
    return true;
}

bool compare_loss(const struct expect *e, const struct record *r, uint64_t i,
                  float *out)
{
    return fold_loss(e, r, e->c->ranks, i, out);
}

bool compare_any_nan(const struct expect *e)
{
    const struct case_script *s = case_script_of(e->c);

    return s && (s->given || e->script.n_edits > 0 || e->script.scale.said);
}

bool compare_curves(const struct expect *e, const struct record *r,
                    const struct record *other, uint64_t n, struct finding *f)
{
    /* The baseline has the case's ranks; a companion these or one. */
    bool is_single = other && other != e->baseline && other->c.ranks == 1;

    for (uint64_t i = 0; i < n; i++) {
        struct finding at =
            finding_at("loss", (int64_t)(i / case_losses_a_step(e->c)),
                       (int64_t)(i % case_losses_a_step(e->c)), -1);
        float got;
        float want;

        if (!compare_loss(e, r, i, &got)) {
            return finding_text(f, at, "a rank's loss is not recorded");
        }
        if (!other ||
            !fold_loss(e, other, is_single ? 1 : e->c->ranks, i, &want)) {
            return finding_missing(f, at, "there is no curve to compare with");
        }
        if (compare_any_nan(e) && compare_same_or_nan(got, want)) {
            continue;
        }
        if (!(want == want)) {
            return finding_bits(f, at, got, want,
                                "the loss to compare with is NaN");
        }
        if (fsdp_f32_bits(got) != fsdp_f32_bits(want)) {
            return finding_bits(f, at, got, want,
                                "the folded losses differ in bits");
        }
    }
    return true;
}

bool compare_spoil_curve(const struct expect *e, struct record *r)
{
    struct record_rank *rank = compare_rank_to_spoil(r, 0);
    float *loss;

    (void)e;
    if (!rank || !rank->loss || rank->n_losses == 0) {
        return false;
    }
    loss = &rank->loss[rank->n_losses - 1];
    *loss = *loss == *loss ? 2.0f * *loss + 64.0f : 1.0f;
    return true;
}

static const struct record *look_up(const struct expect *e,
                                    const struct run_case *c)
{
    char id[CASE_ID_BYTES];
    char own[CASE_ID_BYTES];
    const struct record *other;

    if (!e->lookup) {
        return NULL;
    }
    case_id(c, id);
    case_id(e->c, own);
    other = strcmp(id, own) == 0 ? NULL : e->lookup(e->lookup_context, id);
    if (!other || other->c.ranks != c->ranks) {
        return NULL;
    }
    for (uint32_t k = 0; k < c->ranks; k++) {
        const struct record_rank *rank = compare_rank(other, k);

        if (!rank || rank->end != WORLD_RETURNED || rank->status != FSDP_OK) {
            return NULL;
        }
    }
    return other;
}

const struct record *compare_companion(const struct expect *e,
                                       void (*change)(struct run_case *c))
{
    struct run_case c = *e->c;

    change(&c);
    return look_up(e, &c);
}

bool compare_twin(const struct expect *e, void (*change)(struct run_case *c))
{
    const struct record *r = compare_companion(e, change);
    const char *list[CASE_MAX_CLAIMS];
    const uint32_t n = r ? case_claims(&r->c, list) : 0;

    for (uint32_t i = 0; i < n; i++) {
        if (!record_claims(r, list[i]) && !judge_any_order(list[i])) {
            return false;
        }
    }
    return r != NULL;
}

/* On one rank nothing is added up across ranks, so wrap, strategy, prefetch and
 * (but for the tree's grains) the fold make no difference: any record of these
 * cases will do. */
const struct record *compare_companion_single(const struct expect *e)
{
    struct run_case c = *e->c;
    const struct record *found = NULL;

    c.scenario = CASE_TRAIN;
    c.ranks = 1;
    c.replicas = 1;
    c.keep_root = 0;
    c.prefetch_forward = 0;
    c.prefetch_backward = 0;
    c.reduces_in_flight = 0;
    for (uint32_t s = CASE_FULL_SHARD; !found && s <= CASE_NO_SHARD; s++) {
        c.strategy = s;
        for (uint32_t w = 0; !found && w < CASE_N_WRAPS; w++) {
            c.wrap = w;
            found = look_up(e, &c);
        }
    }
    return found;
}

static void only_train(struct run_case *c)
{
    c->scenario = CASE_TRAIN;
}

/* The engine's own plain run, rather than the baseline: an engine whose curve
 * is wrong in any case is not blamed for it here again. */
static const struct record *undisturbed(const struct expect *e)
{
    const struct record *own = compare_companion(e, only_train);

    return own ? own : e->baseline;
}

static bool check_final(const struct expect *e, const struct record *r,
                        const struct compare_part *part, struct finding *f)
{
    const struct record *other = undisturbed(e);
    const float *want = other == e->baseline
                            ? compare_baseline(e, RECORD_FINAL, part)
                            : compare_values(other, RECORD_FINAL, part);

    return compare_equal(e, part, RECORD_FINAL,
                         compare_values(r, RECORD_FINAL, part), want, f);
}

bool compare_undisturbed(const struct expect *e, const struct record *r,
                         struct finding *f)
{
    return compare_curves(e, r, undisturbed(e), compare_n_losses(e), f) &&
           (compare_recorded_steps(e) == 0 ||
            compare_parts(e, r, e->c->steps, e->c->steps + 1, check_final, f));
}
