/* SPDX-License-Identifier: Apache-2.0 */
/*
 * special_file.h - whether a path that is to be written is a device, a pipe or
 * a socket. A file is made beside its name and renamed, so that it is whole or
 * not there; if a user with the right to do so did that to /dev/null or
 * /dev/stdout, these would be gone from the whole machine.
 */
#ifndef FSDP_CTS_SPECIAL_FILE_H
#define FSDP_CTS_SPECIAL_FILE_H

#include <stdbool.h>
#include <sys/stat.h>

static inline bool special_file(const char *path)
{
    struct stat s;

    return stat(path, &s) == 0 && !S_ISREG(s.st_mode) && !S_ISDIR(s.st_mode);
}

#endif
