/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect.h - describes a file or a folder of tensors as JSON.
 */
#ifndef FSDP_CTS_INSPECT_H
#define FSDP_CTS_INSPECT_H

#include "checkpoint/checkpoint.h"

#include <jansson.h>

enum {
    INSPECT_WHY_BYTES = 1400
};

/* *out is the caller's. FORMAT or IO, with the file in `why`. */
int inspect_file(const char *path, json_t **out, char why[INSPECT_WHY_BYTES]);
int inspect_directory(const char *path, json_t **out,
                      char why[INSPECT_WHY_BYTES]);
/* Describes what an index says: `text` is a Hugging Face index of that folder,
 * whose files are read. */
int inspect_index(const char *directory, const char *text, size_t bytes,
                  json_t **out, char why[INSPECT_WHY_BYTES]);

#endif
