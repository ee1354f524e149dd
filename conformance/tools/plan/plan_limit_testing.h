/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_limit_testing.h - an engine lives in ranks of which the kernel limits
 * the data (RLIMIT_DATA). It counts private memory that can be written; the
 * world's shared mapping is none. No model computes here: an engine alone takes
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
    uint32_t with_values;       /* ranks from 0 on that have initial values */
    uint32_t patience_ms;
    uint64_t limit; /* bytes of a rank's data, beyond what it begins with */
    /* What each rank does with what has been sharded. */
    int (*live)(const struct limited_run *, struct fsdp_sharded *);
    const void *context; /* of `live` */
    struct fsdp_mesh *mesh;
};

/* A pass in which each gradient is 1, and a step. */
int limited_train(const struct limited_run *r, struct fsdp_sharded *s);

/* Whether all ranks return FSDP_OK; *why: of the first that lacks memory, or
 * else of the first that fails. */
bool limited_passes(struct limited_run *r, struct fsdp_error *why);

/* Of a sanitizer, whose own memory is beyond any limit. */
bool limited_cannot(void);

#endif
