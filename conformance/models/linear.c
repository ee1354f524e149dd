/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear.c - independent linear layers whose outputs add up, y = sum over u of
 * x_u W_u, and a loss that is linear in y: sum of y * c, over the rows. The
 * gradient of W_u is x_u^T c / rows, whatever the weights are, so that exact
 * data stay exact for many steps.
 *
 * The bit budget of exact data, for T steps of SGD with a learning rate 2^-e
 * and divide factors that are powers of two. S = 16 samples a step, c is -1, 0
 * or 1, and a row of it has at most 8 that are not 0; x_u is an integer, of
 * which a row has at most 16 that are not 0; and the sum of |x| over a row of
 * all layers is at most 64, with |x| <= A. The unit is 2^-e / S: a step moves a
 * weight by at most A S units, and weights start as -1, 0 or 1, and 1 is S 2^e
 * units. So in these units a weight is at most S (A T + 2^e), an output at most
 * 64 times that, and the loss of all rows at most 16 * 8 * 64 * 16 * (A T +
 * 2^e) = 2^17 (A T + 2^e) where there are 8 columns, 2^15 (A T + 2^e) for the 2
 * of "tiny". Below 2^24 nothing is rounded, in any order: T + 2^e <= 128 for
 * "small" and "large" (A = 1), 8 T + 2^e <= 512 for "tiny" (A = 8).
 */
#include "compute.h"
#include "exact16.h"
#include "layers.h"
#include "workload_list.h"

#include <fsdp/arith/philox.h>
#include <math.h>
#include <stdlib.h>

enum {
    LINEAR_SAMPLES = 16,   /* a step */
    LINEAR_NONZERO_X = 16, /* exact data */
    LINEAR_NONZERO_C = 8,
    LINEAR_ROW_SUM = 64,
};

/* All layers have the same outputs. "tiny" has units with fewer than 8
 * elements, "large" 4.2 million elements in units of unequal size. */
static const struct layers_size sizes[] = {
    {"small", 4, {7, 12, 5, 9}, {6, 6, 6, 6}, false},
    {"tiny", 3, {1, 2, 3}, {2, 2, 2}, false},
    {"large", 4, {2048, 1024, 640, 384}, {1024, 1024, 1024, 1024}, false},
};
static const char *const size_names[] = {"small", "tiny", "large", NULL};

struct workload_run {
    const struct layers_model *model;
    struct compute compute;
    float *host;          /* as in struct drawn */
    float *x[LAYERS_MAX]; /* inputs of layers */
    float *y;             /* the sum of outputs so far */
    float *part;          /* one layer's output */
    float *c;             /* coefficients of the loss */
    float *dy;
    float *row_loss;
};

static uint64_t outputs_of(const struct layers_model *m)
{
    return m->size.out[0];
}

static uint64_t elements_of_a_sample(const struct layers_model *m)
{
    uint64_t n = outputs_of(m);

    for (uint32_t u = 0; u < m->size.n; u++) {
        n += m->size.in[u];
    }
    return n;
}

static int linear_initial(void *context, uint32_t p, uint64_t first, uint64_t n,
                          void *out)
{
    const struct layers_model *m = context;

    if (!layers_slice_ok(m, p, first, n)) {
        return FSDP_ERR_INVALID;
    }
    if (m->base.config.data == WORKLOAD_EXACT) {
        batch_integers(m->base.config.seed, p, first, n, 1, out);
    } else if (m->base.config.data == WORKLOAD_EXACT16) {
        exact16_weights(m->base.config.seed, p, first, n, out);
    } else {
        batch_uniform(m->base.config.seed, p, first, n,
                      sqrtf(3.0f / (float)m->size.in[p]), out);
    }
    return FSDP_OK;
}

/* The largest |x| with which a row of all inputs still sums to at most
 * LINEAR_ROW_SUM. */
static uint32_t exact_bound(const struct layers_model *m)
{
    uint32_t nonzero = 0;

    for (uint32_t u = 0; u < m->size.n; u++) {
        nonzero +=
            m->size.in[u] < LINEAR_NONZERO_X ? m->size.in[u] : LINEAR_NONZERO_X;
    }
    /* More than 8 would cost bits and show nothing more. */
    return LINEAR_ROW_SUM / nonzero < 8 ? LINEAR_ROW_SUM / nonzero : 8;
}

/* Keeps `keep` neighbours (cyclically) of a row's `width` elements and sets the
 * others to 0. Where they begin is random, by the row's place in the stream. */
static void thin_out(uint64_t seed, uint32_t stream, uint64_t index,
                     uint64_t width, uint64_t keep, float *row)
{
    const float u = fsdp_random_uniform(seed, stream + 256, index);
    const uint64_t start = (uint64_t)((double)(u + 1.0f) * 0.5 * (double)width);

    for (uint64_t i = 0; i < width; i++) {
        if ((i + width - start) % width >= keep) {
            row[i] = 0.0f;
        }
    }
}

/* `n` rows of `width` elements, from sample `first` of a step on. */
static void draw(const struct layers_model *m, uint32_t stream, uint32_t step,
                 uint64_t first, uint64_t n, uint64_t width, uint32_t bound,
                 uint64_t keep, float *out)
{
    const uint64_t seed = m->base.config.seed;
    const uint64_t index = batch_index(step, first, width);

    if (m->base.config.data != WORKLOAD_EXACT) {
        batch_uniform(seed, stream, index, n * width, 1.0f, out);
        return;
    }
    batch_integers(seed, stream, index, n * width, bound, out);
    for (uint64_t r = 0; r < n && width > keep; r++) {
        thin_out(seed, stream, index + r * width, width, keep, out + r * width);
    }
}

/* Samples [first, first + n): inputs of each layer, [n, in], one after the
 * other, then the coefficients, [n, out]. */
static void draw_all(const struct layers_model *m, uint32_t step,
                     uint64_t first, uint64_t n, float *out)
{
    if (m->base.config.data == WORKLOAD_EXACT16) {
        for (uint32_t u = 0; u < m->size.n; u++) {
            exact16_inputs(m, u, step, first, n, out);
            out += n * m->size.in[u];
        }
        exact16_coefficients(m, step, first, n, out);
        return;
    }
    for (uint32_t u = 0; u < m->size.n; u++) {
        draw(m, BATCH_INPUT + u, step, first, n, m->size.in[u], exact_bound(m),
             LINEAR_NONZERO_X, out);
        out += n * m->size.in[u];
    }
    draw(m, BATCH_TARGET, step, first, n, outputs_of(m), 1, LINEAR_NONZERO_C,
         out);
}

static int linear_describe(const struct workload_config *config,
                           struct workload_model **out,
                           struct fsdp_error *error)
{
    return layers_describe(&workload_linear, "Sum", sizes,
                           sizeof(sizes) / sizeof(sizes[0]), LINEAR_SAMPLES,
                           config, linear_initial, out, error);
}

static int allocate(struct workload_run *run)
{
    const struct layers_model *m = run->model;
    const uint64_t rows = m->batch.samples;
    const uint64_t n = rows * outputs_of(m);

    run->host = calloc(rows * elements_of_a_sample(m), sizeof(*run->host));
    if (!run->host) {
        return batch_fail(run->compute.error, FSDP_ERR_NOMEM, "linear",
                          "no memory for samples");
    }
    for (uint32_t u = 0; u < m->size.n; u++) {
        FSDP_TRY(
            compute_alloc(&run->compute, rows * m->size.in[u], &run->x[u]));
    }
    FSDP_TRY(compute_alloc(&run->compute, n, &run->y));
    FSDP_TRY(compute_alloc(&run->compute, n, &run->part));
    FSDP_TRY(compute_alloc(&run->compute, n, &run->c));
    FSDP_TRY(compute_alloc(&run->compute, n, &run->dy));
    return compute_alloc(&run->compute, rows, &run->row_loss);
}

static int linear_open(const struct workload_model *model,
                       const struct fsdp_device *device,
                       struct fsdp_stream *stream,
                       const struct workload_access *access,
                       struct fsdp_error *error, struct workload_run **out)
{
    struct workload_run *run = calloc(1, sizeof(*run));

    *out = run;
    if (!run) {
        return batch_fail(error, FSDP_ERR_NOMEM, "linear",
                          "no memory for a run");
    }
    run->model = model->self;
    FSDP_TRY(compute_open(&run->compute, &model->model, device, stream, access,
                          run->model->batch.grains, error));
    return allocate(run);
}

static void linear_close(struct workload_run *run)
{
    if (run) {
        compute_close(&run->compute);
        free(run->host);
        free(run);
    }
}

static int linear_begin(struct workload_run *run, uint32_t rank, uint32_t step,
                        uint32_t microbatch)
{
    const struct layers_model *m = run->model;
    const uint64_t rows = m->batch.samples;
    const float *from = run->host;

    FSDP_TRY(compute_begin(&run->compute));
    draw_all(m, step,
             batch_first(&m->base.config, &m->batch, rank, microbatch, 0), rows,
             run->host);
    for (uint32_t u = 0; u < m->size.n; u++) {
        const uint64_t n = rows * m->size.in[u];

        FSDP_TRY(compute_upload(&run->compute, run->x[u], from, n));
        from += n;
    }
    return compute_upload(&run->compute, run->c, from, rows * outputs_of(m));
}

static int forward(struct workload_run *run, uint32_t u)
{
    const struct layers_size *size = &run->model->size;
    const uint64_t rows = run->model->batch.samples;
    const uint64_t n = outputs_of(run->model);
    const float scale = 1.0f / (float)rows;
    const float *w;

    FSDP_TRY(compute_param(&run->compute, u, &w));
    FSDP_TRY(compute_gemm(&run->compute, rows, n, size->in[u], run->x[u], w,
                          u == 0 ? run->y : run->part));
    if (u > 0) {
        FSDP_TRY(
            compute_add(&run->compute, rows * n, run->y, run->part, run->y));
    }
    if (u + 1 < size->n) {
        return FSDP_OK;
    }
    FSDP_TRY(compute_linear_loss(&run->compute, rows, n, scale, run->y, run->c,
                                 run->row_loss, run->dy));
    return compute_loss(&run->compute, run->row_loss, rows, scale);
}

static int backward(struct workload_run *run, uint32_t u)
{
    const struct layers_model *m = run->model;
    float *dw;

    FSDP_TRY(compute_grad(&run->compute, u, &dw));
    return !dw /* frozen */
               ? FSDP_OK
               : compute_gemm_grad(&run->compute, m->size.in[u], outputs_of(m),
                                   m->batch.samples, run->x[u], run->dy, dw);
}

static int compute_module(struct workload_run *run, uint32_t point,
                          uint32_t module)
{
    if (module == 0 || module > run->model->size.n) {
        return FSDP_OK;
    }
    switch (point) {
    case FSDP_PRE_FORWARD:
        return forward(run, module - 1);
    case FSDP_PRE_BACKWARD:
        return backward(run, module - 1);
    default:
        return FSDP_OK; /* backward needs nothing of forward: no recompute */
    }
}

static int linear_compute(struct workload_run *run, uint32_t point,
                          uint32_t module)
{
    FSDP_TRY(compute_module(run, point, module));
    return compute_lent_back(&run->compute);
}

static int linear_end(struct workload_run *run, float *out_loss)
{
    return compute_end(&run->compute, out_loss);
}

static uint64_t linear_digest(const struct workload_model *model, uint32_t rank,
                              uint32_t step, uint32_t microbatch,
                              uint32_t grain)
{
    const struct layers_model *m = model->self;
    const uint64_t n = m->batch.grain_samples;
    const uint64_t elements = n * elements_of_a_sample(m);
    float *data = calloc(elements, sizeof(*data));
    uint64_t hash;

    if (!data) {
        return 0;
    }
    draw_all(m, step,
             batch_first(&m->base.config, &m->batch, rank, microbatch, grain),
             n, data);
    hash = batch_hash(batch_hash_start, data, elements * sizeof(*data));
    free(data);
    return hash;
}

static int linear_samples(const struct workload_model *model, uint32_t rank,
                          uint32_t step, uint32_t microbatch,
                          int (*visit)(void *context,
                                       const struct workload_samples *samples),
                          void *context)
{
    static const char *const name[LAYERS_MAX] = {"x0", "x1", "x2", "x3"};
    const struct layers_model *m = model->self;
    const uint64_t rows = m->batch.samples;
    float *data = calloc(rows * elements_of_a_sample(m), sizeof(*data));
    const float *at = data;
    int status = FSDP_OK;

    if (!data) {
        return FSDP_ERR_NOMEM;
    }
    draw_all(m, step,
             batch_first(&m->base.config, &m->batch, rank, microbatch, 0), rows,
             data);
    for (uint32_t u = 0; u <= m->size.n && status == FSDP_OK; u++) {
        const bool last = u == m->size.n;
        const uint64_t width = last ? outputs_of(m) : m->size.in[u];
        const struct workload_samples s = {
            last ? "c" : name[u], "F32", 2, {rows, width}, at};

        status = visit(context, &s);
        at += rows * width;
    }
    free(data);
    return status;
}

const struct workload workload_linear = {
    .name = "linear",
    .summary = "a sum of linear layers; gradients do not depend on weights",
    .sizes = size_names,
    .data_kinds = 1u << WORKLOAD_NATURAL | 1u << WORKLOAD_EXACT |
                  1u << WORKLOAD_REPLICATED | 1u << WORKLOAD_EXACT16,
    .freezes = 1u << WORKLOAD_FROZEN_PREFIX | 1u << WORKLOAD_FROZEN_ALTERNATE |
               1u << WORKLOAD_FROZEN_BODY,
    .describe = linear_describe,
    .release = layers_release,
    .open = linear_open,
    .begin = linear_begin,
    .compute = linear_compute,
    .end = linear_end,
    .close = linear_close,
    .digest = linear_digest,
    .samples = linear_samples,
};
