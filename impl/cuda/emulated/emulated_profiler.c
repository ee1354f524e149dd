/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated_profiler.c - TEST ONLY: counts ranges, for tests.
 */
#include "emulated_profiler.h"

#include <nvtx3/nvToolsExt.h>
#include <stdio.h>

static _Thread_local struct emulated_profile profile;

struct emulated_profile *emulated_profile(void)
{
    return &profile;
}

static void note_range(const nvtxEventAttributes_t *a)
{
    if (a->version != NVTX_VERSION || a->size != sizeof(*a) ||
        a->messageType != NVTX_MESSAGE_TYPE_ASCII) {
        profile.wrong++;
        return;
    }
    snprintf(profile.last, sizeof(profile.last), "%s", a->message.ascii);
    profile.unit = a->payloadType == NVTX_PAYLOAD_TYPE_UNSIGNED_INT64
                       ? a->payload.ullValue
                       : UINT64_MAX;
}

int nvtxRangePushEx(const nvtxEventAttributes_t *attributes)
{
    if (!profile.looks) {
        return -1;
    }
    note_range(attributes);
    profile.pushed++;
    return (int)profile.depth++;
}

int nvtxRangePop(void)
{
    if (!profile.looks) {
        return -1;
    }
    profile.popped++;
    profile.wrong += profile.depth == 0;
    return (int)--profile.depth;
}

nvtxRangeId_t nvtxRangeStartEx(const nvtxEventAttributes_t *attributes)
{
    if (!profile.looks) {
        return 0;
    }
    note_range(attributes);
    return ++profile.started;
}

void nvtxRangeEnd(nvtxRangeId_t id)
{
    profile.ended++;
    profile.wrong += id == 0 || id > profile.started;
}
