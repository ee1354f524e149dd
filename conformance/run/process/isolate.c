/* SPDX-License-Identifier: Apache-2.0 */
/*
 * isolate.c - makes namespaces for a worker. Root needs no user namespace;
 * other users have the rights for that in one, until they exec.
 */
#include "run/process/isolate.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    OWN = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC
};

static int flags = -1; /* of clone; 0: not possible; -1: not asked yet */

static bool put_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool good =
        fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    if (fd >= 0) {
        close(fd);
    }
    return good;
}

/* Users and groups have the same numbers inside. */
static bool map_users(unsigned user, unsigned group)
{
    char users[64];
    char groups[64];

    snprintf(users, sizeof(users), "%u %u 1", user, user);
    snprintf(groups, sizeof(groups), "%u %u 1", group, group);
    return put_text("/proc/self/setgroups", "deny") &&
           put_text("/proc/self/uid_map", users) &&
           put_text("/proc/self/gid_map", groups);
}

/* The flags of a mount, which a process without rights must repeat. */
static unsigned long flags_of(const char *path)
{
    struct statvfs s;
    unsigned long f = 0;

    if (statvfs(path, &s) == 0) {
        f |= s.f_flag & ST_NOSUID ? MS_NOSUID : 0;
        f |= s.f_flag & ST_NODEV ? MS_NODEV : 0;
        f |= s.f_flag & ST_NOEXEC ? MS_NOEXEC : 0;
        f |= s.f_flag & ST_NOATIME ? MS_NOATIME : 0;
        f |= s.f_flag & ST_NODIRATIME ? MS_NODIRATIME : 0;
        f |= s.f_flag & ST_RELATIME ? MS_RELATIME : 0;
    }
    return f;
}

/* Mounts the folder onto itself, and so can make it read-only; one below it
 * that was mounted before stays as it is. */
static bool seal(const struct isolate *how)
{
    return mount(how->open, how->open, NULL, MS_BIND, NULL) == 0 &&
           mount(how->sealed, how->sealed, NULL, MS_BIND | MS_REC, NULL) == 0 &&
           mount(NULL, how->sealed, NULL,
                 MS_REMOUNT | MS_BIND | MS_RDONLY | flags_of(how->sealed),
                 NULL) == 0;
}

static bool is_there(const struct isolate *how)
{
    return access(how->open, W_OK) == 0 &&
           (!how->needed || access(how->needed, R_OK) == 0);
}

/* Puts the folder of the run back where it was, sealed. */
static bool put_back(int run, const char *at)
{
    char from[64];
    char *path = strdup(at);

    for (char *p = path; p && (p = strchr(p + 1, '/'));) {
        *p = '\0';
        (void)mkdir(path, 0755); /* most are there */
        *p = '/';
    }
    free(path);
    (void)mkdir(at, 0755);
    snprintf(from, sizeof(from), "/proc/self/fd/%d", run);
    return mount(from, at, NULL, MS_BIND | MS_REC, NULL) == 0;
}

/* Empties /dev/shm but for the folder of the run, if that is there; if an
 * engine's file is there, nothing is removed. */
static void empty_shared_memory(const struct isolate *how)
{
    const int run = open(how->sealed, O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool before = is_there(how);

    if (mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV,
              "mode=1777") == 0 &&
        before && !is_there(how) &&
        !(run >= 0 && put_back(run, how->sealed) && is_there(how))) {
        umount2("/dev/shm", MNT_DETACH);
    }
    if (run >= 0) {
        close(run);
    }
}

bool isolate_drop_rights(void)
{
    return geteuid() != 0 ||
           (prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0) == 0 &&
            prctl(PR_CAPBSET_DROP, CAP_SYS_PTRACE, 0, 0, 0) == 0);
}

/* Enters the working folder again: a relative path must not lead past what is
 * mounted now. */
static bool come_in(void)
{
    char *here = getcwd(NULL, 0);
    bool good = here && chdir(here) == 0;

    free(here);
    return good;
}

static bool enter(const struct isolate *how, unsigned user, unsigned group)
{
    if ((flags & CLONE_NEWUSER) && !map_users(user, group)) {
        return false;
    }
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
              NULL) != 0 ||
        !seal(how)) {
        return false;
    }
    empty_shared_memory(how);
    return come_in() && isolate_drop_rights();
}

static unsigned user_before, group_before;

bool isolate_enter(const struct isolate *how)
{
    return enter(how, user_before, group_before);
}

pid_t isolate_fork(void)
{
    user_before = geteuid();
    group_before = getegid();
    return (pid_t)syscall(SYS_clone, (long)flags | SIGCHLD, 0, 0, 0, 0);
}

/* Whether it works with these flags. */
static bool try_out(int with, const struct isolate *how)
{
    int status = 0;
    pid_t pid;

    flags = with;
    pid = isolate_fork();
    if (pid == 0) {
        _exit(isolate_enter(how) ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    if (pid < 0) {
        return false;
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
}

bool isolate_possible(const struct isolate *how)
{
    const char *wish = getenv("FSDP_CTS_ISOLATION");

    if (flags < 0 && wish && strcmp(wish, "none") == 0) {
        flags = 0;
    }
    if (flags < 0 && !(geteuid() == 0 && try_out(OWN, how)) &&
        !try_out(OWN | CLONE_NEWUSER, how)) {
        flags = 0;
    }
    return flags != 0;
}
