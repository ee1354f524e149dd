/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl.h - the optimized engine, as programs that link it see it.
 */
#ifndef FSDP_CTS_IMPL_H
#define FSDP_CTS_IMPL_H

#include <fsdp/engine.h>

const struct fsdp_engine *fsdp_impl_engine(void);

/* Opens the device that the program is linked with (impl_devices.c). */
int impl_open_device(struct fsdp_env *env);
void impl_close_device(struct fsdp_env *env);

#endif
