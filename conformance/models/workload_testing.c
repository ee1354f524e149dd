/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workload_testing.c - what the workloads' tests have in the place of an
 * engine, with a device that counts live bytes.
 */
#include "workload_testing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing/unit_testing.h"

#ifndef FSDP_CTS_TEXT
#    define FSDP_CTS_TEXT "fixtures/text/pride_and_prejudice.txt"
#endif

static struct trial *counting; /* tests run one trial's pass at a time */

static void count_live(void *self, struct fsdp_stream *stream, uint32_t kind,
                       uint32_t unit, void *p, uint64_t bytes)
{
    uint32_t i = 0;

    (void)self;
    (void)stream;
    assert_int_equal(kind, FSDP_ACTIVATION);
    assert_int_equal(unit, FSDP_NO_UNIT);
    while (counting->live_at[i]) {
        i++;
        assert_true(i < 512);
    }
    counting->live_at[i] = p;
    counting->live[i] = bytes;
    counting->live_bytes += bytes;
    if (counting->live_bytes > counting->peak_bytes) {
        counting->peak_bytes = counting->live_bytes;
    }
    memset(p, 0xff, bytes); /* undefined: NaN, and no id */
}

static void count_dead(void *self, struct fsdp_stream *stream, void *p)
{
    uint32_t i = 0;

    (void)self;
    (void)stream;
    while (counting->live_at[i] != p) {
        i++;
        assert_true(i < 512);
    }
    counting->live_at[i] = NULL;
    counting->live_bytes -= counting->live[i];
    memset(p, 0xff, counting->live[i]);
}

static struct fsdp_device inner;

static int count_alloc(void *self, uint64_t bytes, void **out)
{
    (void)self;
    if (++counting->tried == counting->fail_after) {
        *out = NULL;
        return FSDP_ERR_NOMEM;
    }
    counting->allocations++;
    return inner.alloc(inner.self, bytes, out);
}

static void count_free(void *self, void *p)
{
    (void)self;
    counting->allocations -= p != NULL;
    inner.free(inner.self, p);
}

static void tensor(const struct trial *t, uint32_t p, float *data,
                   struct fsdp_tensor *out)
{
    const struct fsdp_model *model = &t->model->model;
    int64_t stride = 1;

    memset(out, 0, sizeof(*out));
    out->data = data;
    out->dtype = FSDP_DTYPE_F32;
    out->place = t->device.place;
    out->n_dims = model->parameter_n_dims[p];
    for (uint32_t d = out->n_dims; d > 0; d--) {
        out->shape[d - 1] = model->parameter_shape[p][d - 1];
        out->stride[d - 1] = stride;
        stride *= (int64_t)out->shape[d - 1];
    }
}

static int give_param(void *self, uint32_t p, struct fsdp_tensor *out)
{
    const struct trial *t = self;

    tensor(t, p, t->weight[p], out);
    return FSDP_OK;
}

static int give_grad(void *self, uint32_t p, struct fsdp_tensor *out)
{
    const struct trial *t = self;

    tensor(t, p, t->grad[p], out);
    return FSDP_OK;
}

int trial_try(struct trial *t, const char *workload,
              const struct workload_config *config, uint32_t fail_after)
{
    const struct workload *w = workload_find(workload);
    const struct workload_access access = {
        .param = give_param, .grad = give_grad, .self = t};
    const struct fsdp_model *model;

    assert_non_null(w);
    memset(t, 0, sizeof(*t));
    t->fail_after = fail_after;
    if (w->describe(config, &t->model, &t->error) != FSDP_OK) {
        fail_msg("%s: %s", workload, t->error.message);
    }
    model = &t->model->model;
    t->weight = calloc(model->n_parameters, sizeof(*t->weight));
    t->grad = calloc(model->n_parameters, sizeof(*t->grad));
    assert_non_null(t->weight);
    assert_non_null(t->grad);
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        const uint64_t n = fsdp_numel(model, p);

        t->weight[p] = calloc(n, sizeof(float));
        t->grad[p] = calloc(n, sizeof(float));
        assert_non_null(t->weight[p]);
        assert_non_null(t->grad[p]);
        assert_int_equal(model->initial(model->context, p, 0, n, t->weight[p]),
                         FSDP_OK);
    }
    counting = t;
    assert_int_equal(ref_device_open(&inner), FSDP_OK);
    t->device = inner;
    t->device.live = count_live;
    t->device.dead = count_dead;
    t->device.alloc = count_alloc;
    t->device.free = count_free;
    return w->open(t->model, &t->device, NULL, &access, &t->error, &t->run);
}

void trial_open(struct trial *t, const char *workload,
                const struct workload_config *config)
{
    assert_int_equal(trial_try(t, workload, config, 0), FSDP_OK);
    assert_int_equal(t->live_bytes, 0);
}

void trial_close(struct trial *t)
{
    const struct workload *w = t->model->workload;

    counting = t;
    w->close(t->run);
    assert_int_equal(t->allocations, 0);
    for (uint32_t p = 0; p < t->model->model.n_parameters; p++) {
        free(t->weight[p]);
        free(t->grad[p]);
    }
    free(t->weight);
    free(t->grad);
    w->release(t->model);
}

float trial_pass(struct trial *t, uint32_t sequence, uint32_t rank,
                 uint32_t step, uint32_t microbatch)
{
    const struct workload *w = t->model->workload;
    const struct fsdp_model *model = &t->model->model;
    const struct fsdp_sequence *s = model->sequence[sequence];
    float loss = 0.0f;

    counting = t;
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        for (uint64_t e = 0; e < fsdp_numel(model, p); e++) {
            t->grad[p][e] = NAN;
        }
    }
    assert_int_equal(w->begin(t->run, rank, step, microbatch), FSDP_OK);
    for (uint32_t i = 0; i < s->n; i++) {
        if (w->compute(t->run, s->point[i], s->module[i]) != FSDP_OK) {
            fail_msg("%s", t->error.message);
        }
    }
    assert_true(t->live_bytes > 0);
    assert_int_equal(w->end(t->run, &loss), FSDP_OK);
    assert_int_equal(t->live_bytes, 0);
    return loss;
}

const char *trial_text(uint64_t *bytes)
{
    static char *text;
    static size_t n;
    const char *path = getenv("FSDP_CTS_TEXT");
    FILE *file;

    if (!text) {
        file = fopen(path ? path : FSDP_CTS_TEXT, "rb");
        if (!file) {
            fail_msg("no text at %s", path ? path : FSDP_CTS_TEXT);
            return NULL;
        }
        text = malloc(1u << 20);
        assert_non_null(text);
        n = fread(text, 1, 1u << 20, file);
        fclose(file);
    }
    *bytes = n;
    return text;
}
