/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adapter_graph.c - writes a graph as it is kept: the calls of each sequence,
 * which of them have no backward, and which microbatches leave which parameter
 * without a gradient. The kinds of modules are their classes.
 */
#include "run/adapter_graph.h"

#include "cases/case_graph.h"
#include "record/record_internal.h"

static void add_calls(struct record_text *t, const struct graph *g)
{
    record_text_add(t, "  \"calls\": [");
    for (uint32_t i = 0; i < g->n_calls; i++) {
        const struct graph_call *call = &g->call[i];

        record_text_add(t,
                        "%s\n   {\"module\": %u, \"around\": %d, \"train\": "
                        "%s, \"eval\": %s}",
                        i == 0 ? "" : ",", call->module, call->around,
                        (call->in & GRAPH_TRAIN) != 0 ? "true" : "false",
                        (call->in & GRAPH_EVAL) != 0 ? "true" : "false");
    }
    record_text_add(t, "],\n");
}

static void add_modules(struct record_text *t, const struct graph *g)
{
    const char *comma = "";

    record_text_add(t, "  \"without_backward\": [");
    for (uint32_t m = 0; m < g->n_modules; m++) {
        if (g->module[m].detached) {
            record_text_add(t, "%s%u", comma, m);
            comma = ", ";
        }
    }
    record_text_add(t, "],\n");
}

static void add_idle(struct record_text *t, const uint8_t *idle, uint32_t n)
{
    record_text_add(t, "  \"idle\": [");
    for (uint32_t p = 0; p < n; p++) {
        record_text_add(t, "%s%u", p == 0 ? "" : ", ",
                        idle[p] & ~(uint32_t)WORKLOAD_UNSEEN);
    }
    record_text_add(t, "],\n  \"unseen\": [");
    for (uint32_t p = 0, found = 0; p < n; p++) {
        if ((idle[p] & WORKLOAD_UNSEEN) != 0) {
            record_text_add(t, "%s%u", found++ == 0 ? "" : ", ", p);
        }
    }
    record_text_add(t, "],\n");
}

void adapter_graph_add(struct record_text *t, const struct run_case *c,
                       const struct workload_model *model)
{
    struct graph g;

    if (!case_graph_of(c, &g)) {
        return;
    }
    record_text_add(t, ",\n \"graph\": {\n");
    add_calls(t, &g);
    add_modules(t, &g);
    add_idle(t, model->idle, model->model.n_parameters);
    record_text_add(t, "  \"reshards\": [");
    for (uint32_t u = 0; u < g.n_units; u++) {
        record_text_add(t, "%s%u", u == 0 ? "" : ", ",
                        g.own_reshard ? g.reshard[u] : 0u);
    }
    record_text_add(t, "]}");
}
