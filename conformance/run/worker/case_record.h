/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_record.h - the folder that a case's record is in, and case.json, which
 * says what no rank says of itself: the engine that played the case, and how
 * each rank ended. A worker writes it; if a worker or an adapter died in a
 * case, the process that started it does.
 */
#ifndef FSDP_CTS_CASE_RECORD_H
#define FSDP_CTS_CASE_RECORD_H

#include "record/record.h"
#include "world/world.h"

/* The folder of a case's record below `records`: its id, or, for the unsharded
 * run, "baseline/" and its key. Ids are bounded, so that no path is cut. */
enum {
    CASE_FOLDER_BYTES = 4096
};
void case_folder(const char *records, const struct run_case *c, bool baseline,
                 char path[CASE_FOLDER_BYTES]);

/* What played a case. Only used during the call. */
struct case_player {
    const char *engine, *version;
    const char *const *claims; /* NULL-ended */
    const char *world;         /* "local" */
    const char *isolation;     /* "limits", "" or NULL: none */
    uint32_t n_refusals;
    const struct record_refusal *refusal;
    const struct record_weight *weight;   /* [ranks]; NULL: none was weighed */
    const struct record_account *account; /* [ranks]; NULL: nothing was
                                             counted */
    uint32_t sample; /* so many ranks record everything; 0: all ranks do */
};

/* Writes case.json: ends[c->ranks] says how ranks ended. IO, NOMEM. */
int case_record_write(const char *folder, const struct run_case *c,
                      const struct case_player *player,
                      const struct world_result *ends,
                      struct fsdp_error *error);
/* How a process ended in the middle of a case. */
struct case_process_end {
    int wait_status; /* waitpid's */
    bool timed_out;  /* ended by this process, because it made no progress */
    int signal;      /* not 0: its launcher says that this signal ended the rank
                        below */
    uint32_t rank;
};
/* The same for a case of which only this is known. */
int case_record_account(const char *folder, const struct run_case *c,
                        const struct case_player *player,
                        const struct case_process_end *how,
                        struct fsdp_error *error);

/*
 * ---- The folder that one worker writes to ----
 *
 * It is below the folder of records, and holds the worker's batch, the
 * temporary files of its engine, and the record of the case that it plays. When
 * a case has ended, the supervisor moves the record to where it stays, and
 * where no engine can reach it (isolate.h). The rest is removed with the
 * worker.
 */
#define WORKER_FOLDER ".worker-"

/* Returns IO, and says what cannot be done with the path, and errno. */
int worker_folder_fail(struct fsdp_error *error, const char *what,
                       const char *path);

/* Makes the folder anew, with `tmp` and `baseline` in it; `path` is absolute.
 * IO. */
int worker_folder_make(const char *records, uint32_t index,
                       char path[CASE_FOLDER_BYTES], struct fsdp_error *error);

/* Prepares the folder for the next case, whose record goes to `record` below
 * it. Whatever the last case's engine has left there is removed, and `tmp` is
 * empty. */
void worker_folder_renew(const char *worker, const char *record);

/* Finds the folder of a case's record in the worker's folder, and removes all
 * from it but files. */
void worker_folder_clean(const char *worker, const struct run_case *c,
                         bool baseline, char path[CASE_FOLDER_BYTES]);

/* Moves a case's record to the folder of records, in place of what is there;
 * does nothing if there is none. `to` becomes its path. IO. */
int worker_folder_settle(const char *worker, const char *records,
                         const struct run_case *c, bool baseline,
                         char to[CASE_FOLDER_BYTES], struct fsdp_error *error);

/* ---- The ends of ranks in worlds that leave no record of their own: one that
 * saves for the case's world, or one that is weighed ---- */

/* Says on standard error why the first of n ranks failed that were to save. The
 * case then fails where it loads, and only here is it known why. */
void worker_ends_tell_unsaved(uint32_t n, const struct world_result *ends);

/* The status of one end; and in `why`, unless it is NULL, its message, made
 * printable. */
void worker_ends_take(const struct world_result *end, int32_t *status,
                      char *why, size_t room);

/* Whether one of these ranks did not return. */
bool worker_ends_died(const struct world_result *ends, uint32_t ranks);

#endif
