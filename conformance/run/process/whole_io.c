/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whole_io.c - write and read, repeated until all bytes are done.
 */
#include "run/process/whole_io.h"

#include <errno.h>
#include <unistd.h>

bool whole_write(int fd, const void *from, size_t n)
{
    const char *at = from;

    while (n > 0) {
        const ssize_t written = write(fd, at, n);

        if (written < 0 && errno != EINTR) {
            return false;
        }
        at += written > 0 ? written : 0;
        n -= written > 0 ? (size_t)written : 0;
    }
    return true;
}

bool whole_read(int fd, void *to, size_t n)
{
    char *at = to;
    ssize_t got = 1;

    while (n > 0 && got != 0) {
        got = read(fd, at, n);
        if (got < 0 && errno != EINTR) {
            return false;
        }
        at += got > 0 ? got : 0;
        n -= got > 0 ? (size_t)got : 0;
    }
    return n == 0;
}
