/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvToolsExt.h - TEST ONLY: ranges for a profiler that is a test
 * (emulated_profiler.c). It bears the name of the real header.
 */
#ifndef FSDP_CTS_NVTOOLSEXT_H
#define FSDP_CTS_NVTOOLSEXT_H

#include <stdint.h>

/* NOLINTBEGIN(readability-identifier-naming): the names are of others. */
#define NVTX_VERSION                     3
#define NVTX_MESSAGE_TYPE_ASCII          1
#define NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 1

typedef uint64_t nvtxRangeId_t;

typedef struct {
    uint16_t version, size;
    int32_t payloadType;
    union {
        uint64_t ullValue;
    } payload;
    int32_t messageType;
    union {
        const char *ascii;
    } message;
} nvtxEventAttributes_t;

enum {
    NVTX_EVENT_ATTRIB_STRUCT_SIZE = sizeof(nvtxEventAttributes_t)
};

int nvtxRangePushEx(const nvtxEventAttributes_t *attributes);
int nvtxRangePop(void);
/* 0 where no profiler looks. */
nvtxRangeId_t nvtxRangeStartEx(const nvtxEventAttributes_t *attributes);
void nvtxRangeEnd(nvtxRangeId_t id);
/* NOLINTEND(readability-identifier-naming) */

#endif
