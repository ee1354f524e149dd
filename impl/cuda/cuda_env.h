/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_env.h - `open` and `close` of an engine that runs on GPUs. */
#ifndef FSDP_CTS_CUDA_ENV_H
#define FSDP_CTS_CUDA_ENV_H

#include <fsdp/engine.h>

/* Replaces env->device by one on this rank's GPU, env->host by its host's
 * pinned memory, and env->comm by one that takes the GPU's streams; keeps what
 * it needs in env->engine. Collective. Changes nothing if it fails; env->error
 * says why. */
int cuda_open(struct fsdp_env *env);

/* Undoes cuda_open; no effect if cuda_open has failed. */
void cuda_close(struct fsdp_env *env);

#endif
