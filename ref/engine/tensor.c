/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor.c - how parameters and gradients are lent, and on which device.
 */
#include "ref.h"
#include "ref/ops/plain_device.h"

#include <stdlib.h>

struct fsdp_tensor ref_tensor(const struct fsdp_env *env,
                              const struct fsdp_model *model, uint32_t p,
                              uint32_t dtype, void *data)
{
    struct fsdp_tensor t = {.data = data,
                            .dtype = dtype,
                            .place = env->device->place,
                            .n_dims = model->parameter_n_dims[p]};
    int64_t stride = 1;

    for (uint32_t d = t.n_dims; d-- > 0;) {
        t.shape[d] = model->parameter_shape[p][d];
        t.stride[d] = stride;
        stride *= (int64_t)t.shape[d];
    }
    return t;
}

int ref_open(struct fsdp_env *env)
{
    struct fsdp_device *device = malloc(sizeof(*device));

    if (!device) {
        return ref_fail(env, FSDP_ERR_NOMEM, "ref.open", "out of memory");
    }
    if (ref_device_open(device) != FSDP_OK) {
        free(device);
        return ref_fail(env, FSDP_ERR_NOMEM, "ref.open", "out of memory");
    }
    env->device = env->host = device; /* the same memory */
    env->engine = device;
    return FSDP_OK;
}

void ref_close(struct fsdp_env *env)
{
    if (env->engine) {
        ref_device_close(env->engine);
        free(env->engine);
        env->engine = NULL;
        env->device = env->host = NULL;
    }
}
