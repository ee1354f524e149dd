/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_compute.c - what the modules of a graph compute, forward and backward.
 *
 * A row of `width` numbers flows from call to call. A leaf turns x into (x +
 * f(x)) / 2, so that values stay about as large, however many calls there are.
 * A block may add x0 W to the output, x0 being the pass's input. The head adds
 * all these and its bias, and has the loss.
 *
 * A leaf that is called keeps what its backward needs on a stack: calls of
 * one module that is used several times are told apart by their place on it.
 * A call without a backward counts as constant: f has no derivative there.
 */
#include "graph_run.h"
#include "workload_list.h"

#include <stdlib.h>
#include <string.h>

/* ---- Storage ----------------------------------------------------------- */

static uint64_t widest(const struct graph *g)
{
    uint64_t most = g->width;

    for (uint32_t m = 0; m < g->n_modules; m++) {
        most = g->module[m].hidden > most ? g->module[m].hidden : most;
    }
    return most;
}

/* The checkpoint that a leaf's call is in; 0: it keeps what it computes. */
static uint32_t checkpoint_of(const struct workload_run *run, uint32_t call)
{
    return workload_checkpoint(run->model->base.config.recompute, call);
}

/* Deals out the parts of one large piece of memory; a first call, with `at`
 * NULL, only learns how large that must be. */
static uint64_t deal(struct workload_run *run, float *at)
{
    const uint64_t rows = run->rows;
    const uint64_t n = rows * graph_width(run);
    const uint64_t wide = rows * widest(&run->model->graph);
    float **of[] = {&run->x0,   &run->target, &run->added, &run->y,
                    &run->dout, &run->dy,     &run->f};
    uint64_t used = 0;

#define TAKE(to, elements)            \
    do {                              \
        (to) = at ? at + used : NULL; \
        used += (elements);           \
    } while (0)
    for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
        TAKE(*of[i], n);
    }
    TAKE(run->wide, wide);
    TAKE(run->row_loss, rows);
    TAKE(run->scrap, graph_width(run));
    for (uint32_t i = 0; i <= run->model->graph.n_calls; i++) {
        TAKE(run->kept[i].x, n);
        if (checkpoint_of(run, i) == 0) {
            TAKE(run->kept[i].pre, wide);
            TAKE(run->kept[i].act, wide);
            TAKE(run->kept[i].stat, 2 * rows);
        }
    }
#undef TAKE
    return used;
}

/* Recomputed calls have separate storage, as that is not always live. */
static int allocate_checkpoints(struct workload_run *run)
{
    const uint64_t wide = run->rows * widest(&run->model->graph);
    struct compute *c = &run->compute;

    for (uint32_t i = 0; i <= run->model->graph.n_calls; i++) {
        struct graph_kept *k = &run->kept[i];

        c->checkpoint = checkpoint_of(run, i);
        if (c->checkpoint != 0) {
            FSDP_TRY(compute_alloc(c, wide, &k->pre));
            FSDP_TRY(compute_alloc(c, wide, &k->act));
            FSDP_TRY(compute_alloc(c, 2 * run->rows, &k->stat));
        }
    }
    c->checkpoint = 0;
    return FSDP_OK;
}

static int graph_open(const struct workload_model *model,
                      const struct fsdp_device *device,
                      struct fsdp_stream *stream,
                      const struct workload_access *access,
                      struct fsdp_error *error, struct workload_run **out)
{
    struct workload_run *run = calloc(1, sizeof(*run));
    float *all = NULL;

    *out = run;
    if (!run) {
        return batch_fail(error, FSDP_ERR_NOMEM, "graph",
                          "no memory for a run");
    }
    run->model = model->self;
    run->rows = run->model->batch.samples;
    FSDP_TRY(compute_open(&run->compute, &model->model, device, stream, access,
                          run->model->batch.grains, error));
    run->host = calloc(3 * run->rows * graph_width(run), sizeof(*run->host));
    if (!run->host) {
        return batch_fail(error, FSDP_ERR_NOMEM, "graph",
                          "no memory for samples");
    }
    FSDP_TRY(compute_alloc(&run->compute, deal(run, NULL), &all));
    (void)deal(run, all);
    return allocate_checkpoints(run);
}

static void graph_close(struct workload_run *run)
{
    if (run) {
        compute_close(&run->compute);
        free(run->host);
        free(run);
    }
}

static int graph_begin(struct workload_run *run, uint32_t rank, uint32_t step,
                       uint32_t microbatch)
{
    const struct graph_model *m = run->model;
    const uint64_t n = run->rows * graph_width(run);
    struct compute *c = &run->compute;

    run->depth = 0;
    run->recomputed = GRAPH_CALLS;
    run->microbatch = microbatch;
    FSDP_TRY(compute_begin(c));
    graph_data(m, step,
               batch_first(&m->base.config, &m->batch, rank, microbatch, 0),
               run->rows, run->host, run->host + n);
    FSDP_TRY(compute_upload(c, run->x0, run->host, n));
    FSDP_TRY(compute_upload(c, run->target, run->host + n, n));
    FSDP_TRY(compute_upload(c, run->added, run->host + 2 * n, n));
    return compute_upload(c, run->kept[0].x, run->host, n);
}

/* ---- Forward ----------------------------------------------------------- */

/* Asks for a parameter that no computation needs, as if one did. */
static int look_at_spare(struct workload_run *run, uint32_t module)
{
    const struct graph_module *m = &run->model->graph.module[module];
    const float *w;

    for (uint32_t i = 0; i < m->n_parameters; i++) {
        if (strcmp(m->parameter[i].name, "spare") == 0 &&
            (m->parameter[i].idle & WORKLOAD_UNSEEN) == 0) {
            FSDP_TRY(graph_weight(run, module, i, &w));
        }
    }
    return FSDP_OK;
}

static int apply(struct workload_run *run, const struct graph_kept *k, float *f)
{
    const struct graph_module *m = &run->model->graph.module[k->module];
    struct compute *c = &run->compute;
    const uint64_t rows = run->rows;
    const uint64_t w = graph_width(run);
    const float *a = NULL;
    const float *b = NULL;

    if (m->kind != GRAPH_GELU) {
        FSDP_TRY(graph_weight(run, k->module, 0, &a));
    }
    switch (m->kind) {
    case GRAPH_LINEAR:
        return compute_gemm(c, rows, w, w, k->x, a, f);
    case GRAPH_BIAS:
        FSDP_TRY(compute_gelu(c, rows * w, k->x, f));
        return compute_bias(c, rows, w, f, a);
    case GRAPH_MLP:
        FSDP_TRY(compute_gemm(c, rows, m->hidden, w, k->x, a, k->pre));
        FSDP_TRY(graph_weight(run, k->module, 1, &b));
        FSDP_TRY(compute_bias(c, rows, m->hidden, k->pre, b));
        FSDP_TRY(compute_relu(c, rows * m->hidden, k->pre, k->act));
        FSDP_TRY(graph_weight(run, k->module, 2, &b));
        return compute_gemm(c, rows, w, m->hidden, k->act, b, f);
    case GRAPH_NORM:
        FSDP_TRY(graph_weight(run, k->module, 1, &b));
        return compute_norm(c, rows, w, 1.0f / GRAPH_NORM_EPS_INVERSE, k->x, a,
                            b, f, k->stat);
    default:
        return compute_gelu(c, rows * w, k->x, f);
    }
}

static int forward_leaf(struct workload_run *run, uint32_t module)
{
    const uint64_t n = run->rows * graph_width(run);
    const uint32_t checkpoint = checkpoint_of(run, run->depth);
    struct graph_kept *k = &run->kept[run->depth++];
    float *to = run->kept[run->depth].x;

    k->module = module;
    compute_enter(&run->compute, checkpoint);
    FSDP_TRY(apply(run, k, run->f));
    compute_leave(&run->compute, checkpoint);
    FSDP_TRY(compute_add(&run->compute, n, k->x, run->f, to));
    return compute_scale(&run->compute, n, 0.5f, to);
}

/* The last call below n that has a backward; n: none has. */
static uint32_t last_with_backward(const struct workload_run *run, uint32_t n)
{
    const struct graph *g = &run->model->graph;
    uint32_t i = n;

    while (i > 0 && g->module[run->kept[i - 1].module].detached) {
        i--;
    }
    return i > 0 ? i - 1 : n;
}

/* Recomputes the calls of the next backward's checkpoint in turn, also those
 * that have no backward. */
static int recompute_leaf(struct workload_run *run, uint32_t module)
{
    const uint32_t next = last_with_backward(run, run->depth);
    const uint32_t checkpoint = checkpoint_of(run, next);
    uint32_t i = run->recomputed;

    if (i >= run->depth || checkpoint_of(run, i) != checkpoint) {
        for (i = 0; i < run->depth && checkpoint_of(run, i) != checkpoint;) {
            i++;
        }
    }
    if (next == run->depth || i >= run->depth ||
        run->kept[i].module != module) {
        return batch_fail(run->compute.error, FSDP_ERR_INTERNAL, "graph",
                          "a recomputation without its forward");
    }
    run->recomputed = i + 1;
    compute_enter(&run->compute, checkpoint);
    return apply(run, &run->kept[i], run->f);
}

static int forward_block(struct workload_run *run, uint32_t module)
{
    const uint64_t w = graph_width(run);
    const uint64_t n = run->rows * w;
    const struct graph_module *m = &run->model->graph.module[module];
    const float *a;

    if (m->n_parameters == 0 || m->parameter[0].n_dims != 2 ||
        strcmp(m->parameter[0].name, "shortcut") != 0) {
        return FSDP_OK;
    }
    FSDP_TRY(graph_weight(run, module, 0, &a));
    FSDP_TRY(compute_gemm(&run->compute, run->rows, w, w, run->x0, a, run->f));
    return compute_add(&run->compute, n, run->added, run->f, run->added);
}

static int forward_head(struct workload_run *run, uint32_t module)
{
    const uint64_t rows = run->rows;
    const uint64_t w = graph_width(run);
    const float elements = (float)(rows * w);
    struct compute *c = &run->compute;
    const float *b;

    FSDP_TRY(
        compute_add(c, rows * w, run->kept[run->depth].x, run->added, run->y));
    FSDP_TRY(graph_weight(run, module, 0, &b));
    FSDP_TRY(compute_bias(c, rows, w, run->y, b));
    FSDP_TRY(compute_mse(c, rows, w, 2.0f / elements, run->y, run->target,
                         run->row_loss, run->dout));
    return compute_loss(c, run->row_loss, rows, 1.0f / elements);
}

/* ---- Backward ----------------------------------------------------------- */

static int backward_leaf(struct workload_run *run, uint32_t module)
{
    const uint64_t n = run->rows * graph_width(run);
    struct compute *c = &run->compute;
    const struct graph_kept *k;
    uint32_t next;

    /* Passes over later calls without a backward: through them a gradient is
     * only halved. */
    do {
        if (run->depth == 0) {
            return batch_fail(c->error, FSDP_ERR_INTERNAL, "graph",
                              "a backward without its forward");
        }
        k = &run->kept[--run->depth];
        FSDP_TRY(compute_scale(c, n, 0.5f, run->dy));
    } while (k->module != module);
    FSDP_TRY(graph_derive(run, k));
    next = last_with_backward(run, run->depth);
    if (next == run->depth ||
        checkpoint_of(run, next) != checkpoint_of(run, run->depth)) {
        compute_leave(c, checkpoint_of(run, run->depth));
    }
    return compute_add(c, n, run->dy, run->f, run->dy);
}

static int backward_block(struct workload_run *run, uint32_t module)
{
    const struct graph_module *m = &run->model->graph.module[module];
    const uint64_t w = graph_width(run);
    float *d;

    if (m->n_parameters == 0 || strcmp(m->parameter[0].name, "shortcut") != 0) {
        return FSDP_OK;
    }
    FSDP_TRY(graph_gradient(run, module, 0, &d));
    return !d ? FSDP_OK
              : compute_gemm_grad(&run->compute, w, w, run->rows, run->x0,
                                  run->dout, d);
}

static int backward_head(struct workload_run *run, uint32_t module)
{
    const uint64_t w = graph_width(run);
    float *d;

    FSDP_TRY(graph_gradient(run, module, 0, &d));
    if (d) { /* a script may have frozen it, or its original */
        FSDP_TRY(compute_column_sum(&run->compute, run->rows, w, run->dout, d));
    }
    return compute_upload(&run->compute, run->dy, run->dout, run->rows * w);
}

/* ------------------------------------------------------------------------ */

static int compute_module(struct workload_run *run, uint32_t point,
                          uint32_t module)
{
    const struct graph *g = &run->model->graph;
    const bool forward = point == FSDP_PRE_FORWARD;

    if (point == FSDP_PRE_RECOMPUTE && module < g->n_modules) {
        return recompute_leaf(run, module);
    }
    if (module >= g->n_modules || (!forward && point != FSDP_PRE_BACKWARD)) {
        return FSDP_OK;
    }
    if (forward) {
        FSDP_TRY(look_at_spare(run, module));
    }
    switch (g->module[module].kind) {
    case GRAPH_BLOCK:
        return forward ? forward_block(run, module)
                       : backward_block(run, module);
    case GRAPH_HEAD:
        return forward ? forward_head(run, module) : backward_head(run, module);
    default:
        return forward ? forward_leaf(run, module) : backward_leaf(run, module);
    }
}

static int graph_compute(struct workload_run *run, uint32_t point,
                         uint32_t module)
{
    FSDP_TRY(compute_module(run, point, module));
    return compute_lent_back(&run->compute);
}

static int graph_end(struct workload_run *run, float *out_loss)
{
    return compute_end(&run->compute, out_loss);
}

static uint64_t graph_digest(const struct workload_model *model, uint32_t rank,
                             uint32_t step, uint32_t microbatch, uint32_t grain)
{
    const struct graph_model *m = model->self;
    const uint64_t n = m->batch.grain_samples * m->graph.width;
    float *data = calloc(2 * n, sizeof(*data));
    uint64_t hash;

    if (!data) {
        return 0;
    }
    graph_data(m, step,
               batch_first(&m->base.config, &m->batch, rank, microbatch, grain),
               m->batch.grain_samples, data, data + n);
    hash = batch_hash(batch_hash_start, data, 2 * n * sizeof(*data));
    free(data);
    return hash;
}

static int graph_samples(const struct workload_model *model, uint32_t rank,
                         uint32_t step, uint32_t microbatch,
                         int (*visit)(void *context,
                                      const struct workload_samples *samples),
                         void *context)
{
    const struct graph_model *m = model->self;
    const uint64_t n = m->batch.samples;
    const uint64_t w = m->graph.width;
    float *data = calloc(2 * n * w, sizeof(*data));
    struct workload_samples s = {"x", "F32", 2, {n, w}, data};
    int status;

    if (!data) {
        return FSDP_ERR_NOMEM;
    }
    graph_data(m, step,
               batch_first(&m->base.config, &m->batch, rank, microbatch, 0), n,
               data, data + n * w);
    status = visit(context, &s);
    if (status == FSDP_OK) {
        s.name = "target";
        s.data = data + n * w;
        status = visit(context, &s);
    }
    free(data);
    return status;
}

static const char *const size_names[] = {"random", "ties", "units", "both",
                                         NULL};

const struct workload workload_graph = {
    .name = "graph",
    .summary = "a random tree of modules for each seed: reuse, nesting, units",
    .sizes = size_names,
    .any_size = true,
    .data_kinds = 1u << WORKLOAD_NATURAL,
    .freezes = 1u << WORKLOAD_FROZEN_PREFIX | 1u << WORKLOAD_FROZEN_ALTERNATE |
               1u << WORKLOAD_FROZEN_MATRICES | 1u << WORKLOAD_FROZEN_BODY,
    .recomputes =
        1u << WORKLOAD_RECOMPUTE_AROUND | 1u << WORKLOAD_RECOMPUTE_HALF,
    .recomputes_too = 1u << WORKLOAD_RECOMPUTE_PAIR,
    .describe = graph_describe,
    .release = graph_release,
    .wrap = graph_wrap,
    .open = graph_open,
    .begin = graph_begin,
    .compute = graph_compute,
    .end = graph_end,
    .close = graph_close,
    .digest = graph_digest,
    .samples = graph_samples,
};
