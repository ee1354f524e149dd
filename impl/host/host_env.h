/* SPDX-License-Identifier: Apache-2.0 */
/* host_env.h - `open` and `close` of an engine that runs on the host. */
#ifndef FSDP_CTS_HOST_ENV_H
#define FSDP_CTS_HOST_ENV_H

#include <fsdp/engine.h>

/* Replaces env->device and env->host by the host's, with the instructions that
 * FSDP_SIMD of the environment names, and env->comm by one that takes its
 * streams; keeps what it needs in env->engine. Changes nothing if it fails;
 * env->error says why. */
int host_open(struct fsdp_env *env);

/* Undoes host_open; no effect if host_open has failed. */
void host_close(struct fsdp_env *env);

#endif
