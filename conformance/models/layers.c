/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layers.c - describes a list of linear layers.
 */
#include "layers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void build_buffers(struct layers_model *m)
{
    const struct layers_size *size = &m->size;
    char name[32];

    model_build_buffer(m->build, "count", 0, FSDP_DTYPE_I64, 0, 1);
    for (uint32_t u = 0; u < size->n; u++) {
        const int32_t module = (int32_t)u + 1;

        snprintf(name, sizeof(name), "layers.%u.running_mean", (unsigned)u);
        model_build_buffer(m->build, name, module,
                           u % 2 == 0 ? FSDP_DTYPE_F32 : FSDP_DTYPE_BF16, 0,
                           size->out[u]);
        snprintf(name, sizeof(name), "layers.%u.last_mean", (unsigned)u);
        model_build_buffer(m->build, name, module, FSDP_DTYPE_F32,
                           FSDP_NOT_PERSISTED, size->out[u]);
    }
}

static int build(struct layers_model *m, const char *root_class)
{
    const struct layers_size *size = &m->size;
    uint32_t checkpoint[LAYERS_MAX + 1] = {0};
    char name[32];

    model_build_module(m->build, m->base.workload->name, root_class, -1);
    for (uint32_t u = 0; u < size->n; u++) {
        const uint64_t shape[] = {size->in[u], size->out[u]};

        snprintf(name, sizeof(name), "layers.%u", (unsigned)u);
        model_build_module(m->build, name, "Linear", 0);
        snprintf(name, sizeof(name), "layers.%u.weight", (unsigned)u);
        model_build_parameter(
            m->build, name, (int32_t)u + 1, FSDP_DTYPE_F32,
            workload_is_frozen(m->base.config.frozen, u, size->n, false)
                ? FSDP_FROZEN
                : 0,
            2, shape);
        checkpoint[u + 1] = workload_checkpoint(m->base.config.recompute, u);
    }
    if (size->tracks) {
        build_buffers(m);
    }
    if (m->base.config.recompute != WORKLOAD_KEEPS) {
        FSDP_TRY(model_build_recompute(m->build, checkpoint));
    }
    return model_build_finish(m->build, &m->base.model);
}

static int fill(struct layers_model *m, const char *root_class,
                const struct layers_size *sizes, uint32_t n_sizes,
                uint64_t samples, struct fsdp_error *error)
{
    struct workload_config *config = &m->base.config;
    const char *wanted = config->size ? config->size : sizes[0].name;
    uint32_t i = 0;

    if (config->data > 31 ||
        (m->base.workload->data_kinds >> config->data & 1u) == 0) {
        return batch_fail(error, FSDP_ERR_INVALID, m->base.workload->name,
                          "data of kind %u are not offered",
                          (unsigned)config->data);
    }
    while (i < n_sizes && strcmp(sizes[i].name, wanted) != 0) {
        i++;
    }
    if (i == n_sizes) {
        return batch_fail(error, FSDP_ERR_INVALID, m->base.workload->name,
                          "no size \"%s\"; the first is \"%s\"", wanted,
                          sizes[0].name);
    }
    m->size = sizes[i];
    config->size = sizes[i].name;
    FSDP_TRY(batch_plan(config, samples, &m->batch, error));
    m->build = model_build_create();
    if (!m->build || build(m, root_class) != FSDP_OK) {
        return batch_fail(error, FSDP_ERR_NOMEM, m->base.workload->name,
                          "no memory for the description");
    }
    return FSDP_OK;
}

int layers_describe(const struct workload *workload, const char *root_class,
                    const struct layers_size *sizes, uint32_t n_sizes,
                    uint64_t samples, const struct workload_config *config,
                    int (*initial)(void *context, uint32_t p, uint64_t first,
                                   uint64_t n, void *out),
                    struct workload_model **out, struct fsdp_error *error)
{
    struct layers_model *m = calloc(1, sizeof(*m));
    int status;

    *out = NULL;
    if (!m) {
        return batch_fail(error, FSDP_ERR_NOMEM, workload->name,
                          "no memory for the description");
    }
    m->base.workload = workload;
    m->base.config = *config;
    m->base.self = m;
    status = fill(m, root_class, sizes, n_sizes, samples, error);
    if (status != FSDP_OK) {
        layers_release(&m->base);
        return status;
    }
    m->base.model.initial = initial;
    m->base.model.context = m;
    *out = &m->base;
    return FSDP_OK;
}

void layers_release(struct workload_model *model)
{
    if (model) {
        struct layers_model *m = model->self;

        model_build_destroy(m->build);
        free(m);
    }
}

bool layers_slice_ok(const struct layers_model *m, uint32_t p, uint64_t first,
                     uint64_t n)
{
    if (p >= m->size.n) {
        return false;
    }
    const uint64_t numel = (uint64_t)m->size.in[p] * m->size.out[p];

    return first <= numel && n <= numel - first;
}
