/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_folder.h - the folder that one worker writes to, below the folder of
 * records: its batch, temporary files of its engine, and the record of the case
 * that it plays. When a case has ended, its supervisor moves the record to
 * where it stays, and where no engine is (isolate.h). What else is there goes
 * with the worker.
 */
#ifndef FSDP_CTS_WORKER_FOLDER_H
#define FSDP_CTS_WORKER_FOLDER_H

#include "run/worker/case_record.h"

#define WORKER_FOLDER ".worker-"

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

#endif
