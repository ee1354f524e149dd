/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle_manifest.c - manifest.json of a bundle, which a stranger wrote: paths
 * are of a fixed form, so that none leads out of the folder, and ascend, so
 * that none is there twice.
 */
#include "submit/bundle_files.h"

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
    (void)snprintf(again, sizeof(again), "rank-%u.json", rank);
    if (strcmp(name, again) == 0) {
        return true;
    }
    (void)snprintf(again, sizeof(again), "rank-%u.safetensors", rank);
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

static bool parse_file(struct record_json *j, const json_t *v, size_t i,
                       struct bundle_file *out)
{
    const struct record_field at = record_element("files", i);

    if (!record_json_array(j, at, v, 3, 3) ||
        !record_json_text(j, at, json_array_get(v, 0), out->path,
                          sizeof(out->path)) ||
        !record_json_u64(j, at, json_array_get(v, 1), &out->bytes) ||
        !record_json_text(j, at, json_array_get(v, 2), out->sha256,
                          sizeof(out->sha256))) {
        return false;
    }
    if (!bundle_path_is_known(out->path) ||
        strcmp(out->path, BUNDLE_MANIFEST) == 0) {
        return record_refuse(j, at, "no bundle has a file '%.60s'", out->path);
    }
    if (strlen(out->sha256) != 64 ||
        strspn(out->sha256, "0123456789abcdef") != 64) {
        return record_refuse(j, at, "64 digits of 0-9a-f were expected");
    }
    if (i > 0 && strcmp(out[-1].path, out->path) >= 0) {
        return record_refuse(j, at, "paths must be in ascending order");
    }
    return true;
}

static bool parse(struct record_json *j, json_t *root, struct bundle_files *out)
{
    static const char *const key[] = {"version", "files"};
    json_t *v[2];

    if (!record_json_version(j, root, MANIFEST_VERSION) ||
        !record_json_object(j, record_field("the file"), root, key, 2, v) ||
        !record_json_array(j, record_field("files"), v[1], 1,
                           BUNDLE_MAX_FILES)) {
        return false;
    }
    out->file = record_json_room(j, json_array_size(v[1]), sizeof(*out->file));
    if (out->file == NULL) {
        return false;
    }
    for (size_t i = 0; i < json_array_size(v[1]); i++) {
        if (!parse_file(j, json_array_get(v[1], i), i, &out->file[i])) {
            return false;
        }
        out->n++;
    }
    return true;
}

int bundle_manifest_parse(const char *text, size_t bytes, const char *file,
                          struct bundle_files *out, struct fsdp_error *error)
{
    struct record_json j = {.file = file, .error = error};
    json_t *root = record_json_load(&j, text, bytes);

    memset(out, 0, sizeof(*out));
    if (root != NULL) {
        (void)parse(&j, root, out);
        json_decref(root);
    }
    if (j.status != FSDP_OK) {
        bundle_files_release(out);
    }
    return j.status;
}

int bundle_manifest_write(const struct bundle_files *f, const char *folder,
                          struct fsdp_error *error)
{
    static const struct record_row number = {.type = &record_u64};
    char path[RECORD_PATH_BYTES];
    struct record_text t = {0};

    FSDP_TRY(record_path(path, folder, BUNDLE_MANIFEST, error));
    record_text_add(&t, "{\n \"version\": %d,\n \"files\": [",
                    MANIFEST_VERSION);
    for (uint32_t i = 0; i < f->n; i++) {
        record_text_add(&t, "%s\n  [", i > 0 ? "," : "");
        record_text_string(&t, f->file[i].path, sizeof(f->file[i].path));
        record_text_add(&t, ", ");
        record_u64.write(&t, &number, &f->file[i].bytes);
        record_text_add(&t, ", \"%s\"]", f->file[i].sha256);
    }
    record_text_add(&t, "]\n}\n");
    return record_text_save(&t, path, error);
}
