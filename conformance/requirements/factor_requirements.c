/* SPDX-License-Identifier: Apache-2.0 */
/*
 * factor_requirements.c - the factors of gradients before and behind the fold,
 * where these are not the inverse of one factor for all units. A wrong part is
 * compared with what known mistakes would have made of it; if it is none of
 * them, reduce.fold and accumulate.* report it.
 */
#include "requirements/families.h"

#include "judge/compare/compare_checks.h"
#include "judge/replay/replay.h"

/* A mistake that an engine may make. */
struct mistake {
    struct expect_factors factor;
    bool each; /* predivides each microbatch by itself */
    const char *words;
};

static bool is_as(struct replay_reduction x, const struct mistake *mistake,
                  const float *got, uint64_t n)
{
    x.factor = mistake->factor;
    x.predivides_each = mistake->each;
    for (uint64_t i = 0; i < n; i++) {
        if (!(got[i] == replay_reduced(&x, i))) {
            return false;
        }
    }
    return true;
}

/* False, with the finding, if the whole part is as one of the mistakes makes
 * it, and not as it should be. */
static bool is_none_of(const struct replay_reduction *x,
                       const struct compare_part *part, const float *got,
                       const struct mistake *mistake, uint32_t n,
                       struct finding *f)
{
    const struct mistake right = {.factor = x->factor};
    struct finding at = finding_at_part("reduced", -1, part);

    if (is_as(*x, &right, got, part->n)) {
        return true;
    }
    for (uint32_t m = 0; m < n; m++) {
        if (is_as(*x, &mistake[m], got, part->n)) {
            return finding_text(f, at, mistake[m].words);
        }
    }
    return true;
}

static bool find(const struct expect *e, const struct record *r,
                 const struct compare_part *part, struct replay_reduction *x,
                 const float **got, struct finding *f)
{
    *got = compare_values(r, RECORD_REDUCED, part);
    return !*got ? compare_missing(part, RECORD_REDUCED, f)
                 : replay_reduction_find(e, r, part, x, f);
}

static bool is_predivided(const struct expect *e, uint32_t unit)
{
    return e->trained[unit] && e->unit[unit].factor.before != 1.0f;
}

static bool predivide_of_part(const struct expect *e, const struct record *r,
                              const struct compare_part *part,
                              struct finding *f)
{
    const struct expect_unit *unit = &e->unit[part->unit];
    const struct expect_factors own = unit->factor;
    const float all = 1.0f / unit->divide;
    const struct mistake mistakes[] = {
        {{1.0f, own.behind}, false, "all of this part was not predivided"},
        {{1.0f, all}, false, "all of this part was divided behind the fold"},
        {{own.before, all},
         false,
         "all of this part was predivided, and divided by all of the divide "
         "factor behind the fold"},
        {{own.before * own.before, own.behind},
         false,
         "all of this part was predivided twice"},
        {{all, 1.0f}, false, "all of this part was divided before the fold"},
        {own, true, "what was pending was predivided with each microbatch"},
    };
    struct replay_reduction x;
    const float *got;

    if (!is_predivided(e, part->unit)) {
        return true;
    }
    return find(e, r, part, &x, &got, f) &&
           is_none_of(&x, part, got, mistakes,
                      sizeof(mistakes) / sizeof(mistakes[0]), f);
}

static bool predivides(const struct expect *e)
{
    bool any = false;

    for (uint32_t u = 0; u < e->units->n_units; u++) {
        any = any || (is_predivided(e, u) && e->unit[u].numel > 0);
    }
    return any && compare_case_staged(e) && !e->any_fold;
}

/* ---- A unit's own --------------------------------------------------------*/

static struct expect_factors factors_of_options(const struct expect *e)
{
    const struct fsdp_options *o = &e->options;
    const float before =
        o->predivide_factor != 0.0f ? o->predivide_factor : 1.0f;
    const float divide =
        o->divide_factor != 0.0f ? o->divide_factor : (float)e->c->ranks;

    return (struct expect_factors){1.0f / before, before / divide};
}

static bool is_same(struct expect_factors a, struct expect_factors b)
{
    return a.before == b.before && a.behind == b.behind;
}

static bool unit_scale_of_part(const struct expect *e, const struct record *r,
                               const struct compare_part *part,
                               struct finding *f)
{
    struct mistake mistake = {
        .factor = factors_of_options(e),
        .words = "all of this part was divided as the options say, not as its "
                 "unit does"};
    const struct expect_factors own = e->unit[part->unit].factor;
    struct replay_reduction x;
    const float *got;

    if (!e->trained[part->unit]) {
        return true;
    }
    if (!find(e, r, part, &x, &got, f) ||
        (!is_same(own, mistake.factor) &&
         !is_none_of(&x, part, got, &mistake, 1, f))) {
        return false;
    }
    mistake.words = "all of this part was divided as another unit's";
    for (uint32_t u = 0; u < e->units->n_units; u++) {
        mistake.factor = e->unit[u].factor;
        if (!is_same(own, mistake.factor) &&
            !is_none_of(&x, part, got, &mistake, 1, f)) {
            return false;
        }
    }
    return true;
}

static bool has_own(const struct expect *e)
{
    return compare_case_staged(e) && !e->any_fold &&
           e->c->factors == CASE_UNIT_FACTORS && e->units->n_units > 1;
}

/* ---- Spoiled -------------------------------------------------------------*/

/* Reduces the first part whose bits change by that with `factor` in place of
 * the right one. */
static bool spoil_part(const struct expect *e, struct record *r,
                       struct record_tensor *t, struct expect_factors factor)
{
    const struct compare_part part = {.unit =
                                          e->unit_of_parameter[t->parameter],
                                      .parameter = t->parameter,
                                      .first = t->first,
                                      .n = t->n};
    const struct mistake wrong = {.factor = factor};
    struct replay_reduction x;
    struct finding unused;

    if (!replay_reduction_find(e, r, &part, &x, &unused) ||
        is_as(x, &wrong, t->data, t->n)) {
        return false;
    }
    x.factor = factor;
    for (uint64_t i = 0; i < t->n; i++) {
        t->data[i] = replay_reduced(&x, i);
    }
    return true;
}

static bool spoil(const struct expect *e, struct record *r, bool own)
{
    struct record_rank *rank = compare_rank_to_spoil(r, 0);
    const struct expect_factors option = factors_of_options(e);

    for (uint32_t i = 0; rank && i < rank->n_tensors; i++) {
        struct record_tensor *t = &rank->tensor[i];
        struct expect_factors factor;
        uint32_t u;

        if (t->stage != RECORD_REDUCED || t->step != 0 || t->n == 0 ||
            !t->data || t->parameter >= e->model->n_parameters) {
            continue;
        }
        u = e->unit_of_parameter[t->parameter];
        factor = own ? option
                     : (struct expect_factors){1.0f, e->unit[u].factor.behind};
        if ((own ? !is_same(e->unit[u].factor, option) : is_predivided(e, u)) &&
            spoil_part(e, r, t, factor)) {
            return true;
        }
    }
    return false;
}

static bool predivide_spoil(const struct expect *e, struct record *r)
{
    return spoil(e, r, false);
}

static bool unit_scale_spoil(const struct expect *e, struct record *r)
{
    return spoil(e, r, true);
}

const struct requirement factor_requirements[] = {
    {.since = "1.1",
     .must = 1,
     .level = LEVEL_REDUCE,
     .needs = "grad.finite reduce.replicas-equal",
     .claim = "unit-factors",
     .check = &check_each_part},
    {.id = "reduce.predivide",
     .text = "Predivided gradients are scaled once before and once behind the "
             "fold, what is pending not before it is complete.",
     .across = true,
     .applies = predivides,
     .spoil = predivide_spoil,
     .part = {predivide_of_part, 0, STEPS_FIRST}},
    {.id = "reduce.unit-scale",
     .text = "A unit with factors of its own is scaled by them, and no other "
             "unit is.",
     .across = true,
     .applies = has_own,
     .spoil = unit_scale_spoil,
     .part = {unit_scale_of_part, 0, STEPS_FIRST}},
    {0},
};
