/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_plain.c - plain choices in place of those that a script's header
 * draws, so that what is printed of a failure says what it needs and no more.
 */
#include "script/script_plain.h"
#include "cases/case_graph.h"
#include "models/workload.h"
#include "script/script_draw_parts.h"

#include <string.h>

#define N_OF(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

static bool set(uint32_t *x, uint32_t to)
{
    bool changes = *x != to;

    *x = to;
    return changes;
}

static void at_most(uint32_t *x, uint32_t most)
{
    *x = *x < most ? *x : most;
}

/* If the workload does not offer this choice, takes the first that it offers,
 * or the plain one. */
static void offered(uint32_t offers, uint32_t *choice)
{
    if (*choice != 0 && (offers >> *choice & 1) == 0) {
        *choice = offers != 0 ? (uint32_t)__builtin_ctz(offers) : 0;
    }
}

/* An engine may run ahead by no more than there are units. */
static void fit(struct run_case *c)
{
    const struct workload *w = workload_find(c->workload);
    uint32_t units = draw_units(c);

    offered(w ? w->recomputes : 0, &c->recompute);
    offered(w ? w->freezes : 0, &c->frozen);
    at_most(&c->prefetch_forward, units);
    at_most(&c->prefetch_backward, units);
    at_most(&c->reduces_in_flight, units);
    c->lr = case_default_lr(c);
}

/* Gives all groups the numbers of the first one. */
static bool same_numbers(struct script *s)
{
    struct script_numbers *n = &s->numbers;
    const bool changes = script_has_own_numbers(s);

    at_most(&n->beta1.n, 1);
    at_most(&n->beta2.n, 1);
    at_most(&n->eps.n, 1);
    at_most(&n->momentum.n, 1);
    return changes;
}

static bool names_unit(const struct script_action *a)
{
    return a->verb == SCRIPT_SET || a->verb == SCRIPT_UNSHARD_UNIT ||
           a->verb == SCRIPT_RESHARD_UNIT || a->verb == SCRIPT_SUMMON_SOME;
}

static bool names_parameter(const struct script_action *a)
{
    return a->verb == SCRIPT_FREEZE || a->verb == SCRIPT_THAW ||
           a->verb == SCRIPT_ASSIGN || a->verb == SCRIPT_SEND;
}

/* If the model no longer has a unit or parameter that an action names, makes
 * the action name another one. */
static void fit_units(struct script *s)
{
    const uint32_t units = draw_units(&s->c);
    const uint32_t parameters = draw_parameters(&s->c);

    for (uint32_t i = 0; i < s->n_actions; i++) {
        struct script_action *a = &s->action[i];

        if (names_unit(a) && a->unit != FSDP_NO_UNIT && a->unit >= units) {
            a->unit %= units;
        }
        if (names_parameter(a) && a->parameter != SCRIPT_ALL &&
            a->parameter >= parameters) {
            a->parameter %= parameters;
        }
        if (a->renamed > parameters) { /* from 1 */
            a->renamed = 1 + (a->renamed - 1) % parameters;
        }
    }
    for (uint32_t i = 0; i < s->n_inside; i++) {
        if (s->inside[i].by_hand != 0 && s->inside[i].unit >= units) {
            s->inside[i].unit %= units;
        }
    }
}

static bool one_group(struct script *s)
{
    for (uint32_t i = 0; i < s->n_actions; i++) {
        at_most(&s->action[i].n_lr, 1);
        at_most(&s->action[i].n_decay, 1);
    }
    (void)same_numbers(s);
    return set(&s->groups, 1);
}

static bool not_ahead(struct script *s)
{
    bool forward = set(&s->c.prefetch_forward, 0);
    bool backward = set(&s->c.prefetch_backward, 0);

    return set(&s->c.reduces_in_flight, 0) || forward || backward;
}

static bool plain_optimizer(struct script *s)
{
    s->numbers = (struct script_numbers){.beta1 = {.n = 0}};
    return set(&s->c.optimizer, FSDP_OPTIMIZER_SGD);
}

static bool plain_numbers(struct script *s)
{
    const struct script_numbers *n = &s->numbers;
    const bool changes = n->beta1.n + n->beta2.n + n->eps.n + n->momentum.n > 0;

    s->numbers = (struct script_numbers){.beta1 = {.n = 0}};
    return changes;
}

static bool plain_model(struct script *s)
{
    struct run_case *c = &s->c;

    if (strcmp(c->workload, "mlp") == 0 && strcmp(c->size, "seed") == 0) {
        return false;
    }
    memset(c->workload, 0, sizeof(c->workload));
    memset(c->size, 0, sizeof(c->size));
    memcpy(c->workload, "mlp", sizeof("mlp"));
    memcpy(c->size, "seed", sizeof("seed"));
    if (c->wrap == CASE_WRAP_DRAWN) {
        c->wrap = CASE_WRAP_LAYER;
    }
    return true;
}

/* Makes the ranks fewer. If the replicas no longer fit, there is one, and a
 * hybrid strategy becomes the one that it has within a replica. */
static bool fewer_ranks(struct script *s, uint32_t ranks)
{
    struct run_case c = s->c;

    if (c.ranks <= ranks) {
        return false;
    }
    c.ranks = ranks;
    if (c.strategy == CASE_NO_SHARD) {
        c.replicas = ranks;
    } else if (c.replicas == 0 || c.replicas >= ranks ||
               ranks % c.replicas != 0) {
        c.replicas = 1;
        c.strategy = c.strategy == CASE_HYBRID_SHARD ? CASE_FULL_SHARD
                     : c.strategy == CASE_HYBRID_SHARD_ZERO2
                         ? CASE_SHARD_GRAD_OP
                         : c.strategy;
    }
    c.grains = case_grains(c.fold, ranks);
    s->c = c;
    return true;
}

static bool one_rank(struct script *s)
{
    return fewer_ranks(s, 1);
}

static bool two_ranks(struct script *s)
{
    return fewer_ranks(s, 2);
}

static bool four_ranks(struct script *s)
{
    return fewer_ranks(s, 4);
}

static bool plain_strategy(struct script *s)
{
    s->c.replicas = 1;
    return set(&s->c.strategy, CASE_FULL_SHARD);
}

static bool plain_fold(struct script *s)
{
    s->c.grains = 0;
    return set(&s->c.fold, FSDP_FOLD_RANK);
}

static bool plain_layout(struct script *s)
{
    return set(&s->c.layout, FSDP_LAYOUT_FLAT);
}

static bool plain_wrap(struct script *s)
{
    const bool tied = case_is_tied(&s->c); /* within one unit */

    return s->c.wrap != CASE_WRAP_DRAWN &&
           set(&s->c.wrap, tied ? CASE_WRAP_BLOCK : CASE_WRAP_LAYER);
}

static bool plain_root(struct script *s)
{
    return set(&s->c.keep_root, 0);
}

static bool plain_divisor(struct script *s)
{
    bool changes = s->c.divide_factor != 0.0f;

    s->c.divide_factor = 0.0f;
    return changes;
}

static bool sync_unit(struct script_action *a)
{
    const bool changes = a->verb == SCRIPT_SET &&
                         a->knob == FSDP_KNOB_GRADIENT_SYNC && a->value == 0.0f;

    a->value = changes ? 1.0f : a->value;
    return changes;
}

static bool reduce_all(struct script *s)
{
    bool changes = false;

    for (uint32_t i = 0; i < s->n_actions; i++) {
        if (s->action[i].sync == SCRIPT_SYNC_OFF) {
            changes |= set(&s->action[i].sync, SCRIPT_SYNC_ON);
        }
        changes |= sync_unit(&s->action[i]);
    }
    for (uint32_t i = 0; i < s->n_inside; i++) {
        if (s->inside[i].sync == SCRIPT_SYNC_OFF) {
            changes |= set(&s->inside[i].sync, SCRIPT_SYNC_ON);
        }
    }
    return changes;
}

static bool one_microbatch(struct script *s)
{
    bool changes = set(&s->c.microbatches, 1);

    memset(s->c.sync, 0, sizeof(s->c.sync));
    s->c.sync[0] = 1;
    for (uint32_t i = 0; i < s->n_actions; i++) {
        s->action[i].batch.microbatch = 0;
    }
    return changes;
}

static bool plain_seed(struct script *s)
{
    bool changes = s->c.seed != 1 && !case_is_graph(&s->c);

    s->c.seed = changes ? 1 : s->c.seed;
    return changes;
}

static bool plain_precision(struct script *s)
{
    return set(&s->c.precision, CASE_F32);
}

static bool no_scale(struct script *s)
{
    bool changes = s->scale.said;

    s->scale = (struct script_scale){.said = false};
    return changes;
}

static bool no_recompute(struct script *s)
{
    return set(&s->c.recompute, WORKLOAD_KEEPS);
}

static bool nothing_frozen(struct script *s)
{
    return set(&s->c.frozen, WORKLOAD_TRAINS_ALL);
}

static bool usual_factors(struct script *s)
{
    return set(&s->c.factors, CASE_USUAL_FACTORS);
}

/* Removes from a graph what this bit of its size adds. */
static bool less_of_graph(struct script *s, uint32_t bit)
{
    uint64_t bits;

    if (!case_is_graph(&s->c) || !graph_size_bits(s->c.size, &bits) ||
        (bits >> bit & 1) == 0) {
        return false;
    }
    graph_size_text(bits & ~((uint64_t)1 << bit), s->c.size);
    return true;
}

static bool units_of_modules(struct script *s)
{
    return less_of_graph(s, GRAPH_UNITS);
}

static bool nothing_tied(struct script *s)
{
    if (!case_is_tied(&s->c)) {
        return false;
    }
    if (!less_of_graph(s, GRAPH_TIES)) {
        memset(s->c.size, 0, sizeof(s->c.size));
        memcpy(s->c.size, "odd", sizeof("odd"));
    }
    return true;
}

static bool with_values(struct script *s)
{
    const bool changes = s->deferred || s->rank0;

    s->deferred = s->rank0 = false;
    return changes;
}

static bool not_offloaded(struct script *s)
{
    return set(&s->c.offload, CASE_NOT_OFFLOADED);
}

uint32_t script_make_plain(struct script *s, uint32_t plain)
{
    /* In the order of enum script_plain. */
    static bool (*const make[SCRIPT_N_PLAIN])(struct script *) = {
        one_group,      not_ahead,       plain_optimizer, plain_numbers,
        plain_model,    one_rank,        two_ranks,       four_ranks,
        plain_strategy, plain_fold,      plain_layout,    plain_wrap,
        plain_root,     plain_divisor,   reduce_all,      one_microbatch,
        plain_seed,     plain_precision, no_scale,        no_recompute,
        nothing_frozen, usual_factors,   same_numbers,    nothing_tied,
        with_values,    not_offloaded,   units_of_modules};
    uint32_t changed = 0;

    for (uint32_t i = 0; i < N_OF(make); i++) {
        if ((plain >> i & 1) != 0 && make[i](s)) {
            changed |= 1u << i;
        }
    }
    fit(&s->c);
    fit_units(s);
    return changed;
}
