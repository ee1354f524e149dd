/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_record.h - the folder that a case's record is in, and case.json, which
 * says of the case what no rank says of itself: who played it, and how each
 * rank ended. A worker writes it; for a worker or an adapter that died in a
 * case, who started it does.
 */
#ifndef FSDP_CTS_CASE_RECORD_H
#define FSDP_CTS_CASE_RECORD_H

#include "record/record.h"
#include "world/world.h"

/* The folder of a case's record below `records`: its id, or for the unsharded
 * run "baseline/" and its key. Truncation is impossible: ids are bounded. */
enum {
    CASE_FOLDER_BYTES = 4096
};
void case_folder(const char *records, const struct run_case *c, bool baseline,
                 char path[CASE_FOLDER_BYTES]);

/* Who played a case. Nothing of it is kept. */
struct case_player {
    const char *engine, *version;
    const char *const *claims; /* NULL-ended */
    const char *world;         /* "local" */
    const char *isolation;     /* "limits", "" or NULL: none */
    uint32_t n_refusals;
    const struct record_refusal *refusal;
    const struct record_weight *weight;   /* [ranks]; NULL: none was weighed */
    const struct record_account *account; /* [ranks]; NULL: nobody counted */
    uint32_t sample; /* ranks of which all is recorded; 0: all of them */
};

/* Writes case.json: ends[c->ranks] says how ranks ended. IO, NOMEM. */
int case_record_write(const char *folder, const struct run_case *c,
                      const struct case_player *player,
                      const struct world_result *ends,
                      struct fsdp_error *error);
/* How a process ended in the middle of a case. */
struct case_process_end {
    int wait_status; /* waitpid's */
    bool timed_out;  /* ended from here, because it made no progress */
    int signal;      /* not 0: its launcher says that it ended this rank */
    uint32_t rank;
};
/* The same for a case whose ranks could not say more than that. */
int case_record_account(const char *folder, const struct run_case *c,
                        const struct case_player *player,
                        const struct case_process_end *how,
                        struct fsdp_error *error);

#endif
