/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace.c - scratch memory that grows and is kept.
 */
#include "workspace.h"

#include <stddef.h>
#include <stdlib.h>

enum {
    ALIGNMENT = 64
};

void *workspace_get(struct workspace *ws, uint64_t count, uint64_t size)
{
    uint64_t bytes;

    if (__builtin_mul_overflow(count, size, &bytes) ||
        bytes > PTRDIFF_MAX - ALIGNMENT) {
        return NULL;
    }
    bytes = (bytes / ALIGNMENT + 1) * ALIGNMENT;
    if (bytes > ws->bytes) {
        workspace_fini(ws);
        ws->p = aligned_alloc(ALIGNMENT, bytes);
        if (!ws->p) {
            return NULL;
        }
        ws->bytes = bytes;
    }
    return ws->p;
}

void workspace_fini(struct workspace *ws)
{
    free(ws->p);
    ws->p = NULL;
    ws->bytes = 0;
}
