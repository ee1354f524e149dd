/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records_memory.c - records that nobody keeps go to a file system in memory,
 * if there is one with room: a run makes some ten thousand small files, and a
 * disk's file system takes longer to make and remove them than ranks to fill
 * them.
 */
#include "cli/records_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    /* A rank's in the mean, twice: 545 cases of one engine are 580 MB. */
    BYTES_A_RANK = 1 << 19
};

/* What a file of one line has, or a line of it that begins with `name`; most
 * there is, if there is no such file or line, or no number in it. */
static uint64_t limit_in(const char *path, const char *name)
{
    FILE *f = fopen(path, "re");
    uint64_t found = UINT64_MAX;
    char line[128];

    while (f && found == UINT64_MAX && fgets(line, sizeof(line), f)) {
        const size_t n = strlen(name);
        char *end = NULL;
        const uint64_t value =
            strncmp(line, name, n) == 0 ? strtoull(line + n, &end, 10) : 0;

        if (end && end != line + n) {
            found = value;
        }
    }
    if (f) {
        fclose(f);
    }
    return found;
}

/* Of the machine, of the container, of the file system. */
static uint64_t room(void)
{
    const uint64_t kilobytes = limit_in("/proc/meminfo", "MemAvailable:");
    const uint64_t group = limit_in("/sys/fs/cgroup/memory.max", "");
    uint64_t least = kilobytes < UINT64_MAX / 1024 ? kilobytes * 1024 : 0;
    struct statvfs s;

    if (statvfs(RECORDS_MEMORY, &s) != 0 ||
        access(RECORDS_MEMORY, W_OK | X_OK) != 0) {
        return 0;
    }
    least = group < least ? group : least;
    return s.f_bavail * s.f_frsize < least ? s.f_bavail * s.f_frsize : least;
}

bool records_memory_has_room(const struct case_list *cases, uint32_t n_engines)
{
    uint64_t ranks = 0;

    for (uint32_t i = 0; i < cases->n; i++) {
        ranks += cases->c[i].ranks;
    }
    return ranks * n_engines * BYTES_A_RANK <= room() / 2;
}
