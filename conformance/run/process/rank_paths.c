/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_paths.c - leaves a rank a few paths of the file system. Written with the
 * kernel's own header.
 */
#include "run/process/rank_paths.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef LANDLOCK_ACCESS_FS_REFER
#    define LANDLOCK_ACCESS_FS_REFER (UINT64_C(1) << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#    define LANDLOCK_ACCESS_FS_TRUNCATE (UINT64_C(1) << 14)
#endif

static const uint64_t reading = LANDLOCK_ACCESS_FS_READ_FILE |
                                LANDLOCK_ACCESS_FS_READ_DIR |
                                LANDLOCK_ACCESS_FS_EXECUTE;
/* Rights about a file. */
static const uint64_t writing =
    LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE;

/* The struct of the kernel's header since Linux 6.12, whatever this machine's
 * header has. */
struct ruleset {
    uint64_t paths, ports, scopes;
};

enum {
    SCOPE_SIGNAL = 2
};

/* The kernel's version, asked once: each rule depends on it. */
static long kernel_version(void)
{
    static long version;

    if (version == 0) {
        version = syscall(SYS_landlock_create_ruleset, NULL, (size_t)0,
                          LANDLOCK_CREATE_RULESET_VERSION);
    }
    return version;
}

/* All rights that this kernel can refuse, as far as this file knows; 0:
 * none. */
static uint64_t all_rights(void)
{
    const long version = kernel_version();
    const uint64_t first = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;

    return version < 1    ? 0
           : version == 1 ? first
           : version == 2
               ? first | LANDLOCK_ACCESS_FS_REFER
               : first | LANDLOCK_ACCESS_FS_REFER | LANDLOCK_ACCESS_FS_TRUNCATE;
}

bool rank_paths_can_cut(void)
{
    return (all_rights() & LANDLOCK_ACCESS_FS_TRUNCATE) != 0;
}

static bool allow(int rules, const char *path, uint64_t rights)
{
    struct landlock_path_beneath_attr rule = {
        .allowed_access = rights & all_rights(),
        .parent_fd = open(path, O_PATH | O_CLOEXEC)};
    struct stat s;
    bool good = rule.parent_fd >= 0 && fstat(rule.parent_fd, &s) == 0;

    if (good && !S_ISDIR(s.st_mode)) {
        rule.allowed_access &=
            writing | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_EXECUTE;
    }
    good = good && syscall(SYS_landlock_add_rule, rules,
                           LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
    if (rule.parent_fd >= 0) {
        close(rule.parent_fd);
    }
    return good;
}

/* Everything can be read but /proc, which has the memory of others. */
static bool allow_reading(int rules)
{
    DIR *root = opendir("/");
    struct dirent *e;

    if (!root) {
        return false;
    }
    while ((e = readdir(root))) {
        char path[300];

        snprintf(path, sizeof(path), "/%s", e->d_name);
        if (e->d_name[0] != '.' && strcmp(e->d_name, "proc") != 0) {
            (void)allow(rules, path, reading); /* or it stays closed */
        }
    }
    closedir(root);
    return true;
}

/* Files that the C library, the engine's threads and the suite's recorder read
 * about this process and the machine. */
static bool allow_own_process(int rules)
{
    static const char *const machine[] = {
        "/proc/cpuinfo", "/proc/meminfo",     "/proc/stat", "/proc/version",
        "/proc/loadavg", "/proc/filesystems", "/proc/sys"};

    for (size_t i = 0; i < sizeof(machine) / sizeof(machine[0]); i++) {
        (void)allow(rules, machine[i], reading);
    }
    (void)allow(rules, "/dev/null", writing);
    return allow(rules, "/proc/self/", reading);
}

bool rank_paths_refuse(const char *const *folders)
{
    struct ruleset all = {.paths = all_rights()};
    size_t bytes = sizeof(all.paths);
    int rules;
    bool good;

    if (all.paths == 0) {
        return false;
    }
    if (kernel_version() >= 6) {
        all.scopes = SCOPE_SIGNAL;
        bytes = sizeof(all);
    }
    rules = (int)syscall(SYS_landlock_create_ruleset, &all, bytes, 0);
    if (rules < 0) {
        return false;
    }
    good = allow_reading(rules) && allow_own_process(rules);
    for (size_t i = 0; good && folders[i]; i++) {
        good = allow(rules, folders[i], all.paths);
    }
    good = good && syscall(SYS_landlock_restrict_self, rules, 0) == 0;
    close(rules);
    return good;
}
