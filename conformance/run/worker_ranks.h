/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_ranks.h - a worker's worlds, one after the other: ranks are started,
 * isolated where that is wanted, and what they leave behind is ended.
 */
#ifndef FSDP_CTS_WORKER_RANKS_H
#define FSDP_CTS_WORKER_RANKS_H

#include "run/case_record.h"
#include "run/rank_body.h"

#include <sys/resource.h>

struct worker_ranks {
    const struct worker_options *o;
    struct rlimit limit[RLIM_NLIMITS]; /* of the worker, when it started */
    bool harmed; /* by a rank or the system: it plays no other case */
    bool isolate;
    /* That ranks can write to: the case's, and TMPDIR. */
    const char *folders[3];
    char tmp[CASE_FOLDER_BYTES + 8];
    /* What ranks of this case were refused, the first ones. */
    uint32_t n_refusals;
    struct record_refusal refusal[RECORD_REFUSALS];
    struct record_weight weight[NOTARY_RANKS]; /* in the last world */
    const char *unknown; /* NULL, or why it is not known what these are */
};

/* Before an engine is loaded. */
void worker_ranks_open(struct worker_ranks *w, const struct worker_options *o);
/* From here on ranks are those of another case. */
void worker_ranks_begin(struct worker_ranks *w, const char *folder);
/* As world_run. NOMEM: ranks could not be isolated. */
int worker_ranks_run(struct worker_ranks *w, uint32_t kind,
                     const struct fsdp_mesh *mesh, struct rank_body *b,
                     struct world_result *ends, struct fsdp_error *error);

#endif
