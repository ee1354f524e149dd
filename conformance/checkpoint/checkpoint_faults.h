/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_faults.h - wraps the system calls that write, so that the nth
 * fails or kills the process, as a test of durability wishes. The test is
 * linked with --wrap of each, and includes this once.
 */
#ifndef FSDP_CTS_CHECKPOINT_FAULTS_H
#define FSDP_CTS_CHECKPOINT_FAULTS_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    uint64_t nth, n;
    int error;
    bool hit, partly;
    uint64_t kill_at;        /* call at which the process is killed; 0: none */
    void (*meanwhile)(void); /* what another process does before the next
                              * open */
} fault;

static bool fails(void)
{
    if (fault.kill_at != 0 && --fault.kill_at == 0) {
        (void)kill(getpid(), SIGKILL);
    }
    if (fault.nth == 0 || ++fault.n != fault.nth) {
        return false;
    }
    fault.hit = true;
    errno = fault.error;
    return true;
}

/* The linker makes these names: NOLINTBEGIN(bugprone-reserved-identifier,
 * cert-dcl37-c,cert-dcl51-cpp,readability-identifier-naming) */
ssize_t __real_write(int fd, const void *p, size_t n);
ssize_t __real_pwrite(int fd, const void *p, size_t n, off_t at);
int __real_fsync(int fd);
int __real_renameat(int a, const char *from, int b, const char *to);
int __real_mkdirat(int fd, const char *path, mode_t mode);
int __real_ftruncate(int fd, off_t n);
int __real_openat(int fd, const char *path, int flags, ...);
int __real_close(int fd);
int __real_unlinkat(int fd, const char *path, int flags);
ssize_t __wrap_write(int fd, const void *p, size_t n);
ssize_t __wrap_pwrite(int fd, const void *p, size_t n, off_t at);
int __wrap_fsync(int fd);
int __wrap_renameat(int a, const char *from, int b, const char *to);
int __wrap_mkdirat(int fd, const char *path, mode_t mode);
int __wrap_ftruncate(int fd, off_t n);
int __wrap_openat(int fd, const char *path, int flags, ...);
int __wrap_close(int fd);
int __wrap_unlinkat(int fd, const char *path, int flags);

/* A full disk takes only a part of the bytes at first. */
ssize_t __wrap_write(int fd, const void *p, size_t n)
{
    if (fails()) {
        return fault.partly && n > 1 ? __real_write(fd, p, n / 2) : -1;
    }
    return __real_write(fd, p, n);
}

ssize_t __wrap_pwrite(int fd, const void *p, size_t n, off_t at)
{
    return fails() ? -1 : __real_pwrite(fd, p, n, at);
}

int __wrap_fsync(int fd)
{
    return fails() ? -1 : __real_fsync(fd);
}

int __wrap_renameat(int a, const char *from, int b, const char *to)
{
    return fails() ? -1 : __real_renameat(a, from, b, to);
}

int __wrap_mkdirat(int fd, const char *path, mode_t mode)
{
    return fails() ? -1 : __real_mkdirat(fd, path, mode);
}

int __wrap_ftruncate(int fd, off_t n)
{
    return fails() ? -1 : __real_ftruncate(fd, n);
}

int __wrap_openat(int fd, const char *path, int flags, ...)
{
    void (*meanwhile)(void) = fault.meanwhile;

    if (meanwhile && strncmp(path, "checkpoint-", 11) == 0) {
        fault.meanwhile = NULL;
        meanwhile();
    }
    return fails() ? -1 : __real_openat(fd, path, flags, 0666);
}

int __wrap_unlinkat(int fd, const char *path, int flags)
{
    return fails() ? -1 : __real_unlinkat(fd, path, flags);
}

/* The file is closed even where close is to fail. */
int __wrap_close(int fd)
{
    bool failed = fails();
    int status = __real_close(fd);

    if (failed) {
        errno = fault.error;
    }
    return failed ? -1 : status;
}
/* NOLINTEND(bugprone-reserved-identifier,
 * cert-dcl37-c,cert-dcl51-cpp,readability-identifier-naming) */

#endif
