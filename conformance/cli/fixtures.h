/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixtures.h - golden data: cases with all that a program needs to play them,
 * and the records that the reference engine and the unsharded run make of them
 * (docs/formats.md, Fixtures):
 *
 *     DIR/manifest.json          versions; every file with its SHA-256
 *     DIR/cases/<id>/            files as an adapter is given them
 *     DIR/records/<id>/          records of ref
 *     DIR/records/baseline/<key>/
 */
#ifndef FSDP_CTS_FIXTURES_H
#define FSDP_CTS_FIXTURES_H

#include "cases/case.h"
#include "models/text.h"

/* Three versions: of the requirements (the highest `since` of any of them), of
 * the way in which they are to be read, and of the data. */
#define FIXTURES_SPECIFICATION "1.1"
#define FIXTURES_CONTENT       "2026.11"
enum {
    FIXTURES_INTERPRETATION = 1
};

/* Runs the cases (manifest_golden) and writes all files but the manifest.
 * ABORTED, IO, NOMEM. */
int fixtures_write(const char *folder, const struct case_list *cases,
                   const struct text *text, uint32_t n_workers, bool quiet,
                   struct fsdp_error *error);

/* fixtures_manifest.c: writes the manifest of the files in a folder; checks
 * that the folder has the files of the manifest, no more and no less. FORMAT:
 * says which file. */
int fixtures_manifest_write(const char *folder, uint32_t n_cases,
                            struct fsdp_error *error);
int fixtures_manifest_check(const char *folder, struct fsdp_error *error);
/* Reads a manifest: its versions, which must be those above, and its number of
 * cases. FORMAT. */
int fixtures_manifest_parse(const char *text, size_t bytes, uint32_t *n_cases,
                            struct fsdp_error *error);
/* Whether two folders have the same files, by their manifests; FORMAT. */
int fixtures_manifest_same(const char *folder, const char *other,
                           struct fsdp_error *error);

#endif
