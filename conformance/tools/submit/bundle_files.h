/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle_files.h - which files a bundle has, with their sizes and SHA-256: no
 * other, no link, nothing outside of its folder.
 */
#ifndef FSDP_CTS_BUNDLE_FILES_H
#define FSDP_CTS_BUNDLE_FILES_H

#include "record/record_fields.h"

#include <fsdp/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUNDLE_MANIFEST     "manifest.json"
#define BUNDLE_SUBMISSION   "submission.json"
#define BUNDLE_REPORT       "report.jsonl"
#define BUNDLE_EXPLANATIONS "explanations.json"
#define BUNDLE_RECORDS      "records"

enum {
    BUNDLE_PATH_BYTES = 240,
    BUNDLE_MAX_FILES = 1 << 18,
    BUNDLE_MAX_JSON_BYTES = 1 << 23
};

struct bundle_file {
    char path[BUNDLE_PATH_BYTES];
    uint64_t bytes;
    char sha256[65];
    bool seen;
};

struct bundle_files {
    uint32_t n;
    struct bundle_file *file; /* by path, each once */
};
void bundle_files_release(struct bundle_files *f); /* any state */
struct bundle_file *bundle_files_find(const struct bundle_files *f,
                                      const char *path);

/* Whether a path is one that a bundle may have: one of the four above, or
 * records/<case id>/case.json, rank-R.json, rank-R.safetensors. */
bool bundle_path_is_known(const char *path);

/* The fields of manifest.json. FORMAT: the sentence names the field. */
extern const struct record_table bundle_manifest_table;
int bundle_manifest_parse(const char *text, size_t bytes, const char *file,
                          struct bundle_files *out, struct fsdp_error *error);
int bundle_manifest_write(const struct bundle_files *f, const char *folder,
                          struct fsdp_error *error);

/* Lists the files in the folder, except the manifest. FORMAT, before any file
 * is read: a link, or anything else that is no file and no folder; a path that
 * no bundle has; a file that is larger than it may be, or not as `listed` says
 * (NULL: nothing is listed). */
int bundle_files_list(const char *folder, const struct bundle_files *listed,
                      struct bundle_files *out, struct fsdp_error *error);

/* Reads the whole of a regular file of at most `most` bytes, with a 0 behind
 * it; the caller frees it. Also says how many bytes these are. FORMAT: the file
 * is larger, or no such file. */
int bundle_read(const char *folder, const char *name, size_t most, char **out,
                size_t *bytes, struct fsdp_error *error);

/* Reads the manifest and compares: FORMAT says which file is missing, or is
 * there and not listed, or differs. */
int bundle_files_check(const char *folder, struct bundle_files *out,
                       struct fsdp_error *error);

#endif
