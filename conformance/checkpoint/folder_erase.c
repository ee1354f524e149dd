/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder_erase.c - removes a folder and all that is in it.
 */
#include "checkpoint/folder_erase.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MAX_OPEN = 16,  /* folders at once */
    MAX_CLOSED = 64 /* folders that may not be looked into, in each other */
};

/* Gives the owner rights to a folder: an engine may have left one that its
 * owner may not look into. */
static int open_up(const char *path, const struct stat *s, int type,
                   struct FTW *ftw)
{
    (void)s;
    (void)ftw;
    if (type == FTW_D || type == FTW_DNR) {
        (void)chmod(path, 0700);
    }
    return 0;
}

static int erase(const char *path, const struct stat *s, int type,
                 struct FTW *ftw)
{
    (void)s;
    (void)type;
    (void)ftw;
    (void)remove(path);
    return 0;
}

void folder_erase(const char *path)
{
    (void)nftw(path, erase, MAX_OPEN, FTW_PHYS | FTW_DEPTH);
    /* A walk opens one level: it does not go into what it could not read. */
    for (int level = 0; level < MAX_CLOSED && rmdir(path) != 0 &&
                        (errno == ENOTEMPTY || errno == EEXIST);
         level++) {
        (void)nftw(path, open_up, MAX_OPEN, FTW_PHYS);
        (void)nftw(path, erase, MAX_OPEN, FTW_PHYS | FTW_DEPTH);
    }
}
