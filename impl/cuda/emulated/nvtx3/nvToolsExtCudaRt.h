/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvToolsExtCudaRt.h - TEST ONLY: names of streams, for nobody.
 */
#ifndef FSDP_CTS_NVTOOLSEXTCUDART_H
#define FSDP_CTS_NVTOOLSEXTCUDART_H

#include "cuda_runtime_api.h"

/* NOLINTBEGIN(readability-identifier-naming): the names are of others. */
static inline void nvtxNameCudaStreamA(cudaStream_t stream, const char *name)
{
    (void)stream;
    (void)name;
}
/* NOLINTEND(readability-identifier-naming) */

#endif
