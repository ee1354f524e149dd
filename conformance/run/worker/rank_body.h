/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_body.h - what a rank of a worker does first of all, before it is driven:
 * it takes its own descriptors and closes the others', and, where ranks are
 * isolated, gives up what it may not do from here on (rank_limits.h).
 */
#ifndef FSDP_CTS_RANK_BODY_H
#define FSDP_CTS_RANK_BODY_H

#include "run/play/drive.h"
#include "run/witness/notary.h"
#include "run/worker/worker.h"

struct rank_body {
    const struct worker_options *o;
    const struct drive *d;
    int (*drive)(void *context, struct world_rank *rank);
    struct notary *notary;      /* NULL: ranks are not isolated */
    const char *const *folders; /* that they can write to, up to NULL; the
                                   first is theirs for what they leave */
    bool crosses;               /* what they record does, to the notary */
    bool loads; /* the engine here, behind the limits; else it is in d */
};

/* A body of world_run; context: struct rank_body. A rank that could not be
 * isolated has no record (drive_is_unwritten); one whose engine cannot be
 * loaded has one that says so. */
int rank_body_run(void *context, struct world_rank *rank);

#endif
