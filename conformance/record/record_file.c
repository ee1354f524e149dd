/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_file.c - reads whole files that may come from a stranger: regular
 * ones of a bounded size, and nothing that hangs until somebody writes.
 */
#include "record/record_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *record_path_tail(const char *path)
{
    const size_t length = strlen(path);

    return length > 80 ? path + length - 80 : path;
}

/* 0, or the errno of what failed. */
static int read_all(int fd, char *text, size_t bytes, size_t *got)
{
    *got = 0;
    while (*got < bytes) {
        const ssize_t n = read(fd, text + *got, bytes - *got);

        if (n < 0 && errno != EINTR) {
            return errno;
        }
        if (n == 0) {
            break;
        }
        *got += n > 0 ? (size_t)n : 0;
    }
    text[*got] = '\0';
    return 0;
}

static int read_open(int fd, const char *path, const struct record_source *from,
                     char **out, size_t *bytes, struct fsdp_error *error)
{
    struct stat s;
    int why;

    if (fstat(fd, &s) != 0) {
        return record_fail(error, FSDP_ERR_IO, from->where, "%s: %s",
                           record_path_tail(path), strerror(errno));
    }
    if (!S_ISREG(s.st_mode) || s.st_size < 0 ||
        (uint64_t)s.st_size > from->most) {
        return record_fail(error, FSDP_ERR_FORMAT, from->where,
                           "%s: a regular file of at most %zu bytes was "
                           "expected",
                           record_path_tail(path), from->most);
    }
    *out = malloc((size_t)s.st_size + 1);
    if (!*out) {
        return record_fail(error, FSDP_ERR_NOMEM, from->where,
                           "%s: out of memory", record_path_tail(path));
    }
    why = read_all(fd, *out, (size_t)s.st_size, bytes);
    if (why != 0) {
        free(*out);
        *out = NULL;
        return record_fail(error, FSDP_ERR_IO, from->where, "%s: %s",
                           record_path_tail(path), strerror(why));
    }
    return FSDP_OK;
}

int record_read_file(const char *path, const struct record_source *from,
                     char **out, size_t *bytes, struct fsdp_error *error)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK |
                                  (from->no_link ? O_NOFOLLOW : 0));
    int status;

    *out = NULL;
    *bytes = 0;
    if (fd < 0) {
        return from->may_lack && errno == ENOENT
                   ? FSDP_OK
                   : record_fail(error, FSDP_ERR_IO, from->where, "%s: %s",
                                 record_path_tail(path), strerror(errno));
    }
    status = read_open(fd, path, from, out, bytes, error);
    (void)close(fd);
    return status;
}
