/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_model.c - describes a graph: its modules by name, its sequences, its
 * units, its initial values and its data.
 */
#include "graph_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Sequences --------------------------------------------------------- */

/* Whether call i has points in this sequence and direction. */
static bool passes(const struct graph *g, uint32_t i, uint32_t in,
                   bool backward)
{
    return (g->call[i].in & in) != 0 &&
           !(backward && g->module[g->call[i].module].detached);
}

static int32_t around(const struct graph *g, uint32_t i, uint32_t in,
                      bool backward)
{
    int32_t at = g->call[i].around;

    while (at >= 0 && !passes(g, (uint32_t)at, in, backward)) {
        at = g->call[at].around;
    }
    return at;
}

/* Calls stand in the order in which they begin. */
static uint32_t forward(const struct graph *g, uint32_t in, bool backward,
                        uint32_t *point, uint32_t *module)
{
    int32_t open[GRAPH_CALLS];
    uint32_t n_open = 0;
    uint32_t n = 0;

    for (uint32_t i = 0; i < g->n_calls; i++) {
        if (!passes(g, i, in, backward)) {
            continue;
        }
        while (n_open > 0 && open[n_open - 1] != around(g, i, in, backward)) {
            point[n] = FSDP_POST_FORWARD;
            module[n++] = g->call[open[--n_open]].module;
        }
        point[n] = FSDP_PRE_FORWARD;
        module[n++] = g->call[i].module;
        open[n_open++] = (int32_t)i;
    }
    while (n_open > 0) {
        point[n] = FSDP_POST_FORWARD;
        module[n++] = g->call[open[--n_open]].module;
    }
    return n;
}

/* Whether a module changes what flows through it: it is neither a block nor the
 * head. */
static bool graph_is_leaf(const struct graph *g, uint32_t module)
{
    const uint32_t kind = g->module[module].kind;

    return kind != GRAPH_BLOCK && kind != GRAPH_HEAD;
}

/* The calls of leaves, in the order in which a forward of n points makes them.
 */
static uint32_t leaf_calls(const struct graph *g, uint32_t n,
                           const uint32_t *point, const uint32_t *module,
                           uint32_t call[GRAPH_CALLS])
{
    uint32_t calls = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (point[i] == FSDP_PRE_FORWARD && graph_is_leaf(g, module[i])) {
            call[calls++] = module[i];
        }
    }
    return calls;
}

/* Which of the first n calls is the last one of a module: its backward comes
 * next. */
static uint32_t last_call(const uint32_t *call, uint32_t n, uint32_t module)
{
    while (n > 0 && call[n - 1] != module) {
        n--;
    }
    return n;
}

/* The points of the recomputed calls of a checkpoint; returns how many there
 * are now. */
static uint32_t add_recomputed(const uint32_t *call, uint32_t calls,
                               uint32_t recompute, uint32_t checkpoint,
                               uint32_t n, uint32_t *point, uint32_t *module)
{
    for (uint32_t i = 0; i < calls; i++) {
        if (workload_checkpoint(recompute, i) == checkpoint) {
            point[n] = FSDP_PRE_RECOMPUTE;
            module[n++] = call[i];
            point[n] = FSDP_POST_RECOMPUTE;
            module[n++] = call[i];
        }
    }
    return n;
}

uint32_t graph_sequence(const struct graph *g, uint32_t which,
                        uint32_t recompute, uint32_t point[GRAPH_POINTS],
                        uint32_t module[GRAPH_POINTS])
{
    const bool train = which == FSDP_SEQUENCE_TRAIN;
    const uint32_t in = train ? GRAPH_TRAIN : GRAPH_EVAL;
    uint32_t n = forward(g, in, false, point, module);
    uint32_t call[GRAPH_CALLS] = {0};
    uint32_t calls = leaf_calls(g, n, point, module, call);
    uint32_t back[2][GRAPH_POINTS];
    uint32_t n_back = train ? forward(g, in, true, back[0], back[1]) : 0;
    uint32_t done = 0; /* checkpoints are met from the last to the first */

    while (n_back-- > 0) {
        const uint32_t m = back[1][n_back];
        const bool begins = back[0][n_back] == FSDP_POST_FORWARD;

        if (begins && graph_is_leaf(g, m)) {
            const uint32_t last = last_call(call, calls, m);
            const uint32_t at = last > 0 ? last - 1 : 0;
            const uint32_t checkpoint = workload_checkpoint(recompute, at);

            if (checkpoint != 0 && checkpoint != done) {
                done = checkpoint;
                n = add_recomputed(call, calls, recompute, checkpoint, n, point,
                                   module);
            }
            calls = at;
        }
        point[n] = begins ? FSDP_PRE_BACKWARD : FSDP_POST_BACKWARD;
        module[n++] = m;
    }
    return n;
}

/* ---- The description --------------------------------------------------- */

/* Names keep the numbers that were drawn, so that a part of a graph can be
 * found in the whole. */
static void name_of(const struct graph *g, uint32_t m, char name[120])
{
    static const char *const kind[GRAPH_N_KINDS] = {
        "block", "linear", "bias", "mlp", "norm", "gelu", "head"};
    int32_t chain[GRAPH_MODULES];
    uint32_t n = 0;
    size_t length = 0;

    name[0] = '\0';
    for (int32_t at = (int32_t)m; at > 0; at = g->module[at].parent) {
        chain[n++] = at;
    }
    while (n > 0) {
        const struct graph_module *x = &g->module[chain[--n]];

        length += (size_t)snprintf(name + length, 120 - length, "%s%s%u",
                                   length > 0 ? "." : "", kind[x->kind],
                                   (unsigned)x->drawn);
    }
    if (m == 0) {
        snprintf(name, 120, "graph");
    }
}

/* The parts of a graph are its modules; its head always trains. */
static uint32_t flags_of(const struct graph_model *x, uint32_t module,
                         const struct graph_parameter *p)
{
    const struct graph *g = &x->graph;

    return g->module[module].kind != GRAPH_HEAD &&
                   workload_is_frozen(x->base.config.frozen, module,
                                      g->n_modules, p->n_dims < 2)
               ? FSDP_FROZEN
               : 0;
}

static void build_modules(struct graph_model *x)
{
    static const char *const kind[GRAPH_N_KINDS] = {
        "Block", "Linear", "Bias", "Mlp", "Norm", "Gelu", "Head"};
    const struct graph *g = &x->graph;
    char name[120];
    char full[160];

    for (uint32_t m = 0; m < g->n_modules; m++) {
        const struct graph_module *from = &g->module[m];

        name_of(g, m, name);
        model_build_module(x->build, name, m == 0 ? "Graph" : kind[from->kind],
                           from->parent);
        for (uint32_t i = 0; i < from->n_parameters; i++) {
            const struct graph_parameter *p = &from->parameter[i];

            snprintf(full, sizeof(full), "%s.%s", name, p->name);
            if (p->tied >= 0) {
                model_build_tied(x->build, full, (int32_t)m, p->tied);
            } else {
                model_build_parameter(x->build, full, (int32_t)m,
                                      FSDP_DTYPE_F32, flags_of(x, m, p),
                                      p->n_dims, p->shape);
            }
            x->idle[from->first + i] = p->idle;
            x->module_of[from->first + i] = m;
        }
    }
}

static int build(struct graph_model *x)
{
    static const char *const names[] = {"train", "eval"};
    uint32_t point[GRAPH_POINTS];
    uint32_t module[GRAPH_POINTS];

    build_modules(x);
    for (uint32_t s = 0; s < 2; s++) {
        const uint32_t n = graph_sequence(
            &x->graph, s, x->base.config.recompute, point, module);

        model_build_sequence(x->build, names[s], n, point, module);
    }
    return model_build_finish(x->build, &x->base.model);
}

static const struct graph_parameter *parameter_of(const struct graph_model *x,
                                                  uint32_t p)
{
    const struct graph_module *m = &x->graph.module[x->module_of[p]];

    return &m->parameter[p - m->first];
}

static int initial(void *context, uint32_t p, uint64_t first, uint64_t n,
                   void *out)
{
    const struct graph_model *x = context;
    const struct graph_parameter *of;
    float scale;

    if (p >= x->base.model.n_parameters ||
        first > fsdp_numel(&x->base.model, p) ||
        n > fsdp_numel(&x->base.model, p) - first) {
        return FSDP_ERR_INVALID;
    }
    p = fsdp_original(&x->base.model, p);
    of = parameter_of(x, p);
    /* Weights are [in, out]: outputs are about as large as inputs. */
    scale = of->n_dims == 2 && of->shape[0] > 0
                ? of->scale * sqrtf(3.0f / (float)of->shape[0])
                : of->scale;
    batch_uniform(x->base.config.seed, p, first, n, scale, out);
    return FSDP_OK;
}

static int fill(struct graph_model *x, struct fsdp_error *error)
{
    struct workload_config *config = &x->base.config;
    const char *size = config->size ? config->size : "random";
    uint64_t bits;
    uint64_t parts;

    if (config->data != WORKLOAD_NATURAL) {
        return batch_fail(error, FSDP_ERR_INVALID, "graph",
                          "data of kind %u are not offered",
                          (unsigned)config->data);
    }
    if (!graph_size_bits(size, &bits)) {
        return batch_fail(error, FSDP_ERR_INVALID, "graph",
                          "no size \"%.16s\"; there are \"random\", \"ties\", "
                          "\"units\", \"both\", and x, t, u or b with 14 "
                          "hexadecimal digits",
                          size);
    }
    snprintf(x->size, sizeof(x->size), "%s", size);
    config->size = x->size;
    graph_draw(config->seed, bits, &x->graph);
    parts = config->grains != 0 ? config->grains : config->world;
    FSDP_TRY(batch_plan(config, x->graph.samples * parts * config->microbatches,
                        &x->batch, error));
    x->build = model_build_create();
    if (!x->build || build(x) != FSDP_OK) {
        return batch_fail(error, FSDP_ERR_NOMEM, "graph", "no description: %s",
                          x->build ? model_build_message(x->build)
                                   : "out of memory");
    }
    x->base.model.initial = initial;
    x->base.model.context = x;
    x->base.idle = x->idle;
    return FSDP_OK;
}

int graph_describe(const struct workload_config *config,
                   struct workload_model **out, struct fsdp_error *error)
{
    struct graph_model *x = calloc(1, sizeof(*x));
    int status;

    *out = NULL;
    if (!x) {
        return batch_fail(error, FSDP_ERR_NOMEM, "graph",
                          "no memory for the description");
    }
    x->base.workload = &workload_graph;
    x->base.config = *config;
    x->base.self = x;
    status = fill(x, error);
    if (status != FSDP_OK) {
        graph_release(&x->base);
        return status;
    }
    *out = &x->base;
    return FSDP_OK;
}

void graph_release(struct workload_model *model)
{
    if (model) {
        struct graph_model *x = model->self;

        model_build_destroy(x->build);
        free(x);
    }
}

int graph_wrap(const struct workload_model *model, struct wrap_units *out)
{
    const struct graph_model *x = model->self;
    const struct graph *g = &x->graph;

    memset(out, 0, sizeof(*out));
    out->unit_of_module = malloc(sizeof(g->unit_of_module));
    out->reshard = malloc(sizeof(g->reshard));
    out->unit_of_parameter =
        g->own_units ? calloc(GRAPH_PARAMETERS, sizeof(uint32_t)) : NULL;
    if (!out->unit_of_module || !out->reshard ||
        (g->own_units && !out->unit_of_parameter)) {
        wrap_release(out);
        return FSDP_ERR_NOMEM;
    }
    memcpy(out->unit_of_module, g->unit_of_module, sizeof(g->unit_of_module));
    memcpy(out->reshard, g->reshard, sizeof(g->reshard));
    for (uint32_t p = 0; g->own_units && p < x->base.model.n_parameters; p++) {
        out->unit_of_parameter[p] = parameter_of(x, p)->unit;
    }
    out->units = (struct fsdp_units){
        .size = sizeof(out->units),
        .n_units = g->n_units,
        .unit_of_module = out->unit_of_module,
        .reshard_after_forward = g->own_reshard ? out->reshard : NULL,
        .unit_of_parameter = out->unit_of_parameter};
    return FSDP_OK;
}

void graph_data(const struct graph_model *m, uint32_t step, uint64_t first,
                uint64_t n, float *x, float *target)
{
    const uint64_t seed = m->base.config.seed;
    const uint64_t w = m->graph.width;
    const uint64_t index = batch_index(step, first, w);

    batch_uniform(seed, BATCH_INPUT, index, n * w, 1.5f, x);
    batch_uniform(seed, BATCH_TARGET, index, n * w, 1.5f, target);
}
