/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_folder.c - the folder of a case: its files' names, and how it is
 * made and cleared.
 */
#include "record/record_internal.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char where[] = RECORD_WRITE_WHERE;

int record_make_directory(const char *directory, struct fsdp_error *error)
{
    if (mkdir(directory, 0777) != 0 && errno != EEXIST) {
        return record_fail(error, FSDP_ERR_IO, where, "%.150s: %s", directory,
                           strerror(errno));
    }
    return FSDP_OK;
}

int record_path(char path[RECORD_PATH_BYTES], const char *directory,
                const char *name, struct fsdp_error *error)
{
    const int n = snprintf(path, RECORD_PATH_BYTES, "%s/%s", directory, name);

    if (n < 0 || n >= RECORD_PATH_BYTES) {
        return record_fail(error, FSDP_ERR_INVALID, where,
                           "the path of the directory is too long: %.80s...",
                           directory);
    }
    return FSDP_OK;
}

int record_rank_path(char path[RECORD_PATH_BYTES], const char *directory,
                     uint32_t rank, const char *suffix,
                     struct fsdp_error *error)
{
    char name[48];

    (void)snprintf(name, sizeof(name), "rank-%u%s", rank, suffix);
    return record_path(path, directory, name, error);
}

/* "rank-7.json" and its like, of whatever world the record before was. */
static bool is_of_rank(const char *name)
{
    static const char *const suffix[] = {".json", ".safetensors",
                                         ".json.partial",
                                         ".safetensors.partial", ".stack"};
    const char *rest = name + strlen("rank-");
    size_t digits;

    if (strncmp(name, "rank-", strlen("rank-")) != 0) {
        return false;
    }
    digits = strspn(rest, "0123456789");
    for (size_t i = 0; i < sizeof(suffix) / sizeof(suffix[0]); i++) {
        if (digits > 0 && strcmp(rest + digits, suffix[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_of_record(const char *name)
{
    return strcmp(name, "case.json") == 0 ||
           strcmp(name, "case.json.partial") == 0 ||
           strcmp(name, RECORD_TOLD) == 0 || is_of_rank(name);
}

static int remove_record(DIR *of, const char *directory,
                         struct fsdp_error *error)
{
    char path[RECORD_PATH_BYTES];
    const struct dirent *entry;

    while ((entry = readdir(of))) {
        if (!is_of_record(entry->d_name)) {
            continue;
        }
        FSDP_TRY(record_path(path, directory, entry->d_name, error));
        if (unlink(path) != 0 && errno != ENOENT) {
            return record_fail(error, FSDP_ERR_IO, where, "%.150s: %s", path,
                               strerror(errno));
        }
    }
    return FSDP_OK;
}

int record_clear(const char *directory, struct fsdp_error *error)
{
    DIR *of;
    int status;

    if (mkdir(directory, 0777) == 0) {
        return FSDP_OK; /* it is new, so there is nothing in it */
    }
    FSDP_TRY(record_make_directory(directory, error));
    of = opendir(directory);
    if (!of) {
        return record_fail(error, FSDP_ERR_IO, where, "%.150s: %s", directory,
                           strerror(errno));
    }
    status = remove_record(of, directory, error);
    (void)closedir(of);
    return status;
}
