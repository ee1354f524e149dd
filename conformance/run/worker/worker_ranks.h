/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_ranks.h - a worker's worlds, one after the other: ranks are started,
 * isolated where that is wanted, and what they leave behind is ended.
 */
#ifndef FSDP_CTS_WORKER_RANKS_H
#define FSDP_CTS_WORKER_RANKS_H

#include "run/play/drive.h"
#include "run/witness/notary.h"
#include "run/worker/case_record.h"
#include "run/worker/worker.h"

#include <sys/resource.h>

/* What a rank does first of all, before it is driven: it takes its own
 * descriptors and closes the others', and, where ranks are isolated, gives up
 * what it may not do from here on (rank_limits.h). */
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

struct worker_ranks {
    const struct worker_options *o;
    struct rlimit limit[RLIM_NLIMITS]; /* of the worker, when it started */
    bool harmed; /* by a rank or the system: it plays no other case */
    bool isolate;
    /* That ranks can write to: the case's and TMPDIR; or, where what they
     * record crosses to another process, TMPDIR alone. */
    const char *folders[3];
    const char *record; /* the case's */
    bool crosses;
    char tmp[CASE_FOLDER_BYTES + 8];
    /* What ranks of this case were refused, the first ones. */
    uint32_t n_refusals;
    struct record_refusal refusal[RECORD_REFUSALS];
    struct record_weight weight[NOTARY_RANKS]; /* in the last world */
    /* In the last one that was recorded, by rank; if `counted`. */
    struct record_carried *carried;
    bool counted;
    struct record_account account[NOTARY_RANKS];
    struct notary notary; /* pid 0: none has been started, or it is lost */
    const char *unknown;  /* NULL, or why it is not known what these are */
};

/* Before an engine is loaded. */
void worker_ranks_open(struct worker_ranks *w, const struct worker_options *o);
/* From here on ranks are those of another case. `crosses`: where they are
 * isolated, what they record does. */
void worker_ranks_begin(struct worker_ranks *w, const char *folder,
                        bool crosses);
/* Where ranks leave what they do not record: stacks, traces, checkpoints. */
const char *worker_ranks_own(const struct worker_ranks *w);
/* All ranks of the case have ended: that belongs to the record, but for
 * checkpoints. */
void worker_ranks_collect(const struct worker_ranks *w);
/* As world_run. NOMEM: ranks could not be isolated. */
int worker_ranks_run(struct worker_ranks *w, uint32_t kind,
                     const struct fsdp_mesh *mesh, struct rank_body *b,
                     struct world_result *ends, struct fsdp_error *error);

#endif
