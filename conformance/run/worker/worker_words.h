/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_words.h - how a worker speaks to its supervisor, on a descriptor of
 * its own (worker.h has the lines), and waits to be heard; and how it reads the
 * files that it is given: cases, and the scripts beside them. Internal to
 * worker*.c.
 */
#ifndef FSDP_CTS_WORKER_WORDS_H
#define FSDP_CTS_WORKER_WORDS_H

#include "record/record.h"

#include <fsdp/engine.h>

#include <stdint.h>

/* `descriptor` is worker_options.words; `words` is the descriptor to which
 * lines go from now on, and which no rank that is a process has. IO. */
int worker_words_open(uint32_t descriptor, int *words);

/* Sends all of the text, as it is. */
void worker_words_send(int words, const char *text);

/* Sends one line that says what happened and why, from which the supervisor
 * knows all that it has to. An error without a message is told by its
 * status. */
void worker_words_reason(int words, const char *what, int status,
                         const struct fsdp_error *error);

/* Sends the engine's name, version and claims. */
void worker_words_introduce(int words, const struct fsdp_engine *engine);

/* Waits until the record is out of reach of the next case. A supervisor that a
 * rank has stopped does not hear: it is continued, unless it has said that it
 * is about to be suspended. (Ranks in a namespace can reach neither the
 * supervisor nor the record.) ABORTED: the supervisor has ended. */
int worker_words_wait(uint32_t descriptor);

/* ---- The batch --------------------------------------------------------- */

/* Reads the n cases of the file; *out is to be freed, whatever is returned.
 * IO. */
int worker_read_batch(const char *path, struct run_case **out, size_t *n,
                      struct fsdp_error *error);
/* Reads the scripts beside a batch, so that its cases find them; an older batch
 * has none. */
int worker_read_scripts(const char *batch, struct fsdp_error *error);

#endif
