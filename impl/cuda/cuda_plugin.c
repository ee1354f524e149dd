/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_plugin.c - the engine of impl/engine on GPUs, as a plug-in: the product
 * itself needs no CUDA to start.
 */
#include "cuda_env.h"

#include "engine/impl.h"

enum {
    MOST_CLAIMS = 126
};

int impl_open_device(struct fsdp_env *env)
{
    return cuda_open(env);
}

void impl_close_device(struct fsdp_env *env)
{
    cuda_close(env);
}

/* impl's claims, and that it has devices. */
const struct fsdp_engine *fsdp_engine_v1(void)
{
    static const char *claims[MOST_CLAIMS + 2];
    static struct fsdp_engine engine;
    uint32_t n = 0;

    engine = *fsdp_impl_engine();
    while (n < MOST_CLAIMS && engine.claims[n]) {
        claims[n] = engine.claims[n];
        n++;
    }
    claims[n] = "devices";
    engine.claims = claims;
    return &engine;
}
