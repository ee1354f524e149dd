/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_empty.c - a model of many units that computes nothing: what a step of
 * it takes is what an engine costs.
 */
#include "models/model_build.h"
#include "tools/bench/bench_life.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ELEMENTS = 16 /* of a parameter */
};

struct empty {
    struct workload_model base;
    struct model_build *build;
};

struct workload_run {
    const struct fsdp_model *model;
    struct workload_access access;
};

static int initial(void *context, uint32_t p, uint64_t first, uint64_t n,
                   void *out)
{
    (void)context;
    (void)p;
    (void)first;
    memset(out, 0, n * sizeof(float));
    return FSDP_OK;
}

static void release(struct workload_model *model)
{
    if (model) {
        struct empty *e = model->self;
        model_build_destroy(e->build);
        free(e);
    }
}

static int describe(const struct workload_config *config,
                    struct workload_model **out, struct fsdp_error *error)
{
    struct empty *e = calloc(1, sizeof(*e));
    const uint64_t shape = ELEMENTS;
    int32_t root;

    (void)error;
    *out = NULL;
    if (!e) {
        return FSDP_ERR_NOMEM;
    }
    e->base = (struct workload_model){
        .workload = &bench_empty, .config = *config, .self = e};
    e->build = model_build_create();
    *out = &e->base;
    if (!e->build) {
        return FSDP_ERR_NOMEM;
    }
    root = model_build_module(e->build, "", "Model", -1);
    for (int i = 0; i < BENCH_EMPTY_UNITS; i++) {
        char name[32];
        snprintf(name, sizeof(name), "units.%d", i);
        int32_t module = model_build_module(e->build, name, "Block", root);
        snprintf(name, sizeof(name), "units.%d.weight", i);
        model_build_parameter(e->build, name, module, FSDP_DTYPE_F32, 0, 1,
                              &shape);
    }
    FSDP_TRY(model_build_finish(e->build, &e->base.model));
    e->base.model.initial = initial;
    e->base.model.context = e;
    return FSDP_OK;
}

static int open_run(const struct workload_model *model,
                    const struct fsdp_device *device,
                    struct fsdp_stream *stream,
                    const struct workload_access *access,
                    struct fsdp_error *error, struct workload_run **out)
{
    struct workload_run *run = calloc(1, sizeof(*run));

    (void)device;
    (void)stream;
    (void)error;
    *out = run;
    if (!run) {
        return FSDP_ERR_NOMEM;
    }
    run->model = &model->model;
    run->access = *access;
    return FSDP_OK;
}

static int begin(struct workload_run *run, uint32_t rank, uint32_t step,
                 uint32_t microbatch)
{
    (void)run;
    (void)rank;
    (void)step;
    (void)microbatch;
    return FSDP_OK;
}

/* Module m + 1 has parameter m. Its gradient is left as it lies in memory. */
static int compute(struct workload_run *run, uint32_t point, uint32_t module)
{
    struct fsdp_tensor t;

    if (module == 0) {
        return FSDP_OK;
    }
    FSDP_TRY(run->access.param(run->access.self, module - 1, &t));
    return point == FSDP_PRE_BACKWARD
               ? run->access.grad(run->access.self, module - 1, &t)
               : FSDP_OK;
}

static int end(struct workload_run *run, float *out_loss)
{
    (void)run;
    *out_loss = 0.0f;
    return FSDP_OK;
}

static void close_run(struct workload_run *run)
{
    free(run);
}

static const char *const sizes[] = {"empty", NULL};

const struct workload bench_empty = {
    .name = "empty",
    .summary = "many units, no compute",
    .sizes = sizes,
    .data_kinds = 1u << WORKLOAD_NATURAL,
    .describe = describe,
    .release = release,
    .open = open_run,
    .begin = begin,
    .compute = compute,
    .end = end,
    .close = close_run,
};
