/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_record.h - the folder that a case's record is in, and case.json, which
 * says of the case what no rank says of itself: who played it, and how each
 * rank ended. A worker writes it; for a worker or an adapter that died in a
 * case, the process that started it does.
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

/*
 * ---- The folder that one worker writes to ----
 *
 * It is below the folder of records, and has its batch, temporary files of its
 * engine, and the record of the case that it plays. When a case has ended, its
 * supervisor moves the record to where it stays, and where no engine is
 * (isolate.h). What else is there goes with the worker.
 */
#define WORKER_FOLDER ".worker-"

/* IO: what cannot be done with a path, and what errno says. */
int worker_folder_fail(struct fsdp_error *error, const char *what,
                       const char *path);

/* Makes it anew, with `tmp` and `baseline` in it, as a whole path. IO. */
int worker_folder_make(const char *records, uint32_t index,
                       char path[CASE_FOLDER_BYTES], struct fsdp_error *error);

/* For the next case, whose record goes to that folder in there: whatever the
 * engine has made of it in the last one, that is not there, and `tmp` is
 * empty. */
void worker_folder_renew(const char *worker, const char *record);

/* The folder of a case's record in there, with nothing in it but files. */
void worker_folder_clean(const char *worker, const struct run_case *c,
                         bool baseline, char path[CASE_FOLDER_BYTES]);

/* Moves a case's record to the folder of records, in place of what is there. If
 * there is none: nothing. IO. `to` becomes its path. */
int worker_folder_settle(const char *worker, const char *records,
                         const struct run_case *c, bool baseline,
                         char to[CASE_FOLDER_BYTES], struct fsdp_error *error);

/* ---- How the ranks of a world ended that leaves no record of its own: one
 * that saves for the case's, or one that is weighed ---- */

/* Of n ranks that were to save: the case then fails where it loads, and why is
 * known here alone. Said on standard error, of the first that failed. */
void worker_ends_tell_unsaved(uint32_t n, const struct world_result *ends);

/* The status of one; and in `why`, unless it is NULL, its words, printable. */
void worker_ends_take(const struct world_result *end, int32_t *status,
                      char *why, size_t room);

/* Whether one of these did not return. */
bool worker_ends_died(const struct world_result *ends, uint32_t ranks);

#endif
