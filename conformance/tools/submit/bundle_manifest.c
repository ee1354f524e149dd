/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle_manifest.c - manifest.json of a bundle, which a stranger wrote: paths
 * are of a fixed form, so that none leads out of the folder, and ascend, so
 * that none is there twice.
 */
#include "tools/submit/bundle_files.h"

#include "cases/case.h"
#include "record/record_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MANIFEST_VERSION = 1
};

void bundle_files_release(struct bundle_files *f)
{
    free(f->file);
    f->file = NULL;
    f->n = 0;
}

static int by_path(const void *path, const void *file)
{
    return strcmp(path, ((const struct bundle_file *)file)->path);
}

struct bundle_file *bundle_files_find(const struct bundle_files *f,
                                      const char *path)
{
    return f->n == 0 ? NULL
                     : bsearch(path, f->file, f->n, sizeof(*f->file), by_path);
}

/* case.json, rank-R.json, rank-R.safetensors: R without a leading zero. */
static bool is_record_name(const char *name)
{
    char again[64];
    unsigned rank;

    if (strcmp(name, "case.json") == 0) {
        return true;
    }
    if (sscanf(name, "rank-%5u.", &rank) != 1) {
        return false;
    }
    snprintf(again, sizeof(again), "rank-%u.json", rank);
    if (strcmp(name, again) == 0) {
        return true;
    }
    snprintf(again, sizeof(again), "rank-%u.safetensors", rank);
    return strcmp(name, again) == 0;
}

bool bundle_path_is_known(const char *path)
{
    static const char *const top[] = {BUNDLE_MANIFEST, BUNDLE_SUBMISSION,
                                      BUNDLE_REPORT, BUNDLE_EXPLANATIONS};
    static const char prefix[] = BUNDLE_RECORDS "/";
    const char *id;
    size_t n;

    for (size_t i = 0; i < sizeof(top) / sizeof(top[0]); i++) {
        if (strcmp(path, top[i]) == 0) {
            return true;
        }
    }
    if (strncmp(path, prefix, sizeof(prefix) - 1) != 0) {
        return false;
    }
    id = path + sizeof(prefix) - 1;
    n = strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789.-");
    return n > 0 && n < CASE_ID_BYTES && id[0] != '.' && id[n] == '/' &&
           is_record_name(id + n + 1);
}

/* Of a bundle, and behind the file before it. */
static bool check_file(struct record_json *j, void *base)
{
    const struct bundle_file *const f = base;

    if (!bundle_path_is_known(f->path) ||
        strcmp(f->path, BUNDLE_MANIFEST) == 0) {
        return record_refuse(j, j->at, "no bundle has a file '%.60s'", f->path);
    }
    return j->at.index == 0 || strcmp(f[-1].path, f->path) < 0 ||
           record_refuse(j, j->at, "paths must be in ascending order");
}

#define AT(member) RECORD_AT(struct bundle_file, member)
static const struct record_row file_rows[] = {
    {"path", &record_string, AT(path)},
    {"bytes", &record_u64, AT(bytes)},
    {"sha256", &record_sha256, AT(sha256)},
};
#undef AT
static const struct record_table file_table = {
    RECORD_ROWS(file_rows), .size = sizeof(struct bundle_file), .tuple = true,
    .check = check_file};

static const struct record_row manifest_rows[] = {
    {"version", &record_version, .most = MANIFEST_VERSION},
    {"files", &record_list, RECORD_LIST(struct bundle_files, file, n),
     .least = 1, .most = BUNDLE_MAX_FILES, .table = &file_table,
     .line = "\n  "},
};
const struct record_table bundle_manifest_table = {RECORD_ROWS(manifest_rows),
                                                   .prefix = "", .line = "\n "};

int bundle_manifest_parse(const char *text, size_t bytes, const char *file,
                          struct bundle_files *out, struct fsdp_error *error)
{
    int status;

    memset(out, 0, sizeof(*out));
    status = record_parse(text, bytes, file, &bundle_manifest_table, NULL, out,
                          error);
    if (status != FSDP_OK) {
        bundle_files_release(out);
    }
    return status;
}

int bundle_manifest_write(const struct bundle_files *f, const char *folder,
                          struct fsdp_error *error)
{
    char path[RECORD_PATH_BYTES];

    FSDP_TRY(record_path(path, folder, BUNDLE_MANIFEST, error));
    return record_save(&bundle_manifest_table, f, path, error);
}
