/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle_make.c - writes a bundle: its manifest comes last, so that one that
 * was begun and not finished is none.
 */
#include "record/record_internal.h"
#include "tools/submit/bundle.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int bundle_read_given(const char *path, char **out, size_t *bytes,
                      struct fsdp_error *error)
{
    return bundle_read(path[0] == '/' ? "" : ".", path + (path[0] == '/'),
                       BUNDLE_MAX_JSON_BYTES, out, bytes, error);
}

static int write_file(const char *folder, const char *name, const char *text,
                      size_t bytes, struct fsdp_error *error)
{
    char path[RECORD_PATH_BYTES];
    FILE *f;
    bool good;

    FSDP_TRY(record_path(path, folder, name, error));
    f = fopen(path, "wbxe");
    good = f && fwrite(text, 1, bytes, f) == bytes;
    if (f && fclose(f) != 0) {
        good = false;
    }
    return good ? FSDP_OK
                : record_fail(error, FSDP_ERR_IO, "submit", "%.150s: %s", path,
                              strerror(errno));
}

static int copy_file(const char *from, const char *to, const char *name,
                     struct fsdp_error *error)
{
    size_t bytes = 0;
    char *text;
    int status;

    FSDP_TRY(bundle_read(from, name, SIZE_MAX, &text, &bytes, error));
    status = write_file(to, name, text, bytes, error);
    free(text);
    return status;
}

/* The files of a case that a bundle has; others stay behind. */
static int copy_case(const char *records, const char *bundle, const char *id,
                     struct fsdp_error *error)
{
    char from[RECORD_PATH_BYTES];
    char to[RECORD_PATH_BYTES];
    char path[RECORD_PATH_BYTES];
    const struct dirent *entry;
    int status = FSDP_OK;
    DIR *d;

    FSDP_TRY(record_path(from, records, id, error));
    FSDP_TRY(record_path(path, bundle, BUNDLE_RECORDS, error));
    FSDP_TRY(record_path(to, path, id, error));
    FSDP_TRY(record_make_directory(to, error));
    d = opendir(from);
    if (!d) {
        return record_fail(error, FSDP_ERR_IO, "submit", "%.150s: %s", from,
                           strerror(errno));
    }
    while (status == FSDP_OK && (entry = readdir(d))) {
        snprintf(path, sizeof(path), BUNDLE_RECORDS "/%s/%.200s", id,
                 entry->d_name);
        if (bundle_path_is_known(path)) {
            status = copy_file(from, to, entry->d_name, error);
        }
    }
    (void)closedir(d);
    return status;
}

static int copy_records(const char *records, const char *bundle,
                        const struct judge_result *r, struct fsdp_error *error)
{
    char path[RECORD_PATH_BYTES];

    FSDP_TRY(record_path(path, bundle, BUNDLE_RECORDS, error));
    FSDP_TRY(record_make_directory(path, error));
    for (uint32_t i = 0; i < r->n_cases; i++) {
        if (r->cases[i].outcome != JUDGE_NOT_CLAIMED) {
            FSDP_TRY(copy_case(records, bundle, r->cases[i].id, error));
        }
    }
    return FSDP_OK;
}

/* Explanations must explain what was found, here as anywhere. */
static int check_explanations(const struct arguments *a,
                              const struct judge_result *r,
                              struct fsdp_error *error)
{
    struct explanations x = {0};
    size_t bytes = 0;
    char *text;
    int status;

    if (!a->explanations) {
        return FSDP_OK;
    }
    FSDP_TRY(bundle_read_given(a->explanations, &text, &bytes, error));
    status = explanations_parse(text, bytes, a->explanations, &x, error);
    if (status == FSDP_OK) {
        status = explanations_match(&x, r, error);
    }
    explanations_release(&x);
    free(text);
    return status;
}

static int put_explanations(const struct arguments *a, struct fsdp_error *error)
{
    size_t bytes = 0;
    char *text;
    int status;

    if (!a->explanations) {
        return FSDP_OK;
    }
    FSDP_TRY(bundle_read_given(a->explanations, &text, &bytes, error));
    status = write_file(a->bundle, BUNDLE_EXPLANATIONS, text, bytes, error);
    free(text);
    return status;
}

/* Everything but the manifest, then that. */
int bundle_make(const struct arguments *a, const char *records,
                const struct evaluate_result *judged,
                const struct submission *s, struct fsdp_error *error)
{
    struct bundle_files files;
    char path[RECORD_PATH_BYTES];
    int status;

    FSDP_TRY(check_explanations(a, &judged->r, error));
    if (mkdir(a->bundle, 0777) != 0) {
        return record_fail(error, FSDP_ERR_IO, "submit", "%.150s: %s",
                           a->bundle, strerror(errno));
    }
    FSDP_TRY(put_explanations(a, error));
    if (s->has_records) {
        FSDP_TRY(copy_records(records, a->bundle, &judged->r, error));
    }
    FSDP_TRY(record_path(path, a->bundle, BUNDLE_REPORT, error));
    FSDP_TRY(report_jsonl(&judged->r, &judged->meta, path, error));
    FSDP_TRY(submission_write(s, a->bundle, error));
    FSDP_TRY(bundle_files_list(a->bundle, NULL, &files, error));
    status = bundle_manifest_write(&files, a->bundle, error);
    bundle_files_release(&files);
    return status;
}
