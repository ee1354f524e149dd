/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_keep.c - the part of a graph that a size keeps: which modules, calls
 * and units, and which features are left in it.
 */
#include "graph_internal.h"

#include <stdio.h>
#include <string.h>

const char *const graph_feature_name[GRAPH_N_FEATURES] = {
    "reused module",        "unused module",     "call without backward",
    "no gradient",          "gradient at times", "unseen parameter",
    "empty parameter",      "nested windows",    "unit of several modules",
    "module without unit",  "empty unit",        "other evaluation",
    "reshard of own units", "unit not trained",  "tied parameters",
    "unit of parameters",   "ignored parameter"};

#define ALL_BITS (((uint64_t)1 << GRAPH_BITS) - 1)

/* Names of sizes, indexed by the number that the bits of ties and of units
 * make. */
static const char *const whole[] = {"random", "ties", "units", "both"};
static const char part[] = "xtub";

bool graph_size_bits(const char *size, uint64_t *bits)
{
    uint64_t more = 0;

    for (uint64_t i = 0; i < 4; i++) {
        *bits = ALL_BITS | i << GRAPH_TIES;
        if (strcmp(size, whole[i]) == 0) {
            return true;
        }
        more = size[0] == part[i] ? i << GRAPH_TIES : more;
    }
    if (!strchr(part, size[0]) || strlen(size) != 15) {
        return false;
    }
    *bits = 0;
    for (uint32_t i = 1; i < 15; i++) {
        const char *const digits = "0123456789abcdef";
        const char *const digit = strchr(digits, size[i]);

        if (!digit) {
            return false;
        }
        *bits = *bits * 16 + (uint64_t)(digit - digits);
    }
    *bits |= more;
    return *bits != (ALL_BITS | more); /* a whole graph has a name of its own */
}

void graph_size_text(uint64_t bits, char size[16])
{
    const uint64_t more = bits >> GRAPH_TIES & 3;

    if ((bits & ALL_BITS) == ALL_BITS) {
        snprintf(size, 16, "%s", whole[more]);
    } else {
        snprintf(size, 16, "%c%014llx", part[more],
                 (unsigned long long)(bits & ALL_BITS));
    }
}

static bool kept(uint64_t bits, uint32_t bit)
{
    return (bits >> bit & 1) != 0;
}

static uint32_t module_bit(uint32_t m)
{
    return m - 1;
}

static uint32_t call_bit(uint32_t i)
{
    return 15 + i;
}

static uint32_t group_bit(uint32_t group)
{
    return 47 + group % GRAPH_GROUPS;
}

static void drop_modules(struct graph *g, uint64_t bits)
{
    int32_t now[GRAPH_MODULES] = {0}; /* gcc 14 cannot see that it is set */
    uint32_t n = 0;

    for (uint32_t m = 0; m < g->n_modules; m++) {
        struct graph_module *from = &g->module[m];
        /* A parent that was dropped stands for its own parent. */
        const int32_t parent = from->parent < 0 ? -1 : now[from->parent];

        if (m != 0 && m + 1 != g->n_modules && !kept(bits, module_bit(m))) {
            now[m] = parent;
            continue;
        }
        now[m] = (int32_t)n;
        from->parent = parent;
        g->module[n++] = *from;
    }
    for (uint32_t i = 0; i < g->n_calls; i++) {
        const uint32_t m = g->call[i].module;
        const bool there = g->module[now[m]].drawn == m;

        g->call[i].in = there ? g->call[i].in : 0;
        g->call[i].module = (uint32_t)now[m];
    }
    g->n_modules = n;
}

static void drop_calls(struct graph *g, uint64_t bits)
{
    int32_t now[GRAPH_CALLS];
    uint32_t n = 0;

    for (uint32_t i = 0; i < g->n_calls; i++) {
        struct graph_call call = g->call[i];

        call.around = call.around < 0 ? -1 : now[call.around];
        if (call.in == 0 ||
            (i != 0 && i + 1 != g->n_calls && !kept(bits, call_bit(i)))) {
            now[i] = call.around;
            continue;
        }
        now[i] = (int32_t)n;
        g->call[n++] = call;
    }
    g->n_calls = n;
}

/* Numbers the units from 0 by their first module. */
static void make_units(struct graph *g, uint64_t bits)
{
    uint32_t unit_of_group[GRAPH_MODULES];
    uint32_t reshard[GRAPH_MOST_UNITS] = {0};

    for (uint32_t m = 0; m < GRAPH_MODULES; m++) {
        unit_of_group[m] = FSDP_NO_UNIT;
    }
    g->n_units = 0;
    for (uint32_t m = 0; m < g->n_modules; m++) {
        struct graph_module *x = &g->module[m];
        uint32_t group = x->group;

        if (group != 0 && !kept(bits, group_bit(group))) {
            group = g->module[0].group;
        }
        if (x->n_parameters == 0 && !x->in_unit) {
            g->unit_of_module[m] = FSDP_NO_UNIT;
            continue;
        }
        if (unit_of_group[group] == FSDP_NO_UNIT) {
            reshard[g->n_units] = g->reshard[group];
            unit_of_group[group] = g->n_units++;
        }
        g->unit_of_module[m] = unit_of_group[group];
    }
    memcpy(g->reshard, reshard, sizeof(reshard));
    g->own_reshard = g->own_reshard && kept(bits, GRAPH_BITS - 1);
}

static void number_parameters(struct graph *g)
{
    uint32_t n = 0;

    for (uint32_t m = 0; m < g->n_modules; m++) {
        g->module[m].first = n;
        n += g->module[m].n_parameters;
    }
}

void graph_draw(uint64_t seed, uint64_t bits, struct graph *out)
{
    graph_draw_all(seed, out);
    drop_modules(out, bits);
    drop_calls(out, bits);
    make_units(out, bits);
    number_parameters(out);
    graph_tie(out, seed, kept(bits, GRAPH_TIES));
    graph_give_units(out, seed, kept(bits, GRAPH_UNITS));
}

uint64_t graph_used_bits(uint64_t seed)
{
    struct graph g;
    uint64_t bits = 0;

    graph_draw_all(seed, &g);
    for (uint32_t m = 1; m + 1 < g.n_modules; m++) {
        bits |= (uint64_t)1 << module_bit(m);
    }
    for (uint32_t i = 1; i + 1 < g.n_calls; i++) {
        bits |= (uint64_t)1 << call_bit(i);
    }
    for (uint32_t m = 0; m < g.n_modules; m++) {
        if (g.module[m].group != g.module[0].group) {
            bits |= (uint64_t)1 << group_bit(g.module[m].group);
        }
    }
    return g.own_reshard ? bits | (uint64_t)1 << (GRAPH_BITS - 1) : bits;
}

/* ---- Features ---------------------------------------------------------- */

static uint32_t uses(const struct graph *g, uint32_t m, uint32_t in)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < g->n_calls; i++) {
        n += g->call[i].module == m && (g->call[i].in & in) != 0;
    }
    return n;
}

static uint64_t elements(const struct graph_parameter *p)
{
    uint64_t n = 1;

    for (uint32_t d = 0; d < p->n_dims; d++) {
        n *= p->shape[d];
    }
    return n;
}

static uint32_t features_of_module(const struct graph *g, uint32_t m)
{
    const struct graph_module *x = &g->module[m];
    const uint32_t n = uses(g, m, GRAPH_TRAIN);
    uint32_t f = n > 1 ? GRAPH_REUSED : 0;

    f |= n == 0 && x->n_parameters > 0 ? GRAPH_UNUSED : 0;
    f |= n > 0 && x->detached && x->n_parameters > 0 ? GRAPH_NO_BACKWARD : 0;
    f |= g->unit_of_module[m] == FSDP_NO_UNIT ? GRAPH_WITHOUT_UNIT : 0;
    for (uint32_t i = 0; i < x->n_parameters; i++) {
        const uint32_t idle = x->parameter[i].idle;
        const bool back = n > 0 && !x->detached;

        f |= elements(&x->parameter[i]) == 0 ? GRAPH_EMPTY : 0;
        f |= x->parameter[i].tied >= 0 ? GRAPH_TIED : 0;
        f |= x->parameter[i].unit == FSDP_NO_UNIT           ? GRAPH_IGNORED
             : x->parameter[i].unit != g->unit_of_module[m] ? GRAPH_OWN_UNIT
                                                            : 0;
        f |= (idle & WORKLOAD_UNSEEN) != 0 ? GRAPH_UNSEEN : 0;
        f |= back && (idle & GRAPH_NEVER) == GRAPH_NEVER ? GRAPH_IDLE : 0;
        f |= back && (idle & GRAPH_NEVER) != 0 &&
                     (idle & GRAPH_NEVER) != GRAPH_NEVER
                 ? GRAPH_ROUTED
                 : 0;
    }
    return f;
}

static uint32_t features_of_unit(const struct graph *g, uint32_t u)
{
    uint32_t members = 0;
    uint32_t trained = 0;
    uint64_t n = 0;

    for (uint32_t m = 0; m < g->n_modules; m++) {
        const struct graph_module *x = &g->module[m];

        if (!graph_is_of(g, m, u)) {
            continue;
        }
        members++;
        trained += uses(g, m, GRAPH_TRAIN);
        for (uint32_t i = 0; i < x->n_parameters; i++) {
            n += x->parameter[i].unit == u ? elements(&x->parameter[i]) : 0;
        }
    }
    return (members > 1 ? GRAPH_SHARED_UNIT : 0u) |
           (n == 0 ? GRAPH_BARE_UNIT : 0u) |
           (trained == 0 ? GRAPH_IDLE_UNIT : 0u);
}

/* Whether there is a call within a call of another unit. */
static bool nests(const struct graph *g)
{
    for (uint32_t i = 0; i < g->n_calls; i++) {
        const int32_t around = g->call[i].around;
        const uint32_t inner = g->unit_of_module[g->call[i].module];

        if (around >= 0 && inner != FSDP_NO_UNIT) {
            const uint32_t outer = g->unit_of_module[g->call[around].module];

            if (outer != FSDP_NO_UNIT && outer != inner) {
                return true;
            }
        }
    }
    return false;
}

uint32_t graph_features(const struct graph *g)
{
    uint32_t f = nests(g) ? GRAPH_NESTED : 0;

    for (uint32_t m = 0; m < g->n_modules; m++) {
        f |= features_of_module(g, m);
    }
    for (uint32_t u = 0; u < g->n_units; u++) {
        f |= features_of_unit(g, u);
        f |= g->own_reshard && g->reshard[u] != 0 ? GRAPH_OWN_RESHARD : 0;
    }
    for (uint32_t i = 0; i < g->n_calls; i++) {
        f |= g->call[i].in != (GRAPH_TRAIN | GRAPH_EVAL) ? GRAPH_OTHER_EVAL : 0;
    }
    return f;
}
