/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weigh.c - reads /proc of another process, and walks folders. Anonymous memory
 * is summed over mappings (smaps_rollup): /proc/PID/status is exact about it
 * only since Linux 6.17. The peak is in that file alone.
 */
#include "run/process/weigh.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MOST_DEPTH = 8 /* levels of folders in folders */
};

/* Adds up the kilobytes behind these words, in bytes. */
static bool read_words(pid_t pid, const char *file, const char *const *words,
                       uint64_t *const *to)
{
    char path[64];
    char line[256];
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f)) {
        for (uint32_t i = 0; words[i]; i++) {
            if (strncmp(line, words[i], strlen(words[i])) == 0) {
                *to[i] += strtoull(line + strlen(words[i]), NULL, 10) * 1024;
            }
        }
    }
    if (f) {
        (void)fclose(f);
    }
    return f != NULL;
}

bool weigh_process(pid_t pid, struct weigh_process *out)
{
    static const char *const status[] = {
        "RssAnon:", "RssFile:", "RssShmem:", "VmHWM:", NULL};
    static const char *const rollup[] = {"Anonymous:", NULL};
    uint64_t roughly = 0;
    uint64_t exactly = 0;
    bool good;

    *out = (struct weigh_process){0};
    good = read_words(
        pid, "status", status,
        (uint64_t *const[]){&roughly, &out->others, &out->others, &out->peak});
    (void)read_words(pid, "smaps_rollup", rollup,
                     (uint64_t *const[]){&exactly});
    out->anonymous = exactly > 0 ? exactly : roughly;
    return good && out->anonymous > 0 && out->peak > 0;
}

bool weigh_forget_peak(pid_t pid)
{
    char path[64];
    int fd;
    bool good;

    snprintf(path, sizeof(path), "/proc/%d/clear_refs", (int)pid);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    good = fd >= 0 && write(fd, "5", 1) == 1;
    if (fd >= 0) {
        close(fd);
    }
    return good;
}

static uint64_t weigh_open(pid_t pid)
{
    char path[64];
    const struct dirent *e;
    struct stat s;
    uint64_t sum = 0;
    DIR *d;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    d = opendir(path);
    while (d && (e = readdir(d))) {
        if (fstatat(dirfd(d), e->d_name, &s, 0) == 0 && S_ISREG(s.st_mode) &&
            s.st_nlink == 0) {
            sum += (uint64_t)s.st_size;
        }
    }
    if (d) {
        closedir(d);
    }
    return sum;
}

static uint64_t weigh_mapped(pid_t pid)
{
    static const char gone[] = " (deleted)\n";
    char path[64];
    char line[4096 + 128];
    char mode[5];
    unsigned long long first;
    unsigned long long end;
    uint64_t sum = 0;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f)) {
        const size_t n = strlen(line);

        if (n >= sizeof(gone) &&
            strcmp(line + n + 1 - sizeof(gone), gone) == 0 &&
            sscanf(line, "%llx-%llx %4s", &first, &end, mode) == 3 &&
            mode[3] == 'p') {
            sum += end - first;
        }
    }
    if (f) {
        (void)fclose(f);
    }
    return sum;
}

uint64_t weigh_gone(pid_t pid)
{
    return weigh_open(pid) + weigh_mapped(pid);
}

/* Goes MOST_DEPTH folders deep. NOLINTNEXTLINE(misc-no-recursion) */
static uint64_t weigh_folder(int at, const char *name, uint32_t depth)
{
    const int fd =
        openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *e;
    struct stat s;
    uint64_t sum = 0;

    while (d && (e = readdir(d))) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            fstatat(dirfd(d), e->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0) {
            continue;
        }
        sum += strlen(e->d_name);
        if (S_ISREG(s.st_mode) || S_ISLNK(s.st_mode)) {
            sum += (uint64_t)s.st_size;
        } else if (S_ISDIR(s.st_mode) && depth < MOST_DEPTH) {
            sum += weigh_folder(dirfd(d), e->d_name, depth + 1);
        }
    }
    if (d) {
        closedir(d);
    } else if (fd >= 0) {
        close(fd);
    }
    return sum;
}

uint64_t weigh_folders(const char *const *folders)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; folders[i]; i++) {
        sum += weigh_folder(AT_FDCWD, folders[i], 0);
    }
    return sum;
}
