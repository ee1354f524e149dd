/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_memory.h - storage on the CPU, aligned to 64 bytes. What is smaller than
 * a large page is the C library's. The rest begins at a large page and is the
 * system's, asked of it without a detour, so that what is given back is its at
 * once. It ends with a large page, too, for as long as there is memory for
 * that: where a limit of the process (RLIMIT_DATA) leaves no more, every range
 * gives back what it does not need.
 */
#ifndef FSDP_CTS_HOST_MEMORY_H
#define FSDP_CTS_HOST_MEMORY_H

#include <stdint.h>

enum {
    HOST_LARGE_PAGE = 2 << 20
};

struct host_mapped;

/* All zero: nothing is there. One thread at a time. */
struct host_memory {
    struct host_mapped *mapped;
};

/* INVALID without `out`, NOMEM. Its content is undefined. */
int host_memory_alloc(struct host_memory *m, uint64_t bytes, void **out);

/* Of the same `m`, or NULL. */
void host_memory_free(struct host_memory *m, void *p);

#endif
