/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.c - reads /proc/self: resident memory, its peak, and the ways out
 * of the process (descriptors, files that are mapped shared).
 *
 * What a GPU's driver opens and maps is no way to another rank, and it does so
 * whenever it likes: its devices, and pinned memory, which is a shared mapping
 * without a name that was made after the ranks were forked.
 */
#include "run/process/process.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* From a line of the kernel's, if it begins with this word. */
static void take_kilobytes(const char *line, const char *word, uint64_t *bytes)
{
    if (strncmp(line, word, strlen(word)) == 0) {
        *bytes = strtoull(line + strlen(word), NULL, 10) * 1024;
    }
}

static void read_status(struct process_view *out, int *why)
{
    FILE *f = fopen("/proc/self/status", "re");
    char line[256];

    *why = f ? *why : errno;
    while (f && fgets(line, sizeof(line), f)) {
        take_kilobytes(line, "VmRSS:", &out->resident_bytes);
        take_kilobytes(line, "VmHWM:", &out->peak_bytes);
    }
    if (f) {
        fclose(f);
    }
}

bool process_is_driver(const char *path)
{
    static const char *const driver[] = {"/dev/nvidia", "/dev/zero (deleted)",
                                         "/anon_hugepage (deleted)"};
    bool is = false;

    for (size_t i = 0; i < sizeof(driver) / sizeof(*driver); i++) {
        is = is || strncmp(path, driver[i], strlen(driver[i])) == 0;
    }
    return is;
}

static uint32_t count_descriptors(int *why)
{
    DIR *d = opendir("/proc/self/fd");
    struct dirent *e;
    uint32_t n = 0;

    *why = d ? *why : errno;
    while (d && (e = readdir(d))) {
        char path[64] = "";
        ssize_t bytes = readlinkat(dirfd(d), e->d_name, path, sizeof(path) - 1);

        path[bytes > 0 ? bytes : 0] = '\0';
        n += !process_is_driver(path);
    }
    if (d) {
        closedir(d);
    }
    return n;
}

bool process_shared_mapping(const char *line, struct process_file *out)
{
    char mode[8] = "";
    int path = 0;

    /* first-last mode offset major:minor inode path */
    return sscanf(line, "%*s %7s %*s %x:%x %llu %n", mode, &out->major,
                  &out->minor, &out->inode, &path) == 4 &&
           strlen(mode) == 4 && mode[3] == 's' && path > 0 &&
           !process_is_driver(line + path);
}

/* A file that is mapped in many pieces is one. */
static uint32_t count_shared_mappings(int *why)
{
    enum {
        MOST = 512
    };
    struct process_file seen[MOST];
    FILE *f = fopen("/proc/self/maps", "re");
    char line[1024];
    uint32_t n = 0;

    *why = f ? *why : errno;
    while (f && fgets(line, sizeof(line), f)) {
        uint32_t i = 0;

        if (n == MOST || !process_shared_mapping(line, &seen[n])) {
            continue;
        }
        while (seen[i].inode != seen[n].inode ||
               seen[i].major != seen[n].major ||
               seen[i].minor != seen[n].minor) {
            i++;
        }
        n += i == n;
    }
    if (f) {
        fclose(f);
    }
    return n;
}

int process_look(struct process_view *out, enum process_ways ways)
{
    struct rusage children = {0};
    int why = 0;

    *out = (struct process_view){0};
    read_status(out, &why);
    if (getrusage(RUSAGE_CHILDREN, &children) == 0 && children.ru_maxrss > 0) {
        out->child_bytes = (uint64_t)children.ru_maxrss * 1024;
    }
    if (ways != PROCESS_NO_WAYS) {
        out->channels = count_descriptors(&why);
    }
    if (ways == PROCESS_ALL_WAYS) {
        out->channels += count_shared_mappings(&why);
    }
    return why;
}

void process_touch(const void *memory, size_t bytes)
{
    const volatile unsigned char *p = memory;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);

    for (size_t i = 0; i < bytes; i += page) {
        (void)p[i];
    }
}

void process_forget_peak(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "we");

    if (f) {
        fputs("5", f); /* the peak is what is resident now */
        fclose(f);
    }
}
