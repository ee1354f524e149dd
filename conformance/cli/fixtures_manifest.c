/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixtures_manifest.c - the list of a folder's files, with their sizes and
 * SHA-256, and three versions: of the requirements, of the way in which they
 * are to be read, and of the data.
 */
#include "cli/fixtures.h"

#include "record/record_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char manifest_name[] = "manifest.json";

/* The paths below the folder. nftw has no context: one walk at a time. */
static struct {
    char **path;
    size_t n, root;
    bool failed;
} found;

static int note_file(const char *path, const struct stat *s, int type,
                     struct FTW *ftw)
{
    char **more;

    (void)s;
    (void)ftw;
    if (type != FTW_F || strcmp(path + found.root, manifest_name) == 0) {
        return 0;
    }
    more = realloc(found.path, (found.n + 1) * sizeof(*more));
    if (!more) {
        found.failed = true;
        return 1;
    }
    found.path = more;
    more[found.n] = strdup(path + found.root);
    found.failed = !more[found.n];
    found.n++;
    return found.failed ? 1 : 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int hash(const char *path, char hex[65], uint64_t *bytes)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const int status = fd < 0 ? FSDP_ERR_IO : record_hash_file(fd, hex, bytes);

    if (fd >= 0) {
        (void)close(fd);
    }
    return status;
}

static int add_file(struct record_text *t, const char *folder, const char *name,
                    bool first, struct fsdp_error *error)
{
    char path[RECORD_PATH_BYTES];
    char hex[65] = "";
    uint64_t bytes;

    FSDP_TRY(record_path(path, folder, name, error));
    if (hash(path, hex, &bytes) != FSDP_OK) {
        return record_fail(error, FSDP_ERR_IO, "fixtures", "%.150s: %s", path,
                           strerror(errno));
    }
    record_text_add(t, "%s\n  [", first ? "" : ",");
    record_text_string(t, name, strlen(name));
    record_text_add(t, ", %llu, \"%s\"]", (unsigned long long)bytes, hex);
    return FSDP_OK;
}

/* Makes the text of the manifest for the files that are there now. */
static int make(const char *folder, uint32_t n_cases, struct record_text *t,
                struct fsdp_error *error)
{
    int status = FSDP_OK;

    memset(&found, 0, sizeof(found));
    found.root = strlen(folder) + 1;
    if (nftw(folder, note_file, 16, FTW_PHYS) != 0) {
        status = record_fail(error, found.failed ? FSDP_ERR_NOMEM : FSDP_ERR_IO,
                             "fixtures", "%.150s: %s", folder, strerror(errno));
    }
    if (status == FSDP_OK && found.n > 0) {
        qsort(found.path, found.n, sizeof(*found.path), by_name);
    }
    record_text_add(t,
                    "{\n \"specification\": \"%s\",\n"
                    " \"interpretation\": %d,\n \"content\": \"%s\",\n"
                    " \"cases\": %u,\n \"files\": [",
                    FIXTURES_SPECIFICATION, FIXTURES_INTERPRETATION,
                    FIXTURES_CONTENT, n_cases);
    for (size_t i = 0; i < found.n && status == FSDP_OK; i++) {
        status = add_file(t, folder, found.path[i], i == 0, error);
    }
    record_text_add(t, "]\n}\n");
    for (size_t i = 0; i < found.n; i++) {
        free(found.path[i]);
    }
    free(found.path);
    return status == FSDP_OK && t->failed ? FSDP_ERR_NOMEM : status;
}

int fixtures_manifest_write(const char *folder, uint32_t n_cases,
                            struct fsdp_error *error)
{
    char path[RECORD_PATH_BYTES];
    struct record_text t = {0};
    int status = make(folder, n_cases, &t, error);

    if (status == FSDP_OK) {
        status = record_path(path, folder, manifest_name, error);
    }
    if (status == FSDP_OK) {
        return record_text_save(&t, path, error);
    }
    free(t.text);
    return status;
}

/* The text of a manifest; to be freed. */
static char *load_manifest(const char *folder, struct fsdp_error *error)
{
    static const struct record_source from = {.where = "fixtures",
                                              .most = RECORD_MAX_JSON_BYTES};
    char path[RECORD_PATH_BYTES];
    size_t bytes;
    char *text = NULL;

    if (record_path(path, folder, manifest_name, error) == FSDP_OK) {
        (void)record_read_file(path, &from, &text, &bytes, error);
    }
    return text;
}

/* Says the first line in which the texts differ, which mostly has a file's
 * name. */
static int compare_lines(const char *is, const char *wanted, const char *what,
                         struct fsdp_error *error)
{
    size_t line = 0;

    for (size_t i = 0; is[i] != '\0' || wanted[i] != '\0'; i++) {
        if (is[i] != wanted[i]) {
            return record_fail(error, FSDP_ERR_FORMAT, "fixtures",
                               "%s: here %.70s, there %.70s", what,
                               is[line] != '\0' ? is + line : "nothing",
                               wanted[line] != '\0' ? wanted + line
                                                    : "nothing");
        }
        line = is[i] == '\n' ? i + 1 : line;
    }
    return FSDP_OK;
}

struct versions {
    char specification[16], content[16];
    uint32_t interpretation, n_cases;
};

static bool check_versions(struct record_json *j, void *base)
{
    const struct versions *const v = base;

    if (v->interpretation != FIXTURES_INTERPRETATION) {
        return record_refuse(j, record_field("interpretation"),
                             "%u; this program knows %d", v->interpretation,
                             FIXTURES_INTERPRETATION);
    }
    if (strcmp(v->specification, FIXTURES_SPECIFICATION) != 0) {
        return record_refuse(j, record_field("specification"),
                             "%s; this program knows %s", v->specification,
                             FIXTURES_SPECIFICATION);
    }
    return strcmp(v->content, FIXTURES_CONTENT) == 0 ||
           record_refuse(j, record_field("content"),
                         "%s; this program knows %s", v->content,
                         FIXTURES_CONTENT);
}

/* The list of files is compared as text. */
#define AT(member) RECORD_AT(struct versions, member)
static const struct record_row rows[] = {
    {"specification", &record_string, AT(specification)},
    {"interpretation", &record_u32, AT(interpretation)},
    {"content", &record_string, AT(content)},
    {"cases", &record_u32, AT(n_cases)},
    {"files", &record_ignored, .offset = 0},
};
#undef AT
static const struct record_table manifest_table = {
    RECORD_ROWS(rows), .prefix = "", .check = check_versions};

int fixtures_manifest_parse(const char *text, size_t bytes, uint32_t *n_cases,
                            struct fsdp_error *error)
{
    struct versions v = {.n_cases = 0};
    const int status = record_parse(text, bytes, manifest_name, &manifest_table,
                                    NULL, &v, error);

    *n_cases = v.n_cases;
    return status;
}

int fixtures_manifest_check(const char *folder, struct fsdp_error *error)
{
    char *wanted = load_manifest(folder, error);
    struct record_text is = {0};
    uint32_t n_cases = 0;
    int status = wanted ? FSDP_OK : FSDP_ERR_IO;

    if (status == FSDP_OK) {
        status =
            fixtures_manifest_parse(wanted, strlen(wanted), &n_cases, error);
    }
    if (status == FSDP_OK) {
        status = make(folder, n_cases, &is, error);
    }
    if (status == FSDP_OK) {
        status = compare_lines(is.text, wanted,
                               "the files are not the manifest's", error);
    }
    free(is.text);
    free(wanted);
    return status;
}

int fixtures_manifest_same(const char *folder, const char *other,
                           struct fsdp_error *error)
{
    char *a = load_manifest(folder, error);
    char *b = load_manifest(other, error);
    int status = a && b ? FSDP_OK : FSDP_ERR_IO;

    if (status == FSDP_OK) {
        status = compare_lines(a, b, "the folders differ", error);
    }
    free(a);
    free(b);
    return status;
}
