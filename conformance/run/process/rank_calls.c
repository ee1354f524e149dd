/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_calls.c - makes a filter of the tables of system calls that a rank is
 * refused. Written with the kernel's own headers.
 */
#include "run/process/rank_calls.h"
#include "run/process/rank_paths.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* When a call is refused. */
enum {
    ALWAYS,
    UNLESS_THREAD,  /* argument 0 lacks CLONE_THREAD */
    UNLESS_PRIVATE, /* argument 3 makes a mapping that is shared */
    UNLESS_SELF,    /* argument 0 is not the number of this process */
    UNLESS_SELF_OR_ZERO,
    UNLESS_PATHS,  /* Landlock asks about it, too */
    UNLESS_OWN,    /* argument 1 is not the number of this process, and not 0 */
    IF_SIGNALS,    /* argument 1 sets who gets which signal from a descriptor */
    IF_SEEN_BY_ALL /* the same, or it sets a lock or a watch: others see who
                      holds it */
};

#define CALL(name, when)        \
    {                           \
        SYS_##name, #name, when \
    }
/* Refused, and noted: of each one the kernel tells the notary. */
static const struct call {
    long number;
    const char *name;
    int when;
} calls[] = {
    /* Ways to talk. */
    CALL(socket, ALWAYS),
    CALL(socketpair, ALWAYS),
    CALL(connect, ALWAYS),
    CALL(bind, ALWAYS),
    CALL(listen, ALWAYS),
    CALL(accept, ALWAYS),
    CALL(accept4, ALWAYS),
    CALL(mq_open, ALWAYS),
    CALL(msgget, ALWAYS),
    CALL(semget, ALWAYS),
#ifdef SYS_mknod
    CALL(mknod, ALWAYS),
#endif
    CALL(mknodat, ALWAYS),
    CALL(io_uring_setup, ALWAYS),
    CALL(add_key, ALWAYS),
    CALL(request_key, ALWAYS),
    CALL(keyctl, ALWAYS),
    /* State that a process sets of itself, or of a file that it may only read,
     * and that others can ask for. */
    CALL(flock, ALWAYS),
    CALL(fcntl, IF_SEEN_BY_ALL),
#ifdef SYS_inotify_init
    CALL(inotify_init, ALWAYS),
#endif
    CALL(inotify_init1, ALWAYS),
    CALL(fanotify_init, ALWAYS),
    CALL(setpgid, ALWAYS),
    CALL(setsid, ALWAYS),
    CALL(getpgid, UNLESS_SELF_OR_ZERO),
    CALL(getsid, UNLESS_SELF_OR_ZERO),
    CALL(getpriority, UNLESS_OWN),
    CALL(ioprio_get, UNLESS_OWN),
    CALL(get_robust_list, UNLESS_SELF_OR_ZERO),
    CALL(sethostname, ALWAYS),
    CALL(setdomainname, ALWAYS),
    /* Memory that others have, too. */
    CALL(mmap, UNLESS_PRIVATE),
    CALL(shmget, ALWAYS),
    CALL(shmat, ALWAYS),
    CALL(memfd_create, ALWAYS),
    CALL(process_vm_readv, ALWAYS),
    CALL(process_vm_writev, ALWAYS),
    CALL(userfaultfd, ALWAYS),
    /* Other processes. */
    CALL(ptrace, ALWAYS),
    CALL(kcmp, ALWAYS),
#ifdef SYS_pidfd_open
    CALL(pidfd_open, ALWAYS),
#endif
#ifdef SYS_pidfd_getfd
    CALL(pidfd_getfd, ALWAYS),
#endif
    CALL(pidfd_send_signal, ALWAYS),
    CALL(kill, UNLESS_SELF),
    CALL(tkill, UNLESS_SELF),
    CALL(tgkill, UNLESS_SELF),
    CALL(rt_sigqueueinfo, UNLESS_SELF),
    CALL(rt_tgsigqueueinfo, UNLESS_SELF),
    CALL(ioctl, IF_SIGNALS),
    CALL(prlimit64, UNLESS_SELF_OR_ZERO),
#ifdef SYS_fork
    CALL(fork, ALWAYS),
    CALL(vfork, ALWAYS),
#endif
    CALL(clone, UNLESS_THREAD),
    CALL(execve, ALWAYS),
    CALL(execveat, ALWAYS),
    /* The system. */
    CALL(bpf, ALWAYS),
    CALL(perf_event_open, ALWAYS),
    CALL(unshare, ALWAYS),
    CALL(setns, ALWAYS),
    CALL(mount, ALWAYS),
    CALL(umount2, ALWAYS),
    CALL(pivot_root, ALWAYS),
    CALL(chroot, ALWAYS),
    CALL(open_by_handle_at, ALWAYS),
    CALL(settimeofday, ALWAYS),
    CALL(clock_settime, ALWAYS),
    CALL(adjtimex, ALWAYS),
    CALL(clock_adjtime, ALWAYS),
    CALL(swapon, ALWAYS),
    CALL(swapoff, ALWAYS),
    CALL(acct, ALWAYS),
    CALL(quotactl, ALWAYS),
    CALL(reboot, ALWAYS),
    CALL(init_module, ALWAYS),
    CALL(finit_module, ALWAYS),
    CALL(delete_module, ALWAYS),
    CALL(kexec_load, ALWAYS),
};

/* Commands for descriptors and sockets that set who is sent a signal when there
 * is something to read, and which one, be it SIGKILL. */
static const uint32_t who_is_signalled[] = {F_SETOWN, F_SETOWN_EX, F_SETSIG,
                                            FIOSETOWN, SIOCSPGRP};

/* Commands for descriptors alone. */
static const uint32_t seen_by_all[] = {
    F_SETOWN,    F_SETOWN_EX, F_SETSIG,     F_GETLK,    F_SETLK,    F_SETLKW,
    F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW, F_SETLEASE, F_GETLEASE, F_NOTIFY};

/* Calls about paths that Landlock does not look at. They are refused without a
 * note, like a path that cannot be opened: many libraries make them. */
static const struct call quiet_calls[] = {
#ifdef SYS_chmod
    CALL(chmod, ALWAYS),          CALL(chown, ALWAYS),
    CALL(lchown, ALWAYS),         CALL(utime, ALWAYS),
    CALL(utimes, ALWAYS),         CALL(futimesat, ALWAYS),
#endif
    CALL(fchmod, ALWAYS),         CALL(fchmodat, ALWAYS),
#ifdef SYS_fchmodat2
    CALL(fchmodat2, ALWAYS),
#endif
    CALL(fchown, ALWAYS),         CALL(fchownat, ALWAYS),
    CALL(utimensat, ALWAYS),      CALL(setxattr, ALWAYS),
    CALL(lsetxattr, ALWAYS),      CALL(fsetxattr, ALWAYS),
#ifdef SYS_setxattrat
    CALL(setxattrat, ALWAYS),
#endif
    CALL(removexattr, ALWAYS),    CALL(lremovexattr, ALWAYS),
    CALL(fremovexattr, ALWAYS),
#ifdef SYS_removexattrat
    CALL(removexattrat, ALWAYS),
#endif
    CALL(truncate, UNLESS_PATHS),
};
#undef CALL

enum {
    N_CALLS = sizeof(calls) / sizeof(calls[0]),
    N_QUIET = sizeof(quiet_calls) / sizeof(quiet_calls[0]),
    N_WHO = sizeof(who_is_signalled) / sizeof(who_is_signalled[0]),
    N_SEEN = sizeof(seen_by_all) / sizeof(seen_by_all[0]),
    MOST_STEPS = 8 * N_CALLS + 2 * N_QUIET + 2 * N_WHO + 2 * N_SEEN + 16
};

#if defined(__x86_64__)
enum {
    OWN_KIND = AUDIT_ARCH_X86_64
};
#elif defined(__aarch64__)
enum {
    OWN_KIND = AUDIT_ARCH_AARCH64
};
#else
enum {
    OWN_KIND = 0 /* unknown: no filter */
};
#endif

void rank_calls_describe(uint32_t kind, long number, const uint64_t argument[6],
                         char *text, size_t room)
{
    const char *name = NULL;

    for (size_t i = 0; kind == (uint32_t)OWN_KIND && i < N_CALLS; i++) {
        name = calls[i].number == number ? calls[i].name : name;
    }
    if (name) {
        snprintf(
            text, room, "%s(%#llx, %#llx, %#llx, %#llx)", name,
            (unsigned long long)argument[0], (unsigned long long)argument[1],
            (unsigned long long)argument[2], (unsigned long long)argument[3]);
    } else {
        snprintf(text, room, "call %ld, of another kind of program", number);
    }
}

struct program {
    struct sock_filter step[MOST_STEPS];
    unsigned short n;
};

static void add_filter(struct program *p, uint16_t code, uint8_t yes,
                       uint8_t no, uint32_t k)
{
    p->step[p->n++] = (struct sock_filter){code, yes, no, k};
}

static void add_load(struct program *p, size_t offset)
{
    add_filter(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

static void answer(struct program *p, uint32_t with)
{
    add_filter(p, BPF_RET | BPF_K, 0, 0, with);
}

/* Loads the lower half of an argument, which is all that counts for the kernel
 * here. */
static void load_argument(struct program *p, size_t i)
{
    add_load(p, offsetof(struct seccomp_data, args) + 8 * i);
}

static void is_equal(struct program *p, uint8_t yes, uint8_t no, uint32_t k)
{
    add_filter(p, BPF_JMP | BPF_JEQ | BPF_K, yes, no, k);
}

/* The next step is skipped where argument 1 is none of these. */
static void is_any_of(struct program *p, const uint32_t *k, size_t n)
{
    load_argument(p, 1);
    for (size_t i = 0; i < n; i++) {
        is_equal(p, (uint8_t)(n - 1 - i), i + 1 == n ? 1 : 0, k[i]);
    }
}

/* Adds one call to the filter. The number of the call that is made is loaded
 * before, and is still loaded afterwards if it is another one. */
static void add_call(struct program *p, const struct call *call, uint32_t with)
{
    const uint32_t self = (uint32_t)getpid();
    const unsigned short begin = p->n;

    is_equal(p, 0, 0, (uint32_t)call->number);
    switch (call->when) {
    case UNLESS_THREAD:
        load_argument(p, 0);
        add_filter(p, BPF_JMP | BPF_JSET | BPF_K, 1, 0, CLONE_THREAD);
        break;
    case UNLESS_PRIVATE:
        load_argument(p, 3);
        add_filter(p, BPF_ALU | BPF_AND | BPF_K, 0, 0, 0x0f);
        is_equal(p, 1, 0, MAP_PRIVATE);
        break;
    case UNLESS_SELF_OR_ZERO:
        load_argument(p, 0);
        is_equal(p, 2, 0, 0);
        is_equal(p, 1, 0, self);
        break;
    case UNLESS_SELF:
        load_argument(p, 0);
        is_equal(p, 1, 0, self);
        break;
    case UNLESS_OWN:
        load_argument(p, 1);
        is_equal(p, 2, 0, 0);
        is_equal(p, 1, 0, self);
        break;
    case IF_SIGNALS:
        is_any_of(p, who_is_signalled, N_WHO);
        break;
    case IF_SEEN_BY_ALL:
        is_any_of(p, seen_by_all, N_SEEN);
        break;
    default:
        break;
    }
    answer(p, with);
    if (call->when != ALWAYS && call->when != UNLESS_PATHS) {
        answer(p, SECCOMP_RET_ALLOW);
    }
    p->step[begin].jf = (uint8_t)(p->n - begin - 1);
}

static void make(struct program *p)
{
    p->n = 0;
    add_load(p, offsetof(struct seccomp_data, arch));
    is_equal(p, 1, 0, (uint32_t)OWN_KIND);
    answer(p, SECCOMP_RET_USER_NOTIF);
    add_load(p, offsetof(struct seccomp_data, nr));
#if defined(__x86_64__)
    add_filter(p, BPF_JMP | BPF_JGE | BPF_K, 0, 1, 0x40000000); /* x32 */
    answer(p, SECCOMP_RET_USER_NOTIF);
#endif
    /* The filter cannot see the flags of clone3, which lie behind a pointer;
     * the C library then calls clone. */
    is_equal(p, 0, 1, SYS_clone3);
    answer(p, SECCOMP_RET_ERRNO | ENOSYS);
    for (size_t i = 0; i < N_CALLS; i++) {
        add_call(p, &calls[i], SECCOMP_RET_USER_NOTIF);
    }
    for (size_t i = 0; i < N_QUIET; i++) {
        if (quiet_calls[i].when != UNLESS_PATHS || !rank_paths_can_cut()) {
            add_call(p, &quiet_calls[i], SECCOMP_RET_ERRNO | EPERM);
        }
    }
    answer(p, SECCOMP_RET_ALLOW);
}

int rank_calls_refuse(void)
{
    struct program p;
    struct sock_fprog program = {0, p.step};

    if ((uint32_t)OWN_KIND == 0) {
        return -1;
    }
    make(&p);
    program.len = p.n;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                        SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}
