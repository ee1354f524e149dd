/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plain_device.h - the reference device: memory, streams that finish at once,
 * and the operators of profile "f32-fma" as plain loops. Other devices are
 * judged by its bits.
 *
 * On x86 the loops are compiled twice, for any processor and for those with
 * AVX2 and FMA; the environment's FSDP_REF_PORTABLE, if it is not empty, takes
 * the first. Bits are the same.
 *
 * Stateless: any number of ranks may open it, as processes or threads, and a
 * copy of the struct is as good as the original.
 */
#ifndef FSDP_CTS_PLAIN_DEVICE_H
#define FSDP_CTS_PLAIN_DEVICE_H

#include <fsdp/device.h>

/* Fills *out, which the caller owns. INVALID if out is NULL. */
int ref_device_open(struct fsdp_device *out);

/* Nothing to give back but what alloc and stream_open gave. NULL is allowed. */
void ref_device_close(struct fsdp_device *device);

#endif
