/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_draw_case.c - the header of a drawn script: model, world, options,
 * and the numbers that hold for all of it.
 */
#include "script/script_draw_parts.h"

#include "cases/case_graph.h"

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

static void draw_model(struct drawer *d, struct run_case *c)
{
    static const struct {
        const char *workload, *size;
    } row[] = {{"mlp", "seed"},     {"mlp", "odd"},  {"mlp", "empty"},
               {"linear", "small"}, {"gpt", "tiny"}, {"gpt", "odd"}};
    static const uint32_t weights[] = {5, 3, 1, 3, 1, 1};
    uint32_t i;

    c->data = WORKLOAD_NATURAL;
    c->seed = 1 + below(d, 1u << 20);
    if (chance_one_in(&d->chance, 2)) {
        memcpy(c->workload, CASE_GRAPH, sizeof(CASE_GRAPH));
        memcpy(c->size, "random", sizeof("random"));
        c->wrap = CASE_WRAP_DRAWN;
        return;
    }
    i = chance_weighted(&d->chance, weights, N_OF(weights));
    strncpy(c->workload, row[i].workload, sizeof(c->workload) - 1);
    strncpy(c->size, row[i].size, sizeof(c->size) - 1);
    c->wrap = below(d, CASE_WRAP_DRAWN);
}

/* A strategy, and replicas that divide the ranks: two or three. */
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

/* Fewer, where not all wraps of all models are looked into. */
uint32_t draw_units(const struct run_case *c)
{
    struct graph g;

    if (case_graph_of(c, &g)) {
        return g.n_units;
    }
    return c->wrap == CASE_WRAP_LAYER || c->wrap == CASE_WRAP_BLOCK ? 2 : 1;
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

static float one_of(struct drawer *d, const float *numbers, uint32_t n)
{
    return numbers[below(d, n)];
}

static void draw_numbers(struct drawer *d)
{
    static const float beta1[] = {0.9f, 0.8f, 0.5f, 0.0f};
    static const float beta2[] = {0.999f, 0.95f, 0.75f};
    static const float eps[] = {1e-8f, 1e-5f, 0.125f};
    static const float momentum[] = {0.9f, 0.5f, 0.99f};
    struct script_numbers *n = &d->s->numbers;
    const uint32_t optimizer = d->s->c.optimizer;

    if (optimizer == FSDP_OPTIMIZER_MOMENTUM) {
        n->said |= SCRIPT_SAYS_MOMENTUM;
        n->momentum = one_of(d, momentum, N_OF(momentum));
    } else if (optimizer == FSDP_OPTIMIZER_ADAMW) {
        n->said |= SCRIPT_SAYS_BETAS | SCRIPT_SAYS_EPS;
        n->beta1 = one_of(d, beta1, N_OF(beta1));
        n->beta2 = one_of(d, beta2, N_OF(beta2));
        n->eps = one_of(d, eps, N_OF(eps));
    }
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
    draw_ahead(d, c);
    d->s->has_case = true;
    d->s->groups = chance_one_in(&d->chance, 2) ? 1 : 2 + below(d, 4);
    draw_numbers(d);
}

/* Under fold tree another number of ranks; else what moves no bit. */
static void change(struct drawer *d, struct run_case *c)
{
    static const uint32_t ranks[] = {1, 2, 4, 8, 16};

    if (c->fold == FSDP_FOLD_TREE) {
        c->ranks = ranks[below(d, N_OF(ranks))];
        c->grains = case_grains(c->fold, c->ranks);
    }
    draw_strategy(d, c);
    if (c->wrap != CASE_WRAP_DRAWN && chance_one_in(&d->chance, 2)) {
        c->wrap = below(d, CASE_WRAP_DRAWN);
    }
}

/* An engine reaches as far ahead as before: there must be units for it. */
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
        if (script_same_bits(c, &next) && case_check(&next) == NULL &&
            has_units(d, &next)) {
            return true;
        }
    }
    return false;
}
