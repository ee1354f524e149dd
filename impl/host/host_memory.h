/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_memory.h - storage on the CPU, aligned to 64 bytes. A range smaller than
 * a large page comes from the C library. Any other begins at a large page and
 * comes directly from the system, so that it is the system's again as soon as
 * it is given back. It also ends with a large page, for as long as there is
 * memory for that: where a limit of the process (RLIMIT_DATA) leaves no more,
 * every range gives back what it does not need.
 */
#ifndef FSDP_CTS_HOST_MEMORY_H
#define FSDP_CTS_HOST_MEMORY_H

#include <stdint.h>

enum {
    HOST_LARGE_PAGE = 2 << 20
};

struct host_mapped;

/* All zero: it holds no storage. One thread at a time. */
struct host_memory {
    struct host_mapped *mapped;
};

/* INVALID without `out`, NOMEM. The content is undefined. */
int host_memory_alloc(struct host_memory *m, uint64_t bytes, void **out);

/* p comes from the same `m`, or is NULL. */
void host_memory_free(struct host_memory *m, void *p);

#endif
