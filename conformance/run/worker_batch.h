/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_batch.h - the file of cases that a supervisor gives to a worker, and
 * that of the scripts beside it. Internal to worker*.c.
 */
#ifndef FSDP_CTS_WORKER_BATCH_H
#define FSDP_CTS_WORKER_BATCH_H

#include "record/record.h"

/* The n cases of the file; to be freed, whatever is returned. IO. */
int worker_read_batch(const char *path, struct run_case **out, size_t *n,
                      struct fsdp_error *error);
/* The scripts beside a batch become known; an older batch has none. */
int worker_read_scripts(const char *batch, struct fsdp_error *error);

#endif
