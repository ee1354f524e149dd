/* SPDX-License-Identifier: Apache-2.0 */
/* inspect_internal.h - what inspect.c and inspect_index.c share. */
#ifndef FSDP_CTS_INSPECT_INTERNAL_H
#define FSDP_CTS_INSPECT_INTERNAL_H

#include "checkpoint/inspect.h"
#include "checkpoint/safetensors.h"

/* Fills `why` and returns status. */
int inspect_refuse(char *why, int status, const char *path, const char *what);

/* Appends the tensors of a file; `file` names it, or NULL. NOMEM. */
int inspect_tensors(json_t *tensors, const struct safetensors_file *f,
                    const char *file);

/* Whether there is an index in the folder; and reads it, and the files that it
 * names. */
bool inspect_has_index(const char *directory);
int inspect_index_file(const char *directory, json_t **out, char *why);

#endif
