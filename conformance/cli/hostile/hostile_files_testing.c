/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile_files_testing.c - attacks the memory, the descriptors and the files
 * of other processes.
 */
#include "cli/hostile/hostile_ways_testing.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- Other processes' memory ---- */

void hostile_trace_worker(long request)
{
    ptrace((enum __ptrace_request)request, getppid(), 0, 0);
}

void hostile_trace_me(long with)
{
    (void)with;
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGUSR1);
}

void hostile_write_worker(long with)
{
    char path[64];
    int fd;

    (void)with;
    snprintf(path, sizeof(path), "/proc/%d/mem", getppid());
    fd = open(path, O_RDWR);
    (void)!pwrite(fd, path, sizeof(path), (off_t)(uintptr_t)&hostile_ways);
}

void hostile_take_descriptors(long with)
{
    int fd = (int)syscall(SYS_pidfd_open, getppid(), 0);

    (void)with;
    for (int i = 0; i < 64; i++) {
        (void)syscall(SYS_pidfd_getfd, fd, i, 0);
    }
    hostile_write_to_all(0);
}

void hostile_control(long what)
{
    prctl((int)what, 0, 0, 0, 0);
}

void hostile_be_strict(long with)
{
    (void)with;
    prctl(PR_SET_SECCOMP, 1);
}

void hostile_be_nobody(long with)
{
    (void)with;
    (void)!setgid(65534);
    (void)!setuid(65534);
}

/* ---- Files ---- */

void hostile_share_memory(long with)
{
    int fd = open("/dev/shm/hostile-segment", O_CREAT | O_RDWR, 0600);

    (void)!write(fd, "x", 1);
    (void)shmget((key_t)with, 4096, IPC_CREAT | 0600);
}

void hostile_leave_files(long with)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    const char *tmp = getenv("TMPDIR");
    char path[4400];
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    (void)with;
    snprintf(a.sun_path, sizeof(a.sun_path), "%.90s/hostile", tmp ? tmp : "");
    (void)!bind(fd, (struct sockaddr *)&a, sizeof(a));
    close(fd);
    snprintf(path, sizeof(path), "%s/XXXXXX", tmp ? tmp : "");
    (void)!mkdtemp(path);
    (void)chmod(path, 0);
}

/* Spoils the case.json, by emptying or removing it, in each case's folder that
 * can be seen from the folder of temporary files, `up` folders further up. */
static void spoil_records(const char *up, void (*spoil)(const char *path))
{
    char folder[4400];
    char path[4800];
    DIR *d;
    const struct dirent *e;

    snprintf(folder, sizeof(folder), "%s/%s", getenv("TMPDIR"), up);
    d = opendir(folder);
    while (d && (e = readdir(d))) {
        snprintf(path, sizeof(path), "%s/%s/case.json", folder, e->d_name);
        spoil(path);
    }
    if (d) {
        closedir(d);
    }
}

static void empty_file(const char *path)
{
    (void)!truncate(path, 0);
}

static void remove_file(const char *path)
{
    (void)unlink(path);
}

void hostile_spoil_others(long removes)
{
    spoil_records("../..", removes ? remove_file : empty_file);
}

void hostile_spoil_engines(long removes)
{
    spoil_records("../../..", removes ? remove_file : empty_file);
}

/* Runs a command on what is beside the folder of temporary files: batch and
 * case. */
static void do_beside(const char *what)
{
    char line[4800];

    snprintf(line, sizeof(line), "cd \"$TMPDIR/..\" && { %s; } 2>/dev/null",
             what);
    (void)!system(line); /* NOLINT(cert-env33-c) */
}

void hostile_in_folder(long which)
{
    static const char *const what[] = {
        "rm -f batch",
        "rm -rf *.* baseline",
        "chmod 0 *.*",
        "for f in *.*; do rm -rf $f; ln -s tmp $f; done",
        "for f in *.*; do mkdir -p $f/a/b; chmod 0 $f/a; done",
        "cp -r *.rank.* mlp.planted; mkfifo fifo; mkdir rank-0.json",
        "for f in *.*; do mkdir $f/rank-0.json $f/case.json; done",
        "touch rank-9.json; ln -s / root; chmod 0 .",
        "mount -o remount,rw ..; umount ..; umount -l .; rm -rf ../*.*",
    };

    do_beside(what[which]);
}

void hostile_go_away(long with)
{
    (void)with;
    (void)!chdir("/proc");
    umask(0777);
    (void)!chroot("/proc");
}

void hostile_map_all(long with)
{
    (void)with;
    (void)mlockall(MCL_CURRENT | MCL_FUTURE);
    (void)!mmap(NULL, (size_t)64 << 20, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
