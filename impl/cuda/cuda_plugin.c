/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_plugin.c - the engine of impl/engine on GPUs, as a plug-in: the product
 * itself needs no CUDA to start.
 */
#include "cuda_env.h"

#include "engine/impl.h"

int impl_open_device(struct fsdp_env *env)
{
    return cuda_open(env);
}

void impl_close_device(struct fsdp_env *env)
{
    cuda_close(env);
}

const struct fsdp_engine *fsdp_engine_v1(void)
{
    return fsdp_impl_engine();
}
