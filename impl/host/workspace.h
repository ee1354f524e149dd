/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace.h - scratch memory of the operators. It grows to what the largest
 * operator so far has asked for and is kept, so that steps do not allocate.
 */
#ifndef FSDP_CTS_WORKSPACE_H
#define FSDP_CTS_WORKSPACE_H

#include <stdint.h>

struct workspace {
    void *p;
    uint64_t bytes;
};

/* Room for `count` elements of `size` bytes, aligned to 64, undefined; it
 * holds until the next call. NULL if there is no memory. */
void *workspace_get(struct workspace *ws, uint64_t count, uint64_t size);

void workspace_fini(struct workspace *ws);

#endif
