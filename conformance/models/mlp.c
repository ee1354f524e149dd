/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mlp.c - the textbook's model (cli/verdict/textbook.h): linear layers without
 * bias, a ReLU after every one of them, the last included, and the mean squared
 * error. Its size "seed" is that of the book: 16-32-32-16-8, 2176 parameters,
 * 256 samples that are the same at every step.
 *
 * Its size "track" keeps buffers beside its weights, which each forward writes,
 * an evaluation's too: how many there were, and for each layer the mean of its
 * outputs over the samples of the rank's first grain, so that rank 0 has the
 * same in worlds that have the same grains. The loss depends on none of them.
 *
 * Natural data: inputs are uniform, targets are what one random layer with a
 * ReLU makes of them. Initial weights of the last layer are not negative: its
 * ReLU would keep an output that starts below 0 at 0 for ever.
 *
 * Exact data: a single step (forward, backward, fold) has no rounding before
 * the division by the world, so that every order of summation gives the same
 * bits. Inputs are -1, 0 or 1, targets -2..2, weights -1 or 1 where (i - j) mod
 * in < 3 and 0 elsewhere. Hence at most 3 terms a sum in forward: outputs are
 * integers of at most 3^4 = 81. Gradients are multiples of the loss scale 2 /
 * (rows * n), which is a power of two as rows and n are, and a row of a weight
 * has at most 3 * ceil(out / in) entries. The largest sums are those of the
 * losses, 256 * 8 * 83^2 = 1.4e7, and of a gradient, 256 * 96 * 504 = 1.2e7
 * (size "wide"); both are below 2^24.
 */
#include "compute.h"
#include "layers.h"
#include "workload_list.h"

#include <fsdp/arith/cast.h>
#include <fsdp/arith/philox.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MLP_SAMPLES = 256,      /* a step */
    MLP_BAND = 3,           /* exact weights: terms of a sum */
    MLP_TEACHER = 128,      /* inputs times outputs, at most */
    MLP_BUFFER = 0x10000000 /* + b: the stream of its initial values */
};

/* "empty" has units with fewer elements than ranks; "wide" units of 8, 192,
 * 4608 and 192 elements. */
static const struct layers_size sizes[] = {
    {"seed", 4, {16, 32, 32, 16}, {32, 32, 16, 8}, false},
    {"odd", 3, {5, 7, 3}, {7, 3, 2}, false},
    {"empty", 2, {3, 1}, {1, 2}, false},
    {"wide", 4, {4, 2, 96, 48}, {2, 96, 48, 4}, false},
    {"track", 3, {5, 7, 3}, {7, 3, 2}, true},
};
static const char *const size_names[] = {"seed", "odd",   "empty",
                                         "wide", "track", NULL};

struct workload_run {
    const struct layers_model *model;
    struct compute compute;
    float *host;              /* samples, then targets */
    float *x[LAYERS_MAX + 1]; /* inputs of layers, and the output */
    float *pre[LAYERS_MAX];   /* of the ReLU */
    float *dy[2];             /* gradient of layer u's output: dy[u % 2] */
    float *target;
    float *row_loss;
    float *mean;   /* of a layer's outputs; of a size that tracks */
    int64_t count; /* of forwards, on its way */
};

static int mlp_initial(void *context, uint32_t p, uint64_t first, uint64_t n,
                       void *out)
{
    const struct layers_model *m = context;
    const bool last = p + 1 == m->size.n;
    float *w = out;

    if (!layers_slice_ok(m, p, first, n)) {
        return FSDP_ERR_INVALID;
    }
    const uint32_t inputs = m->size.in[p];
    const uint32_t outputs = m->size.out[p];

    batch_uniform(m->base.config.seed, p, first, n, 1.0f, w);
    for (uint64_t e = 0; e < n; e++) {
        const uint64_t i = (first + e) / outputs;
        const uint64_t j = (first + e) % outputs % inputs;

        if (m->base.config.data == WORKLOAD_EXACT) {
            const uint64_t place = (i + inputs - j) % inputs;
            const bool positive = w[e] >= 0.0f || (last && place == 0);

            w[e] = place >= MLP_BAND ? 0.0f : positive ? 1.0f : -1.0f;
        } else if (last) {
            w[e] = fabsf(w[e]) * (1.0f / (float)inputs);
        } else {
            w[e] *= sqrtf(3.0f / (float)inputs);
        }
    }
    return FSDP_OK;
}

static int mlp_initial_buffer(void *context, uint32_t b, uint64_t first,
                              uint64_t n, void *out)
{
    const struct layers_model *m = context;
    const struct fsdp_model *model = &m->base.model;
    float mean[MLP_TEACHER];

    if (b >= model->n_buffers || first > model->buffer_numel[b] ||
        n > model->buffer_numel[b] - first || n > MLP_TEACHER) {
        return FSDP_ERR_INVALID;
    }
    if (b == LAYERS_COUNT) {
        const int64_t count = LAYERS_FIRST_COUNT;

        memcpy(out, &count, n * sizeof(count));
        return FSDP_OK;
    }
    batch_uniform(m->base.config.seed, MLP_BUFFER + b, first, n, 1.0f, mean);
    if (first == 0 && n > 0) { /* by way of float16 it would be another bf16 */
        mean[0] = 1.0f + 0x1p-8f + 0x1p-12f;
    }
    for (uint64_t i = 0; i < n; i++) {
        fsdp_store(model->buffer_dtype[b], out, i, mean[i]);
    }
    return FSDP_OK;
}

static uint32_t inputs_of(const struct layers_model *m)
{
    return m->size.in[0];
}

static uint32_t outputs_of(const struct layers_model *m)
{
    return m->size.out[m->size.n - 1];
}

/* The teacher's weights: one layer, [in, out], the same for all samples. */
static void draw_teacher(const struct layers_model *m, float *teacher)
{
    batch_uniform(m->base.config.seed, BATCH_TEACHER, 0,
                  (uint64_t)inputs_of(m) * outputs_of(m), 1.0f, teacher);
}

/* With a ReLU, and in double, so that rounding plays no role. */
static void teach(const struct layers_model *m, const float *teacher,
                  const float *x, float *target)
{
    const uint32_t n_in = inputs_of(m);
    const uint32_t n_out = outputs_of(m);

    for (uint32_t j = 0; j < n_out; j++) {
        double sum = 0.0;

        for (uint32_t i = 0; i < n_in; i++) {
            sum += (double)x[i] * (double)teacher[(size_t)i * n_out + j];
        }
        sum = 1.0 + 0.5 * sum / sqrt((double)n_in);
        target[j] = sum > 0.0 ? (float)sum : 0.0f;
    }
}

/* Samples [first, first + n) of every step. */
static void draw(const struct layers_model *m, uint64_t first, uint64_t n,
                 float *x, float *target)
{
    const uint64_t seed = m->base.config.seed;
    const uint64_t n_in = inputs_of(m);
    const uint64_t n_out = outputs_of(m);
    float teacher[MLP_TEACHER];

    if (m->base.config.data == WORKLOAD_EXACT) {
        batch_integers(seed, BATCH_INPUT, batch_index(0, first, n_in), n * n_in,
                       1, x);
        batch_integers(seed, BATCH_TARGET, batch_index(0, first, n_out),
                       n * n_out, 2, target);
        return;
    }
    batch_uniform(seed, BATCH_INPUT, batch_index(0, first, n_in), n * n_in,
                  2.0f, x);
    draw_teacher(m, teacher);
    for (uint64_t i = 0; i < n; i++) {
        teach(m, teacher, x + i * n_in, target + i * n_out);
    }
}

static int mlp_describe(const struct workload_config *config,
                        struct workload_model **out, struct fsdp_error *error)
{
    FSDP_TRY(layers_describe(&workload_mlp, "MLP", sizes,
                             sizeof(sizes) / sizeof(sizes[0]), MLP_SAMPLES,
                             config, mlp_initial, out, error));
    (*out)->model.initial_buffer = mlp_initial_buffer;
    return FSDP_OK;
}

/* The checkpoint that layer u is in; 0: it keeps what it computes. */
static uint32_t checkpoint_of(const struct workload_run *run, uint32_t u)
{
    return workload_checkpoint(run->model->base.config.recompute, u);
}

/* Allocates each layer's output, before and behind its activation. The output
 * of an activation checkpoint is kept. */
static int allocate_layers(struct workload_run *run, uint64_t rows,
                           uint64_t *widest)
{
    const struct layers_size *size = &run->model->size;
    struct compute *c = &run->compute;

    *widest = 0;
    FSDP_TRY(compute_alloc(c, rows * size->in[0], &run->x[0]));
    for (uint32_t u = 0; u < size->n; u++) {
        const uint64_t n = rows * size->out[u];

        *widest = n > *widest ? n : *widest;
        c->checkpoint = checkpoint_of(run, u);
        FSDP_TRY(compute_alloc(c, n, &run->pre[u]));
        c->checkpoint = workload_leaves(run->model->base.config.recompute, u,
                                        run->model->size.n) != 0
                            ? 0
                            : c->checkpoint;
        FSDP_TRY(compute_alloc(c, n, &run->x[u + 1]));
    }
    c->checkpoint = 0;
    return FSDP_OK;
}

static int allocate(struct workload_run *run)
{
    const uint64_t rows = run->model->batch.samples;
    uint64_t widest;

    run->host = calloc(rows * (inputs_of(run->model) + outputs_of(run->model)),
                       sizeof(*run->host));
    if (!run->host) {
        return batch_fail(run->compute.error, FSDP_ERR_NOMEM, "mlp",
                          "no memory for samples");
    }
    FSDP_TRY(allocate_layers(run, rows, &widest));
    FSDP_TRY(compute_alloc(&run->compute, widest, &run->dy[0]));
    FSDP_TRY(compute_alloc(&run->compute, widest, &run->dy[1]));
    FSDP_TRY(compute_alloc(&run->compute, rows * outputs_of(run->model),
                           &run->target));
    if (run->model->size.tracks) {
        FSDP_TRY(compute_alloc(&run->compute, widest, &run->mean));
    }
    return compute_alloc(&run->compute, rows, &run->row_loss);
}

static int mlp_open(const struct workload_model *model,
                    const struct fsdp_device *device,
                    struct fsdp_stream *stream,
                    const struct workload_access *access,
                    struct fsdp_error *error, struct workload_run **out)
{
    struct workload_run *run = calloc(1, sizeof(*run));

    *out = run;
    if (!run) {
        return batch_fail(error, FSDP_ERR_NOMEM, "mlp", "no memory for a run");
    }
    run->model = model->self;
    FSDP_TRY(compute_open(&run->compute, &model->model, device, stream, access,
                          run->model->batch.grains, error));
    return allocate(run);
}

static void mlp_close(struct workload_run *run)
{
    if (run) {
        compute_close(&run->compute);
        free(run->host);
        free(run);
    }
}

static int mlp_begin(struct workload_run *run, uint32_t rank, uint32_t step,
                     uint32_t microbatch)
{
    const struct layers_model *m = run->model;
    const uint64_t rows = m->batch.samples;
    float *target = run->host + rows * inputs_of(m);

    (void)step;
    FSDP_TRY(compute_begin(&run->compute));
    draw(m, batch_first(&m->base.config, &m->batch, rank, microbatch, 0), rows,
         run->host, target);
    FSDP_TRY(compute_upload(&run->compute, run->x[0], run->host,
                            rows * inputs_of(m)));
    return compute_upload(&run->compute, run->target, target,
                          rows * outputs_of(m));
}

static int forward(struct workload_run *run, uint32_t u)
{
    const struct layers_size *size = &run->model->size;
    const uint64_t rows = run->model->batch.samples;
    const float *w;

    FSDP_TRY(compute_param(&run->compute, u, &w));
    FSDP_TRY(compute_gemm(&run->compute, rows, size->out[u], size->in[u],
                          run->x[u], w, run->pre[u]));
    return compute_relu(&run->compute, rows * size->out[u], run->pre[u],
                        run->x[u + 1]);
}

/* Also computes the gradient of the last layer's output. */
static int loss(struct workload_run *run)
{
    const struct layers_size *size = &run->model->size;
    const uint64_t rows = run->model->batch.samples;
    const uint64_t n = outputs_of(run->model);
    const float elements = (float)(rows * n);

    FSDP_TRY(compute_mse(&run->compute, rows, n, 2.0f / elements,
                         run->x[size->n], run->target, run->row_loss,
                         run->dy[(size->n - 1) % 2]));
    return compute_loss(&run->compute, run->row_loss, rows, 1.0f / elements);
}

static int backward(struct workload_run *run, uint32_t u)
{
    const struct layers_size *size = &run->model->size;
    const uint64_t rows = run->model->batch.samples;
    float *dy = run->dy[u % 2];
    const float *w;
    float *dw;

    FSDP_TRY(compute_relu_backward(&run->compute, rows * size->out[u],
                                   run->pre[u], dy));
    FSDP_TRY(compute_grad(&run->compute, u, &dw));
    if (dw) {
        FSDP_TRY(compute_gemm_grad(&run->compute, size->in[u], size->out[u],
                                   rows, run->x[u], dy, dw));
    }
    if (u == 0) {
        return FSDP_OK;
    }
    FSDP_TRY(compute_param(&run->compute, u, &w));
    return compute_gemm_transposed(&run->compute, rows, size->in[u],
                                   size->out[u], dy, w, run->dy[(u + 1) % 2]);
}

/* The host fetches the count, adds this forward, and writes it back. */
static int count_forward(struct workload_run *run)
{
    struct compute *c = &run->compute;
    void *at;

    FSDP_TRY(compute_buffer(c, LAYERS_COUNT, &at));
    if (!at) {
        return FSDP_OK;
    }
    FSDP_TRY(compute_fetch(c, &run->count, at, sizeof(run->count)));
    run->count++;
    return compute_store(c, at, &run->count, sizeof(run->count));
}

/* The running mean becomes 7/8 of itself and 1/8 of this forward's mean. */
static int track(struct workload_run *run, uint32_t u)
{
    const uint64_t rows = run->model->batch.grain_samples;
    const uint64_t n = run->model->size.out[u];
    struct compute *c = &run->compute;
    float *running;
    float *last;

    FSDP_TRY(compute_column_mean(c, rows, n, run->x[u + 1], run->mean));
    FSDP_TRY(compute_float_buffer(c, LAYERS_LAST + 2 * u, &last));
    if (last) {
        FSDP_TRY(compute_copy(c, n, run->mean, last));
    }
    FSDP_TRY(compute_float_buffer(c, LAYERS_MEAN + 2 * u, &running));
    if (running) {
        FSDP_TRY(compute_scale(c, n, 0.125f, run->mean));
        FSDP_TRY(compute_scale(c, n, 0.875f, running));
        FSDP_TRY(compute_add(c, n, running, run->mean, running));
    }
    return FSDP_OK;
}

/* A layer's part of a pass, around which its checkpoint's storage is live. */
static int compute_module(struct workload_run *run, uint32_t point,
                          uint32_t module)
{
    const uint32_t layers = run->model->size.n;
    const bool back = point == FSDP_PRE_BACKWARD;
    const uint32_t u = module - 1;
    const bool tracks = run->model->size.tracks && point == FSDP_PRE_FORWARD;

    if (tracks && module == 0) {
        return count_forward(run);
    }
    if (module == 0 || module > layers ||
        (!back && point != FSDP_PRE_FORWARD && point != FSDP_PRE_RECOMPUTE)) {
        return FSDP_OK;
    }
    if (!back && workload_enters(run->model->base.config.recompute, u) != 0) {
        compute_enter(&run->compute, checkpoint_of(run, u));
    }
    FSDP_TRY(back ? backward(run, u) : forward(run, u));
    if (tracks) {
        FSDP_TRY(track(run, u));
    }
    if (point == FSDP_PRE_FORWARD && u + 1 == layers) {
        FSDP_TRY(loss(run)); /* the loss is never recomputed */
    }
    if (back ? workload_enters(run->model->base.config.recompute, u) != 0
             : point == FSDP_PRE_FORWARD &&
                   workload_leaves(run->model->base.config.recompute, u,
                                   run->model->size.n) != 0) {
        compute_leave(&run->compute, checkpoint_of(run, u));
    }
    return FSDP_OK;
}

static int mlp_compute(struct workload_run *run, uint32_t point,
                       uint32_t module)
{
    FSDP_TRY(compute_module(run, point, module));
    return compute_lent_back(&run->compute);
}

static int mlp_end(struct workload_run *run, float *out_loss)
{
    return compute_end(&run->compute, out_loss);
}

static uint64_t mlp_digest(const struct workload_model *model, uint32_t rank,
                           uint32_t step, uint32_t microbatch, uint32_t grain)
{
    const struct layers_model *m = model->self;
    const uint64_t n = m->batch.grain_samples;
    const uint64_t n_in = n * inputs_of(m);
    const uint64_t n_out = n * outputs_of(m);
    float *data = calloc(n_in + n_out, sizeof(*data));
    uint64_t hash = batch_hash_start;

    (void)step;
    if (!data) {
        return 0;
    }
    draw(m, batch_first(&m->base.config, &m->batch, rank, microbatch, grain), n,
         data, data + n_in);
    hash = batch_hash(hash, data, (n_in + n_out) * sizeof(*data));
    free(data);
    return hash;
}

static int mlp_samples(const struct workload_model *model, uint32_t rank,
                       uint32_t step, uint32_t microbatch,
                       int (*visit)(void *context,
                                    const struct workload_samples *samples),
                       void *context)
{
    const struct layers_model *m = model->self;
    const uint64_t rows = m->batch.samples;
    float *x = calloc(rows * (inputs_of(m) + outputs_of(m)), sizeof(*x));
    float *target = x + rows * inputs_of(m);
    struct workload_samples s = {"x", "F32", 2, {rows, inputs_of(m)}, x};
    int status;

    (void)step;
    if (!x) {
        return FSDP_ERR_NOMEM;
    }
    draw(m, batch_first(&m->base.config, &m->batch, rank, microbatch, 0), rows,
         x, target);
    status = visit(context, &s);
    if (status == FSDP_OK) {
        s = (struct workload_samples){
            "target", "F32", 2, {rows, outputs_of(m)}, target};
        status = visit(context, &s);
    }
    free(x);
    return status;
}

const struct workload workload_mlp = {
    .name = "mlp",
    .summary = "the textbook's layers with ReLU, mean squared error",
    .sizes = size_names,
    .data_kinds = 1u << WORKLOAD_NATURAL | 1u << WORKLOAD_EXACT |
                  1u << WORKLOAD_REPLICATED,
    .recomputes = 1u << WORKLOAD_RECOMPUTE_AROUND |
                  1u << WORKLOAD_RECOMPUTE_PAIR | 1u << WORKLOAD_RECOMPUTE_HALF,
    .freezes = 1u << WORKLOAD_FROZEN_PREFIX | 1u << WORKLOAD_FROZEN_ALTERNATE |
               1u << WORKLOAD_FROZEN_BODY,
    .describe = mlp_describe,
    .release = layers_release,
    .open = mlp_open,
    .begin = mlp_begin,
    .compute = mlp_compute,
    .end = mlp_end,
    .close = mlp_close,
    .digest = mlp_digest,
    .samples = mlp_samples,
};
