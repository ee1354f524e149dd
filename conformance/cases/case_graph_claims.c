/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_graph_claims.c - looks for windows of a graph's units that a module
 * which is called once in a pass cannot have, and names the claim that such a
 * window needs.
 */
#include "cases/case_graph_claims.h"

#include "cases/case_graph.h"

/* Where the windows of a phase open and close, in order: u where that of unit
 * u opens, and ~u where it closes. */
struct events {
    uint32_t n;
    uint32_t at[2 * GRAPH_MODULES];
};

/* The events of one phase, which is the points [first, end). */
static struct events events_of(const struct graph *g, const uint32_t *module,
                               uint32_t first, uint32_t end)
{
    struct events e = {0};
    uint32_t opens[GRAPH_MODULES];
    uint32_t closes[GRAPH_MODULES];

    for (uint32_t u = 0; u < g->n_units; u++) {
        opens[u] = closes[u] = end;
    }
    for (uint32_t i = first; i < end; i++) {
        const uint32_t u = g->unit_of_module[module[i]];

        if (u != FSDP_NO_UNIT) {
            opens[u] = opens[u] == end ? i : opens[u];
            closes[u] = i;
        }
    }
    for (uint32_t i = first; i < end; i++) {
        const uint32_t u = g->unit_of_module[module[i]];

        if (u != FSDP_NO_UNIT && opens[u] == i) {
            e.at[e.n++] = u;
        } else if (u != FSDP_NO_UNIT && closes[u] == i) {
            e.at[e.n++] = ~u;
        }
    }
    return e;
}

/* Whether one window opens within another and closes behind it. */
static bool crosses(const struct events *e)
{
    uint32_t open[GRAPH_MODULES] = {0};
    uint32_t n = 0;

    for (uint32_t i = 0; i < e->n; i++) {
        if (e->at[i] < GRAPH_MODULES) {
            open[n++] = e->at[i];
        } else if (open[--n] != ~e->at[i]) {
            return true;
        }
    }
    return false;
}

static bool is_mirrored(const struct events *forward,
                        const struct events *backward)
{
    if (forward->n != backward->n) {
        return false;
    }
    for (uint32_t i = 0; i < forward->n; i++) {
        if (forward->at[i] != ~backward->at[forward->n - 1 - i]) {
            return false;
        }
    }
    return true;
}

static struct events forward_of(const struct graph *g, uint32_t sequence,
                                struct events *backward)
{
    uint32_t point[GRAPH_POINTS];
    uint32_t module[GRAPH_POINTS];
    const uint32_t n =
        graph_sequence(g, sequence, WORKLOAD_KEEPS, point, module);
    uint32_t end = 0;

    while (end < n && (point[end] == FSDP_PRE_FORWARD ||
                       point[end] == FSDP_POST_FORWARD)) {
        end++;
    }
    *backward = events_of(g, module, end, n);
    return events_of(g, module, 0, end);
}

static bool has_scalar(const struct graph *g)
{
    for (uint32_t m = 0; m < g->n_modules; m++) {
        for (uint32_t i = 0; i < g->module[m].n_parameters; i++) {
            if (g->module[m].parameter[i].n_dims == 0) {
                return true;
            }
        }
    }
    return false;
}

/* How many gradients a pass gives under this module's name of a parameter. */
static uint32_t uses_of(const struct graph *g, uint32_t module)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < g->n_calls; i++) {
        n += g->call[i].module == module && !g->module[module].detached &&
             (g->call[i].in & GRAPH_TRAIN) != 0;
    }
    return n;
}

/* Whether a tied parameter has more than two gradients in a pass: then their
 * sum depends on the order in which modules give them. */
static bool has_many_uses(const struct graph *g)
{
    uint32_t uses[GRAPH_PARAMETERS] = {0};
    bool tied[GRAPH_PARAMETERS] = {false};
    bool found = false;

    for (uint32_t m = 0; m < g->n_modules; m++) {
        const struct graph_module *x = &g->module[m];

        for (uint32_t i = 0; i < x->n_parameters; i++) {
            const int32_t of = x->parameter[i].tied;
            const uint32_t p = of >= 0 ? (uint32_t)of : x->first + i;

            uses[p] += uses_of(g, m);
            tied[p] = tied[p] || of >= 0;
            found = found || (tied[p] && uses[p] > 2);
        }
    }
    return found;
}

uint32_t case_graph_claims(const struct run_case *c,
                           const char *list[CASE_GRAPH_CLAIMS])
{
    struct events backward;
    struct events forward;
    struct events eval;
    struct graph g;
    uint32_t features;
    uint32_t n = 0;

    if (!case_graph_of(c, &g)) {
        return 0;
    }
    features = graph_features(&g);
    eval = forward_of(&g, FSDP_SEQUENCE_EVAL, &backward);
    forward = forward_of(&g, FSDP_SEQUENCE_TRAIN, &backward);
    if ((features & (GRAPH_OWN_UNIT | GRAPH_IGNORED)) != 0) {
        list[n++] = "graph-own-units"; /* more general than these */
    } else if (crosses(&forward) || crosses(&eval)) {
        list[n++] = "graph-crossing";
    } else if (!is_mirrored(&forward, &backward)) {
        list[n++] = "graph-one-way";
    }
    if (case_recomputes_alone(c)) {
        list[n++] = "graph-pairs";
    }
    if (has_many_uses(&g)) {
        list[n++] = "graph-many-uses";
    }
    if (has_scalar(&g)) {
        list[n++] = "graph-scalar";
    }
    if ((features & GRAPH_EMPTY) != 0) {
        list[n++] = "graph-empty";
    }
    if ((features & GRAPH_BARE_UNIT) != 0) {
        list[n++] = "graph-bare-unit";
    }
    if ((features & GRAPH_OWN_RESHARD) != 0) {
        list[n++] = "graph-own-reshard";
    }
    return n;
}

bool case_graph_has_root_unit(const struct run_case *c)
{
    struct graph g;

    return case_graph_of(c, &g) && g.unit_of_module[0] != FSDP_NO_UNIT;
}
