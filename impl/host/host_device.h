/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_device.h - the device on the CPU: memory of the C library, streams as
 * threads, the operators of host_ops.h. Work that may overlap really does, so
 * that a wait that an engine forgot is a race here, too.
 *
 * Errors. A call returns what can be seen without reading memory: an unknown
 * operator, or wrong shapes. Any other failure belongs to the stream, and
 * sticks: later work on it is not run, streams that wait for it fail alike, and
 * `wait` with later = NULL and `sync` return it.
 */
#ifndef FSDP_CTS_HOST_DEVICE_H
#define FSDP_CTS_HOST_DEVICE_H

#include "host_stream.h"
#include "simd.h"

#include <fsdp/device.h>

/* UNSUPPORTED for a level that this build or processor does not have, NOMEM. */
int host_device_open(enum simd_level level, struct fsdp_device *out);

/* Closes streams that are still open, too. A device that was never opened, all
 * zero, is allowed. */
void host_device_close(struct fsdp_device *device);

/* The host_stream of such a device's stream, for work other than operators. */
struct host_stream *host_device_queue(struct fsdp_stream *stream);

#endif
