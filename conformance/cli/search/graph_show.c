/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_show.c - shows a random case to people: its modules as a tree, with
 * units and parameters; the order in which they are called; the options.
 */
#include "cases/case_graph.h"
#include "cli/search/shrink.h"
#include "models/graph.h"

#include <stdio.h>
#include <string.h>

static void show_idle(const struct run_case *c, uint32_t idle)
{
    const uint32_t all = (1u << c->microbatches) - 1;

    if ((idle & WORKLOAD_UNSEEN) != 0) {
        printf(" unseen");
    }
    if ((idle & all) == all) {
        printf(" no-gradient");
    } else if ((idle & all) != 0) {
        printf(" no-gradient-in");
        for (uint32_t b = 0; b < c->microbatches; b++) {
            if ((idle >> b & 1) != 0) {
                printf(":%u", b);
            }
        }
    }
}

static void show_module(const struct run_case *c, const struct graph *g,
                        const struct fsdp_model *model, uint32_t m)
{
    const struct graph_module *x = &g->module[m];
    int depth = 0;

    for (int32_t at = x->parent; at >= 0; at = g->module[at].parent) {
        depth++;
    }
    printf("  %*s%s", 2 * depth, "", model->module_name[m]);
    if (g->unit_of_module[m] == FSDP_NO_UNIT) {
        printf(" (no unit)");
    } else {
        printf(" (unit %u)", g->unit_of_module[m]);
    }
    printf("%s", x->detached ? " without backward" : "");
    for (uint32_t i = 0; i < x->n_parameters; i++) {
        const struct graph_parameter *p = &x->parameter[i];

        printf(", %s[", p->name);
        for (uint32_t d = 0; d < p->n_dims; d++) {
            printf("%s%llu", d > 0 ? "," : "", (unsigned long long)p->shape[d]);
        }
        printf("]");
        if (p->unit == FSDP_NO_UNIT) {
            printf(" ignored");
        } else if (p->unit != g->unit_of_module[m]) {
            printf(" (unit %u)", p->unit);
        }
        show_idle(c, p->idle);
    }
    printf("\n");
}

static void show_sequence(const struct fsdp_model *model,
                          const struct fsdp_sequence *s)
{
    static const char *const mark[] = {"?", ">", "<", ">>", "<<", "r>", "r<"};

    printf("  %-5s", s->name);
    for (uint32_t i = 0; i < s->n; i++) {
        printf(" %s%s", s->point[i] < 7 ? mark[s->point[i]] : "?",
               model->module_name[s->module[i]]);
    }
    printf("\n");
}

static void show_options(const struct run_case *c, const struct graph *g)
{
    char sync[CASE_MAX_MICROBATCHES + 1];

    case_sync_text(c, sync);
    printf("  %s, %u ranks (%u x %u), fold %s, %s, microbatches %s, %u steps, "
           "%s\n",
           case_strategy_name(c->strategy), c->ranks, c->replicas,
           case_shard_degree(c), case_fold_name(c->fold),
           case_optimizer_name(c->optimizer), sync, c->steps,
           case_scenario_name(c->scenario));
    printf("  prefetch %u forward, %u backward, %u reductions in flight%s\n",
           c->prefetch_forward, c->prefetch_backward, c->reduces_in_flight,
           c->keep_root ? ", keeps the root" : "");
    for (uint32_t u = 0; g->own_reshard && u < g->n_units; u++) {
        if (g->reshard[u] != 0) {
            printf("  unit %u %s after forward\n", u,
                   g->reshard[u] == 1 ? "is resharded" : "stays unsharded");
        }
    }
}

void graph_show(const struct run_case *c)
{
    struct workload_config config = {.size = c->size,
                                     .data = c->data,
                                     .seed = c->seed,
                                     .world = c->ranks,
                                     .microbatches = c->microbatches,
                                     .grains = c->grains};
    struct workload_model *model = NULL;
    struct fsdp_error error = {0};
    const struct graph_model *x;

    if (!case_is_graph(c) ||
        graph_describe(&config, &model, &error) != FSDP_OK) {
        return;
    }
    x = model->self;
    printf("  %u modules in %u units; > forward begins, < ends, >> << "
           "backward\n",
           x->graph.n_modules, x->graph.n_units);
    for (uint32_t m = 0; m < x->graph.n_modules; m++) {
        show_module(c, &x->graph, &model->model, m);
    }
    show_sequence(&model->model, model->model.sequence[FSDP_SEQUENCE_TRAIN]);
    if (c->scenario == CASE_EVAL) {
        show_sequence(&model->model, model->model.sequence[FSDP_SEQUENCE_EVAL]);
    }
    show_options(c, &x->graph);
    graph_release(model);
}
