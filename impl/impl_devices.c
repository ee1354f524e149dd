/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_devices.c - which device the engine runs on: the host's. The engine
 * itself (engine/) knows none; this file is where another one comes in.
 */
#include "engine/impl.h"
#include "host/host_env.h"

int impl_open_device(struct fsdp_env *env)
{
    return host_open(env);
}

void impl_close_device(struct fsdp_env *env)
{
    host_close(env);
}
