/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_host.h - the host beside a GPU, as a device of its own: pinned memory,
 * which the GPU copies from and to while streams go on, and the operators of
 * the CPU. It has no streams: every call has finished on return.
 */
#ifndef FSDP_CTS_CUDA_HOST_H
#define FSDP_CTS_CUDA_HOST_H

#include <fsdp/device.h>

struct cuda_device;

/* Borrows the GPU's device. With the instructions that FSDP_SIMD of the
 * environment names: INVALID, UNSUPPORTED, and `message` says why. NOMEM. */
int cuda_host_open(struct cuda_device *device, struct fsdp_device *out,
                   char *message, size_t bytes);
/* All zero is allowed. */
void cuda_host_close(struct fsdp_device *host);

#endif
