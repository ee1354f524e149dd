/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_ranks.h - runs a worker's worlds, one after the other: starts ranks,
 * isolates them where that is wanted, and ends what they leave behind.
 */
#ifndef FSDP_CTS_WORKER_RANKS_H
#define FSDP_CTS_WORKER_RANKS_H

#include "run/play/drive.h"
#include "run/witness/notary.h"
#include "run/worker/case_record.h"
#include "run/worker/worker.h"

#include <sys/resource.h>

/* What a rank does first, before it is driven: it takes its own descriptors,
 * closes the others', and, where ranks are isolated, gives up its rights
 * (rank_limits.h). */
struct rank_body {
    const struct worker_options *o;
    const struct drive *d;
    int (*drive)(void *context, struct world_rank *rank);
    struct notary *notary;      /* NULL: ranks are not isolated */
    const char *const *folders; /* folders that ranks can write to, up to NULL;
                                   in the first they leave their files */
    bool crosses;               /* what ranks record is sent to the notary */
    bool loads; /* the rank loads the engine here, after it was limited; else it
                   is in d */
};

/* A body of world_run; context: struct rank_body. A rank that could not be
 * isolated has no record (drive_is_unwritten); one whose engine cannot be
 * loaded has one that says so. */
int rank_body_run(void *context, struct world_rank *rank);

struct worker_ranks {
    const struct worker_options *o;
    struct rlimit limit[RLIM_NLIMITS]; /* the worker's limits when it started */
    bool harmed; /* a rank or the system has harmed the worker: it plays no
                    other case */
    bool isolate;
    /* Folders that ranks can write to: the case's and TMPDIR; or, where what
     * they record crosses to another process, TMPDIR alone. */
    const char *folders[3];
    const char *record; /* folder of the case's record */
    bool crosses;
    char tmp[CASE_FOLDER_BYTES + 8];
    /* The first calls that ranks of this case were refused. */
    uint32_t n_refusals;
    struct record_refusal refusal[RECORD_REFUSALS];
    struct record_weight weight[NOTARY_RANKS]; /* weights in the last world */
    /* What was carried in the last world that was recorded, by rank; if
     * `counted`. */
    struct record_carried *carried;
    bool counted;
    struct record_account account[NOTARY_RANKS];
    struct notary notary; /* pid 0: no notary has been started, or it is lost */
    const char *unknown;  /* NULL, or why the refused calls and the weights are
                             not known */
};

/* To be called before an engine is loaded. */
void worker_ranks_open(struct worker_ranks *w, const struct worker_options *o);
/* From here on ranks play another case. `crosses`: if ranks are isolated, what
 * they record crosses to the notary. */
void worker_ranks_begin(struct worker_ranks *w, const char *folder,
                        bool crosses);
/* The folder where ranks leave other files than their records: stacks, traces,
 * checkpoints. */
const char *worker_ranks_own(const struct worker_ranks *w);
/* All ranks of the case have ended: moves their stacks and traces to the
 * record. */
void worker_ranks_collect(const struct worker_ranks *w);
/* As world_run. NOMEM: ranks could not be isolated. */
int worker_ranks_run(struct worker_ranks *w, uint32_t kind,
                     const struct fsdp_mesh *mesh, struct rank_body *b,
                     struct world_result *ends, struct fsdp_error *error);

#endif
