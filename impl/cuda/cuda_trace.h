/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_trace.h - ranges that profilers show around calls of the host: NVTX.
 */
#ifndef FSDP_CTS_CUDA_TRACE_H
#define FSDP_CTS_CUDA_TRACE_H

#include <stdint.h>

/* `name` is static; the unit is the range's payload, unless it is
 * FSDP_NO_UNIT. */
void cuda_trace_push(const char *name, uint32_t unit);
void cuda_trace_pop(void);

#endif
