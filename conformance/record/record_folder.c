/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_folder.c - the folder of a case: its files' names, and how it is
 * made and cleared.
 */
#include "record/record_internal.h"

#include <errno.h>
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

static int remove_file(const char *path, struct fsdp_error *error)
{
    if (unlink(path) != 0 && errno != ENOENT) {
        return record_fail(error, FSDP_ERR_IO, where, "%.150s: %s", path,
                           strerror(errno));
    }
    return FSDP_OK;
}

static int remove_rank(const char *directory, uint32_t rank,
                       struct fsdp_error *error)
{
    static const char *const suffix[] = {
        ".json", ".safetensors", ".json.partial", ".safetensors.partial"};
    char path[RECORD_PATH_BYTES];

    for (size_t i = 0; i < sizeof(suffix) / sizeof(suffix[0]); i++) {
        FSDP_TRY(record_rank_path(path, directory, rank, suffix[i], error));
        FSDP_TRY(remove_file(path, error));
    }
    return FSDP_OK;
}

int record_clear(const char *directory, struct fsdp_error *error)
{
    char path[RECORD_PATH_BYTES];

    if (mkdir(directory, 0777) == 0) {
        return FSDP_OK; /* it is new, so there is nothing in it */
    }
    FSDP_TRY(record_make_directory(directory, error));
    FSDP_TRY(record_path(path, directory, "case.json", error));
    FSDP_TRY(remove_file(path, error));
    FSDP_TRY(record_path(path, directory, "case.json.partial", error));
    FSDP_TRY(remove_file(path, error));
    for (uint32_t r = 0; r < WORLD_MAX_RANKS; r++) {
        FSDP_TRY(remove_rank(directory, r, error));
    }
    return FSDP_OK;
}
