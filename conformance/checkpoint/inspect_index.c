/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_index.c - the files that a Hugging Face index names, each once, and
 * whether every tensor is where the index has it. The index is not trusted: it
 * may name only files of its own folder, and is read only up to a bound.
 */
#include "checkpoint/inspect_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char index_name[] = "model.safetensors.index.json";

enum {
    MOST_BYTES = 1 << 28 /* of an index: some million tensors */
};

/* The path of a file in the folder; false: it is too long for a path. */
static bool path_of(const char *directory, const char *file, char *path)
{
    int n = snprintf(path, PATH_MAX, "%s/%s", directory, file);

    return n > 0 && n < PATH_MAX;
}

static int refuse_index(char *why, const char *directory, const char *what)
{
    char path[PATH_MAX];

    return inspect_refuse(
        why, FSDP_ERR_FORMAT,
        path_of(directory, index_name, path) ? path : index_name, what);
}

/* Every tensor that the index places in this file must be there. */
static int find_indexed(const char *directory, const char *file,
                        const json_t *map, const struct safetensors_file *f,
                        char *why)
{
    char what[512];
    const char *name;
    const json_t *v;

    json_object_foreach((json_t *)map, name, v)
    {
        if (strcmp(json_string_value(v), file) == 0 &&
            !safetensors_find(f, name)) {
            snprintf(what, sizeof(what),
                     "%.200s is not in %.200s, where the index has it", name,
                     file);
            return refuse_index(why, directory, what);
        }
    }
    return FSDP_OK;
}

static int add_indexed(const char *directory, const char *file,
                       const json_t *map, json_t *tensors, json_t *files,
                       char *why)
{
    char path[PATH_MAX];
    struct safetensors_file *f = NULL;
    int status;

    if (strchr(file, '/') || file[0] == '.' || file[0] == '\0') {
        snprintf(path, sizeof(path),
                 "%.200s is no plain file name: it leads out of the "
                 "folder",
                 file);
        return refuse_index(why, directory, path);
    }
    if (!path_of(directory, file, path)) {
        return refuse_index(why, directory, "a file's path is too long");
    }
    status = safetensors_open(path, &f, why, INSPECT_WHY_BYTES);
    if (status == FSDP_OK) {
        status = find_indexed(directory, file, map, f, why);
    }
    if (status == FSDP_OK &&
        (inspect_tensors(tensors, f, file) != FSDP_OK ||
         json_object_set_new(files, file, json_true()) != 0)) {
        status = inspect_refuse(why, FSDP_ERR_NOMEM, path, "out of memory");
    }
    safetensors_close(f);
    return status;
}

static int check_map(const char *directory, const json_t *map, char *why)
{
    const char *name;
    const json_t *v;

    if (!json_is_object(map)) {
        return refuse_index(why, directory, "it has no object weight_map");
    }
    json_object_foreach((json_t *)map, name, v)
    {
        if (!json_is_string(v)) {
            return refuse_index(why, directory,
                                "weight_map has something else than file "
                                "names");
        }
    }
    return FSDP_OK;
}

static int inspect_map(const char *directory, const json_t *map, json_t **out,
                       char *why)
{
    json_t *tensors = json_array();
    json_t *files = json_object();
    const char *name;
    const json_t *v;
    int status = FSDP_OK;

    json_object_foreach((json_t *)map, name, v)
    {
        const char *file = json_string_value(v);
        if (status == FSDP_OK && !json_object_get(files, file)) {
            status = add_indexed(directory, file, map, tensors, files, why);
        }
    }
    if (status == FSDP_OK) {
        /* Fails if the path is no UTF-8, as JSON must be. */
        *out = json_pack("{s:s, s:o, s:O}", "format", "safetensors index",
                         "path", json_string(directory), "tensors", tensors);
        if (!*out) {
            status = inspect_refuse(why, FSDP_ERR_FORMAT, directory,
                                    "the folder's path is not UTF-8");
        }
    }
    json_decref(tensors);
    json_decref(files);
    return status;
}

int inspect_index(const char *directory, const char *text, size_t bytes,
                  json_t **out, char why[INSPECT_WHY_BYTES])
{
    json_error_t error;
    json_t *index = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    const json_t *map = json_object_get(index, "weight_map");
    int status;

    *out = NULL;
    if (!index) {
        return refuse_index(why, directory, error.text);
    }
    status = check_map(directory, map, why);
    if (status == FSDP_OK) {
        status = inspect_map(directory, map, out, why);
    }
    json_decref(index);
    return status;
}

bool inspect_has_index(const char *directory)
{
    char path[PATH_MAX];

    return path_of(directory, index_name, path) && access(path, F_OK) == 0;
}

/* Reads a regular file of bounded size; *text is malloc'ed. */
static int read_all(const char *path, char **text, size_t *bytes, char *why)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat about;
    size_t done = 0;
    ssize_t n = 1;

    if (fd < 0 || fstat(fd, &about) != 0 || !S_ISREG(about.st_mode) ||
        about.st_size > MOST_BYTES) {
        n = fd < 0 ? errno : 0;
        if (fd >= 0) {
            (void)close(fd);
        }
        return n ? inspect_refuse(why, FSDP_ERR_IO, path, strerror((int)n))
                 : inspect_refuse(why, FSDP_ERR_FORMAT, path,
                                  "it is no regular file, or over 256 MiB");
    }
    *text = malloc((size_t)about.st_size + 1);
    while (*text && n > 0 && done < (size_t)about.st_size) {
        n = read(fd, *text + done, (size_t)about.st_size - done);
        done += n > 0 ? (size_t)n : 0;
    }
    (void)close(fd);
    *bytes = done;
    if (!*text) {
        return inspect_refuse(why, FSDP_ERR_NOMEM, path, "out of memory");
    }
    return n < 0 ? inspect_refuse(why, FSDP_ERR_IO, path, "it cannot be read")
                 : FSDP_OK;
}

int inspect_index_file(const char *directory, json_t **out, char *why)
{
    char path[PATH_MAX];
    char *text = NULL;
    size_t bytes = 0;
    int status;

    if (!path_of(directory, index_name, path)) {
        return inspect_refuse(why, FSDP_ERR_IO, directory,
                              "the path is too long");
    }
    status = read_all(path, &text, &bytes, why);
    if (status == FSDP_OK) {
        status = inspect_index(directory, text, bytes, out, why);
    }
    free(text);
    return status;
}
