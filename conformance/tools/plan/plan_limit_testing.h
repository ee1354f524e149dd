/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_limit_testing.h - an engine lives in ranks whose data the kernel limits
 * (RLIMIT_DATA). The limit counts private memory that can be written, and so
 * not the world's shared mapping. No model computes here: an engine alone takes
 * memory.
 */
#ifndef FSDP_CTS_PLAN_LIMIT_TESTING_H
#define FSDP_CTS_PLAN_LIMIT_TESTING_H

#include "tools/plan/plan_bytes.h"

#include <stdbool.h>
#include <stdint.h>

struct limited_run {
    const struct fsdp_engine *engine;
    const struct plan_ask *ask; /* borrowed; its model has `initial` */
    uint32_t with_values;       /* so many ranks, from 0 on, have initial
                                 * values */
    uint32_t patience_ms;
    uint64_t limit; /* bytes of a rank's data, beyond what it begins with */
    /* What each rank does with the sharded model. */
    int (*live)(const struct limited_run *, struct fsdp_sharded *);
    const void *context; /* for `live` */
    struct fsdp_mesh *mesh;
};

/* A pass in which each gradient is 1, and a step. */
int limited_train(const struct limited_run *r, struct fsdp_sharded *s);

/* Whether all ranks return FSDP_OK; *why is the error of the first rank that
 * lacks memory, or else of the first that fails. */
bool limited_passes(struct limited_run *r, struct fsdp_error *why);

/* Whether there is a sanitizer, whose own memory is beyond any limit. */
bool limited_cannot(void);

#endif
