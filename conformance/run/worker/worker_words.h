/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_words.h - what a worker says to its supervisor, on a descriptor of its
 * own (worker.h has the lines), and how it waits to be heard; and the files
 * that it is given: cases, and the scripts beside them. Internal to worker*.c.
 */
#ifndef FSDP_CTS_WORKER_WORDS_H
#define FSDP_CTS_WORKER_WORDS_H

#include "record/record.h"

#include <fsdp/engine.h>

#include <stdint.h>

/* `descriptor` is worker_options.words; `words` is where lines go from now on,
 * and no rank that is a process has it. IO. */
int worker_words_open(uint32_t descriptor, int *words);

/* All of the text, as it is. */
void worker_words_send(int words, const char *text);

/* What it is, and why, as all that the supervisor has to know: one line. An
 * error without a message is told by its status. */
void worker_words_reason(int words, const char *what, int status,
                         const struct fsdp_error *error);

/* The engine's name, version and claims. */
void worker_words_introduce(int words, const struct fsdp_engine *engine);

/* Waits until the record is out of reach of the next case. A supervisor that a
 * rank has stopped does not hear: it is continued, unless it has said that it
 * is about to be suspended. (Ranks in a namespace can reach neither the
 * supervisor nor the record.) ABORTED: the supervisor has ended. */
int worker_words_wait(uint32_t descriptor);

/* ---- The batch --------------------------------------------------------- */

/* The n cases of the file; to be freed, whatever is returned. IO. */
int worker_read_batch(const char *path, struct run_case **out, size_t *n,
                      struct fsdp_error *error);
/* The scripts beside a batch become known; an older batch has none. */
int worker_read_scripts(const char *batch, struct fsdp_error *error);

#endif
