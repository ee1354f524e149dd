/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule.h - the work of an engine in a step, as tasks that wait for each
 * other: compute of modules, and collectives on the links of the mesh.
 *
 * The order is the oracle's walk; gathers move forward as far as the options
 * let an engine run ahead: when a window opens, the units of the next windows
 * of the phase are gathered, too.
 */
#ifndef FSDP_CTS_SCHEDULE_H
#define FSDP_CTS_SCHEDULE_H

#include "tools/plan/plan_bytes.h"

enum schedule_stream {
    SCHEDULE_COMPUTE = 0,
    SCHEDULE_SHARD = 1, /* the links of a mesh dimension */
    SCHEDULE_REPLICATE = 2,
    SCHEDULE_N_STREAMS = 3,
};

#define SCHEDULE_NONE UINT32_MAX

/* Tasks of one stream run in their order; a task starts when the one before it
 * in its stream and all tasks that it waits for have ended. */
struct schedule_task {
    uint32_t stream;
    uint32_t kind;     /* of a collective: enum fsdp_collective_kind */
    uint32_t unit;     /* of compute: the module's, or FSDP_NO_UNIT */
    uint32_t point;    /* of compute; FSDP_END: the optimizer's step */
    uint32_t module;   /* of compute */
    uint64_t elements; /* of a collective: a shard's, with padding */
    uint32_t dtype;    /* of a collective: the dtype of these */
    uint32_t after[2]; /* tasks that it waits for, which stand before it in
                          schedule.task; or SCHEDULE_NONE */
};

struct schedule {
    uint32_t n;
    struct schedule_task *task;
    uint64_t chunk; /* elements of all shards of a rank, which the optimizer
                     * steps */
};

/* Makes the schedule of a case that trains. As plan_bytes_make; NOMEM. *out is
 * to be released whatever is returned. */
int schedule_make(const struct plan_ask *ask, struct schedule *out,
                  struct fsdp_error *error);
void schedule_release(struct schedule *s); /* any state */

#endif
