/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_draw_case.c - the header of a drawn script: model, world, options,
 * and the numbers that hold for all of it.
 */
#include "script/script_draw_parts.h"

#include "cases/case_graph.h"
#include "cases/case_precision.h"
#include "models/workload.h"

#include <stdio.h>
#include <string.h>

#define N_OF(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

static uint32_t below(struct drawer *d, uint32_t n)
{
    return chance_below(&d->chance, n);
}

static bool is_hybrid(uint32_t strategy)
{
    return strategy == CASE_HYBRID_SHARD || strategy == CASE_HYBRID_SHARD_ZERO2;
}

/* Tied parameters must be in one unit, so the wrap puts them there. */
static uint32_t draw_wrap(struct drawer *d, const struct run_case *c)
{
    if (draw_has_steps(d) && chance_one_in(&d->chance, 6)) {
        return CASE_WRAP_SCATTER;
    }
    if (case_is_tied(c)) {
        return chance_one_in(&d->chance, 2) ? CASE_WRAP_WHOLE : CASE_WRAP_BLOCK;
    }
    return below(d, CASE_WRAP_DRAWN);
}

static void draw_model(struct drawer *d, struct run_case *c)
{
    static const struct {
        const char *workload, *size;
    } row[] = {{"mlp", "seed"},     {"mlp", "odd"},  {"mlp", "empty"},
               {"linear", "small"}, {"gpt", "tiny"}, {"gpt", "odd"},
               {"mlp", "track"}}; /* from generator 4 on */
    static const uint32_t weights[] = {5, 3, 1, 3, 1, 2, 3};
    const bool ties = draw_has_units(d) && chance_one_in(&d->chance, 3);
    const bool units = draw_has_sends(d) && chance_one_in(&d->chance, 3);
    uint32_t i;

    c->data = WORKLOAD_NATURAL;
    c->seed = 1 + below(d, 1u << 20);
    if (chance_one_in(&d->chance, 2)) {
        memcpy(c->workload, CASE_GRAPH, sizeof(CASE_GRAPH));
        snprintf(c->size, sizeof(c->size), "%s",
                 ties && units ? "both"
                 : ties        ? "ties"
                 : units       ? "units"
                               : "random");
        c->wrap = CASE_WRAP_DRAWN;
        return;
    }
    i = chance_weighted(&d->chance, weights,
                        N_OF(weights) - (draw_has_steps(d) ? 0 : 1));
    strncpy(c->workload, row[i].workload, sizeof(c->workload) - 1);
    strncpy(c->size, row[i].size, sizeof(c->size) - 1);
    if (ties && row[i].workload[0] == 'g') { /* gpt */
        strncpy(c->size, "tied", sizeof(c->size) - 1);
    }
    c->wrap = draw_wrap(d, c);
}

/* A strategy; a hybrid one gets two or three replicas, so that they divide the
 * ranks. */
static void draw_strategy(struct drawer *d, struct run_case *c)
{
    c->strategy = below(d, CASE_N_STRATEGIES);
    c->replicas = c->strategy == CASE_NO_SHARD ? c->ranks : 1;
    if (!is_hybrid(c->strategy)) {
        return;
    }
    c->replicas = 2 + below(d, 2);
    if (c->ranks % c->replicas != 0) {
        c->replicas = 5 - c->replicas;
    }
    if (c->ranks % c->replicas != 0 || c->replicas >= c->ranks) {
        c->replicas = 1;
        c->strategy = c->strategy == CASE_HYBRID_SHARD ? CASE_FULL_SHARD
                                                       : CASE_SHARD_GRAD_OP;
    }
}

static void draw_ranks(struct drawer *d, struct run_case *c)
{
    static const uint32_t ranks[] = {1, 2, 2, 2, 3, 3,  4,  4,
                                     4, 5, 6, 8, 9, 12, 15, 16};

    c->ranks = ranks[below(d, N_OF(ranks))];
    draw_strategy(d, c);
    c->fold = below(d, FSDP_FOLD_TREE + 1);
    c->grains = case_grains(c->fold, c->ranks);
    if (c->grains == 0) {
        c->fold = c->fold == FSDP_FOLD_TREE ? FSDP_FOLD_RANK : c->fold;
    }
}

/* How many units there are at least: not every wrap of every model is looked
 * into. */
uint32_t draw_units(const struct run_case *c)
{
    struct graph g;

    if (case_graph_of(c, &g)) {
        return g.n_units;
    }
    return c->wrap == CASE_WRAP_LAYER || c->wrap == CASE_WRAP_BLOCK ||
                   c->wrap == CASE_WRAP_SCATTER
               ? 2
               : 1;
}

static bool is_gpt(const struct run_case *c)
{
    return strcmp(c->workload, "gpt") == 0;
}

/* How many parameters there are at least: not every model is looked into. */
uint32_t draw_parameters(const struct run_case *c)
{
    struct graph g;
    uint32_t n = 0;

    if (!case_graph_of(c, &g)) {
        return is_gpt(c) ? 14 : strcmp(c->size, "empty") == 0 ? 2 : 4;
    }
    for (uint32_t m = 0; m < g.n_modules; m++) {
        n += g.module[m].n_parameters;
    }
    return n;
}

/* Of gpt a parameter that is neither a norm's nor an embedding's: of those,
 * freezing takes both of a pair or none. */
uint32_t draw_parameter(struct drawer *d)
{
    static const uint32_t of_gpt[] = {4, 5, 6, 7, 10, 11, 12, 13};
    const struct run_case *c = &d->s->c;
    const uint32_t n = draw_parameters(c);
    const uint32_t kept = script_original(c, n - 1);

    if (is_gpt(c)) {
        return of_gpt[below(d, N_OF(of_gpt))];
    }
    for (uint32_t i = 0; i < 16; i++) {
        const uint32_t p = below(d, n);

        if (script_original(c, p) != kept && !script_ignores(c, p)) {
            return p;
        }
    }
    return SCRIPT_ALL;
}

static void draw_ahead(struct drawer *d, struct run_case *c)
{
    uint32_t *const option[] = {&c->prefetch_forward, &c->prefetch_backward,
                                &c->reduces_in_flight};
    bool ahead = chance_one_in(&d->chance, 3);

    d->units = draw_units(c);
    for (uint32_t i = 0; ahead && i < N_OF(option); i++) {
        *option[i] = below(d, 4);
        *option[i] = *option[i] < d->units ? *option[i] : d->units;
    }
}

/* ---- Dtypes, the scale of the loss, what is dropped, frozen, divided ---- */

/* A recompute, or frozen parameters, of those that the workload offers; never
 * both. */
static void draw_sequence(struct drawer *d, struct run_case *c)
{
    const struct workload *w = workload_find(c->workload);

    if (w && w->recomputes != 0 && chance_one_in(&d->chance, 3)) {
        c->recompute = workload_offer(w->recomputes,
                                      below(d, workload_offers(w->recomputes)));
    } else if (w && w->freezes != 0 && chance_one_in(&d->chance, 3)) {
        c->frozen =
            workload_offer(w->freezes, below(d, workload_offers(w->freezes)));
    }
}

/* Scales from some at which 16 bits lose values to some at which they
 * overflow. */
static void draw_scale(struct drawer *d, struct script_scale *scale)
{
    scale->said = true;
    scale->exponent = (int32_t)below(d, 37) - 12;
    scale->every = chance_one_in(&d->chance, 2) ? 0 : 1 + below(d, 3);
}

static void draw_mixed(struct drawer *d, struct run_case *c)
{
    /* Half of the cases are float32. Policies with two dtypes in one reduction,
     * or in one model, come a little more often than the others. */
    static const uint32_t weights[CASE_N_PRECISIONS] = {
        [CASE_F32] = 28,        [CASE_BF16] = 3,
        [CASE_BF16_REDUCE] = 3, [CASE_BF16_SUM] = 4,
        [CASE_REDUCE_BF16] = 3, [CASE_BF16_ACCUMULATE] = 3,
        [CASE_FP16] = 3,        [CASE_FP16_REDUCE_F32] = 3,
        [CASE_UNITS] = 4,       [CASE_DEFAULTS] = 3};
    bool narrow;

    c->precision = chance_weighted(&d->chance, weights, CASE_N_PRECISIONS);
    narrow = case_uses_dtype(c, FSDP_DTYPE_F16);
    if (chance_one_in(&d->chance, narrow ? 2 : 5)) {
        draw_scale(d, &d->s->scale);
    }
    if (chance_one_in(&d->chance, 5)) {
        c->factors = CASE_PRE2 + below(d, CASE_UNIT_FACTORS);
    }
}

/* ---- Numbers ---- */

static float one_of(struct drawer *d, const float *numbers, uint32_t n)
{
    return numbers[below(d, n)];
}

/* One number for all groups, or one for each. */
static void draw_list(struct drawer *d, bool own, const float *numbers,
                      uint32_t n, struct script_list *out)
{
    out->n = own && chance_one_in(&d->chance, 2) ? d->s->groups : 1;
    for (uint32_t g = 0; g < out->n; g++) {
        out->x[g] = one_of(d, numbers, n);
    }
}

static void draw_numbers(struct drawer *d)
{
    static const float beta1[] = {0.9f, 0.8f, 0.5f, 0.0f};
    static const float beta2[] = {0.999f, 0.95f, 0.75f};
    static const float eps[] = {1e-8f, 1e-5f, 0.125f};
    static const float momentum[] = {0.9f, 0.5f, 0.99f};
    struct script_numbers *n = &d->s->numbers;
    const uint32_t optimizer = d->s->c.optimizer;
    const bool own = d->s->groups > 1 && chance_one_in(&d->chance, 2);

    if (optimizer == FSDP_OPTIMIZER_MOMENTUM) {
        draw_list(d, own, momentum, N_OF(momentum), &n->momentum);
    } else if (optimizer == FSDP_OPTIMIZER_ADAMW) {
        draw_list(d, own, beta1, N_OF(beta1), &n->beta1);
        draw_list(d, own, beta2, N_OF(beta2), &n->beta2);
        draw_list(d, own, eps, N_OF(eps), &n->eps);
    }
}

/* What rests on the host, and which ranks have values when a life begins. */
static void draw_places(struct drawer *d, struct run_case *c)
{
    if (chance_one_in(&d->chance, 3)) {
        c->offload = 1 + below(d, CASE_N_OFFLOADS - 1);
    }
    d->s->deferred = chance_one_in(&d->chance, 6);
    d->s->rank0 = !d->s->deferred && chance_one_in(&d->chance, 6);
}

void draw_case(struct drawer *d)
{
    static const float divide[] = {1.0f, 2.0f, 3.0f, 7.0f};
    struct run_case *c = &d->s->c;

    memset(c, 0, sizeof(*c));
    draw_model(d, c);
    draw_ranks(d, c);
    c->layout = below(d, FSDP_LAYOUT_PER_PARAMETER + 1);
    c->keep_root = chance_one_in(&d->chance, 3);
    c->optimizer = d->theme == DRAW_OF_CHECKPOINTS
                       ? (uint32_t)FSDP_OPTIMIZER_ADAMW
                       : below(d, FSDP_OPTIMIZER_ADAMW + 1);
    c->lr = case_default_lr(c);
    c->divide_factor =
        chance_one_in(&d->chance, 3) ? one_of(d, divide, N_OF(divide)) : 0.0f;
    c->microbatches = 1 + below(d, CASE_MAX_MICROBATCHES);
    for (uint32_t b = 0; b < c->microbatches; b++) {
        c->sync[b] = 1;
    }
    c->steps = 4;
    c->recorded_steps = 2;
    draw_sequence(d, c);
    draw_mixed(d, c);
    draw_ahead(d, c);
    if (draw_has_places(d)) {
        draw_places(d, c);
    }
    d->s->has_case = true;
    d->s->groups = chance_one_in(&d->chance, 2) ? 1 : 2 + below(d, 4);
    draw_numbers(d);
}

/* Changes what the script's results do not depend on: under fold tree also the
 * number of ranks. */
static void change(struct drawer *d, struct run_case *c)
{
    static const uint32_t ranks[] = {1, 2, 4, 8, 16};

    if (c->fold == FSDP_FOLD_TREE) {
        c->ranks = ranks[below(d, N_OF(ranks))];
        c->grains = case_grains(c->fold, c->ranks);
    }
    draw_strategy(d, c);
    if (c->wrap != CASE_WRAP_DRAWN && chance_one_in(&d->chance, 2)) {
        c->wrap = draw_wrap(d, c);
    }
}

/* Whether the case has as many units as the engine runs ahead, which stays as
 * it was. */
static bool has_units(const struct drawer *d, const struct run_case *c)
{
    const struct run_case *first = &d->s->c;
    uint32_t units = draw_units(c);

    return first->prefetch_forward <= units &&
           first->prefetch_backward <= units &&
           first->reduces_in_flight <= units;
}

bool draw_world(struct drawer *d, const struct run_case *c,
                struct script_world *out)
{
    for (uint32_t i = 0; i < 16; i++) {
        struct run_case next = *c;

        change(d, &next);
        *out = (struct script_world){next.ranks, next.replicas, next.strategy,
                                     next.wrap != c->wrap ? next.wrap
                                                          : CASE_N_WRAPS};
        if (script_same_bits(c, &next) && !case_check(&next) &&
            has_units(d, &next)) {
            return true;
        }
    }
    return false;
}
