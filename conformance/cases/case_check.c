/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_check.c - when a case is well formed. Cases come from files and command
 * lines too; a case that passes here can be run, or an engine can at least
 * refuse it by name.
 */
#include "cases/case_factors.h"
#include "cases/case_script.h"

#include <math.h>
#include <string.h>

#define N_OF(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

/* Whether this can be a word of an id: 1 to 15 characters, and the array ends
 * it. */
static bool is_word(const char word[16])
{
    size_t n = 0;

    while (n < 16 && word[n] != '\0') {
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789-", word[n])) {
            return false;
        }
        n++;
    }
    return n > 0 && n < 16;
}

static const char *check_names(const struct run_case *c)
{
    if (!is_word(c->workload) || !is_word(c->size)) {
        return "workload and size are words of 1 to 15 of a-z, 0-9 and -";
    }
    if (!case_data_name(c->data) || !case_scenario_name(c->scenario) ||
        !case_strategy_name(c->strategy) || !case_layout_name(c->layout) ||
        !case_wrap_name(c->wrap) || !case_fold_name(c->fold) ||
        !case_optimizer_name(c->optimizer) ||
        !case_recompute_name(c->recompute) || !case_frozen_name(c->frozen) ||
        !case_precision_name(c->precision) || !case_factors_name(c->factors) ||
        !case_offload_name(c->offload)) {
        return "data, scenario, strategy, layout, wrap, fold, optimizer, "
               "recompute, precision, factors, offload or frozen is not in "
               "its list";
    }
    return NULL;
}

static const char *check_world(const struct run_case *c)
{
    const bool hybrid = c->strategy == CASE_HYBRID_SHARD ||
                        c->strategy == CASE_HYBRID_SHARD_ZERO2;

    if (c->ranks < 1 || c->ranks > CASE_MAX_RANKS) {
        return "ranks is from 1 to 512";
    }
    if (!hybrid &&
        c->replicas != (c->strategy == CASE_NO_SHARD ? c->ranks : 1)) {
        return "replicas is 1, or all ranks under no-shard";
    }
    if (hybrid && (c->replicas < 2 || c->replicas >= c->ranks ||
                   c->ranks % c->replicas != 0)) {
        return "a hybrid strategy has replicas from 2 to below ranks that "
               "divide ranks";
    }
    if (c->grains != case_grains(c->fold, c->ranks) ||
        (c->grains == 0 && c->fold == FSDP_FOLD_TREE)) {
        return "fold tree has 8 grains, or 64, which ranks divides; others "
               "have none";
    }
    if (c->scenario == CASE_DISAGREE && c->ranks < 2) {
        return "one rank cannot disagree";
    }
    if ((c->scenario == CASE_GROW &&
         (c->grains != CASE_GRAINS || c->ranks < 2)) ||
        (c->scenario == CASE_SHRINK &&
         (c->grains != CASE_GRAINS || CASE_GRAINS % (2 * c->ranks) != 0))) {
        return "other ranks save under fold tree: half as many, or twice as "
               "many, that divide its 8 grains";
    }
    return NULL;
}

static const char *check_microbatches(const struct run_case *c)
{
    if (c->microbatches < 1 || c->microbatches > CASE_MAX_MICROBATCHES) {
        return "a step has 1 to 4 microbatches";
    }
    for (uint32_t b = 0; b < CASE_MAX_MICROBATCHES; b++) {
        if (c->sync[b] > (b < c->microbatches ? 1u : 0u)) {
            return "sync is 0 or 1, and 0 beyond the microbatches";
        }
    }
    return c->sync[c->microbatches - 1] == 1
               ? NULL
               : "the last microbatch of a step is reduced";
}

/* Whether the sums that the first two of three microbatches leave are reduced
 * before the third takes its part away, which data exact16 do not allow
 * (exact16.h). */
static bool sums_meet(const struct run_case *c)
{
    return c->microbatches > 2 && c->sync[0] == 0 && c->sync[1] != 0;
}

static const char *check_numbers(const struct run_case *c)
{
    if (c->keep_root > 1) {
        return "keep_root is 0 or 1";
    }
    if (c->frozen != WORKLOAD_TRAINS_ALL && c->frozen != WORKLOAD_FROZEN_BASE &&
        c->recompute != WORKLOAD_KEEPS) {
        return "what is frozen has no recompute: either, or neither, or "
               "frozen-base";
    }
    if ((c->wrap == CASE_WRAP_APART || c->wrap == CASE_WRAP_IGNORE) &&
        c->frozen == WORKLOAD_TRAINS_ALL) {
        return "the wraps apart and ignore are by what is frozen";
    }
    if (!(c->lr > 0.0f && c->lr <= 1e6f)) {
        return "lr is over 0 and at most 1e6";
    }
    if (!(c->weight_decay >= 0.0f && c->weight_decay <= 1e6f) ||
        signbit(c->weight_decay)) {
        return "weight_decay is from 0 to 1e6";
    }
    if (!(c->divide_factor >= 0.0f && c->divide_factor <= 1e6f) ||
        signbit(c->divide_factor)) {
        return "divide_factor is from 0 (the world) to 1e6";
    }
    if (c->prefetch_forward > CASE_MAX_AHEAD ||
        c->prefetch_backward > CASE_MAX_AHEAD ||
        c->reduces_in_flight > CASE_MAX_AHEAD) {
        return "prefetch and reduces_in_flight are at most 64";
    }
    if (c->steps < 1 || c->steps > CASE_MAX_STEPS ||
        c->recorded_steps > c->steps) {
        return "steps is from 1 to 100000, recorded_steps at most that";
    }
    return NULL;
}

/* Values that are in range, but do not go with the scenario or the data of this
 * case. */
static const char *check_rounding(const struct run_case *c)
{
    if (c->scenario == CASE_CLIP && c->recorded_steps > CASE_MOST_CLIPPED) {
        return "clipping is recorded for 128 steps at most";
    }
    if (case_resumes(c) && c->steps < 2) {
        return "half of the steps come before what is saved: 2 at least";
    }
    if (c->scenario == CASE_CLIP && workload_is_exact(c->data)) {
        return "clipping rounds: what is exact does not stay so";
    }
    if (c->precision != CASE_F32 && c->data == WORKLOAD_EXACT) {
        return "what is exact in float32 is not so in 16 bits: that is exact16";
    }
    if (c->data == WORKLOAD_EXACT16 &&
        (c->precision == CASE_F32 || sums_meet(c))) {
        return "exact16 is for a precision of 16 bits, and of three "
               "microbatches the second is not reduced with the first alone";
    }
    if (c->precision != CASE_F32 &&
        (c->scenario == CASE_GROW || c->scenario == CASE_SHRINK)) {
        return "who saves is another world, whose ranks round otherwise in 16 "
               "bits";
    }
    if (case_is_tied(c) &&
        (c->scenario == CASE_GROW || c->scenario == CASE_SHRINK)) {
        return "who saves is another world, whose ranks add up the uses of "
               "what is tied otherwise";
    }
    return NULL;
}

static const char *check_factors(const struct run_case *c)
{
    const bool other_world =
        c->scenario == CASE_GROW || c->scenario == CASE_SHRINK;

    if (case_has_numbers(c) &&
        (case_is_script(c) || c->scenario == CASE_GROUPS)) {
        return "a script says its groups itself, and scenario groups has its "
               "own";
    }
    if (c->factors != CASE_USUAL_FACTORS && !case_has_numbers(c) &&
        (other_world || c->data == WORKLOAD_REPLICATED)) {
        return "who saves is another world, whose gradients are divided "
               "otherwise; and replicated data are divided by the world";
    }
    if (c->factors > CASE_PRE2 && workload_is_exact(c->data)) {
        return "what is exact stays so by powers of two alone";
    }
    return NULL;
}

/* Scripts are looked up only by a name that ends within its array. */
static const char *check_script(const struct run_case *c)
{
    const struct case_script *s = NULL;

    if (!case_is_script(c)) {
        return c->script[0] == '\0' ? NULL
                                    : "only scenario script has a script";
    }
    if (memchr(c->script, '\0', sizeof(c->script))) {
        s = case_script_find(c->script);
    }
    if (!s) {
        return "this script is neither the suite's nor was it given";
    }
    return c->steps == s->actions && c->recorded_steps == s->actions
               ? NULL
               : "a script has as many steps, and recorded ones, as actions";
}

const char *case_check(const struct run_case *c)
{
    static const char *(*const check[])(const struct run_case *) = {
        check_names,    check_world,   check_microbatches, check_numbers,
        check_rounding, check_factors, check_script};
    const char *wrong = NULL;

    for (uint32_t i = 0; i < N_OF(check) && !wrong; i++) {
        wrong = check[i](c);
    }
    return wrong;
}
