/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_limits.c - the table of calls that a rank is refused, made into a
 * filter; and the paths that it is left. By the kernel's own headers.
 */
#include "run/rank_limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Calls -------------------------------------------------------------
 */

/* When a call is refused. */
enum {
    ALWAYS,
    UNLESS_THREAD,  /* argument 0 lacks CLONE_THREAD */
    UNLESS_PRIVATE, /* argument 3 makes a mapping that is shared */
    UNLESS_SELF,    /* argument 0 is no number of this process */
    UNLESS_SELF_OR_ZERO
};

#define CALL(name, when)        \
    {                           \
        SYS_##name, #name, when \
    }
static const struct {
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
};
#undef CALL

enum {
    N_CALLS = sizeof(calls) / sizeof(calls[0]),
    MOST_STEPS = 8 * N_CALLS + 16
};

void limits_describe(long number, const uint64_t argument[6], char *text,
                     size_t room)
{
    const char *name = NULL;

    for (size_t i = 0; i < N_CALLS; i++) {
        name = calls[i].number == number ? calls[i].name : name;
    }
    if (name) {
        (void)snprintf(
            text, room, "%s(%#llx, %#llx, %#llx, %#llx)", name,
            (unsigned long long)argument[0], (unsigned long long)argument[1],
            (unsigned long long)argument[2], (unsigned long long)argument[3]);
    } else {
        (void)snprintf(text, room, "call %ld, of another kind of program",
                       number);
    }
}

struct program {
    struct sock_filter step[MOST_STEPS];
    unsigned short n;
};

static void add(struct program *p, uint16_t code, uint8_t yes, uint8_t no,
                uint32_t k)
{
    p->step[p->n++] = (struct sock_filter){code, yes, no, k};
}

static void load(struct program *p, size_t offset)
{
    add(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

static void answer(struct program *p, uint32_t with)
{
    add(p, BPF_RET | BPF_K, 0, 0, with);
}

/* The lower half of an argument, where nothing else counts for the kernel. */
static void load_argument(struct program *p, size_t i)
{
    load(p, offsetof(struct seccomp_data, args) + 8 * i);
}

static void is_equal(struct program *p, uint8_t yes, uint8_t no, uint32_t k)
{
    add(p, BPF_JMP | BPF_JEQ | BPF_K, yes, no, k);
}

/* The number is loaded, and lost where it is this one. */
static void add_call(struct program *p, size_t i)
{
    const uint32_t self = (uint32_t)getpid();
    const unsigned short begin = p->n;

    is_equal(p, 0, 0, (uint32_t)calls[i].number);
    switch (calls[i].when) {
    case UNLESS_THREAD:
        load_argument(p, 0);
        add(p, BPF_JMP | BPF_JSET | BPF_K, 1, 0, CLONE_THREAD);
        break;
    case UNLESS_PRIVATE:
        load_argument(p, 3);
        add(p, BPF_ALU | BPF_AND | BPF_K, 0, 0, 0x0f);
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
    default:
        break;
    }
    answer(p, SECCOMP_RET_USER_NOTIF);
    if (calls[i].when != ALWAYS) {
        answer(p, SECCOMP_RET_ALLOW);
    }
    p->step[begin].jf = (uint8_t)(p->n - begin - 1);
}

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

static void make(struct program *p)
{
    p->n = 0;
    load(p, offsetof(struct seccomp_data, arch));
    is_equal(p, 1, 0, (uint32_t)OWN_KIND);
    answer(p, SECCOMP_RET_USER_NOTIF);
    load(p, offsetof(struct seccomp_data, nr));
#if defined(__x86_64__)
    add(p, BPF_JMP | BPF_JGE | BPF_K, 0, 1, 0x40000000); /* x32 */
    answer(p, SECCOMP_RET_USER_NOTIF);
#endif
    /* Its flags lie behind a pointer; the C library then calls clone. */
    is_equal(p, 0, 1, SYS_clone3);
    answer(p, SECCOMP_RET_ERRNO | ENOSYS);
    for (size_t i = 0; i < N_CALLS; i++) {
        add_call(p, i);
    }
    answer(p, SECCOMP_RET_ALLOW);
}

/* Returns the descriptor that tells of refusals, or -1. */
static int refuse_calls(void)
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

/* ---- Paths ------------------------------------------------------------- */

#ifndef LANDLOCK_ACCESS_FS_REFER
#    define LANDLOCK_ACCESS_FS_REFER (UINT64_C(1) << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#    define LANDLOCK_ACCESS_FS_TRUNCATE (UINT64_C(1) << 14)
#endif

static const uint64_t reading = LANDLOCK_ACCESS_FS_READ_FILE |
                                LANDLOCK_ACCESS_FS_READ_DIR |
                                LANDLOCK_ACCESS_FS_EXECUTE;
/* Of a file. */
static const uint64_t writing =
    LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE;

/* All that this kernel can refuse, as far as is known here; 0: it cannot. */
static uint64_t all_rights(void)
{
    const long version = syscall(SYS_landlock_create_ruleset, NULL, (size_t)0,
                                 LANDLOCK_CREATE_RULESET_VERSION);
    const uint64_t first = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;

    return version < 1    ? 0
           : version == 1 ? first
           : version == 2
               ? first | LANDLOCK_ACCESS_FS_REFER
               : first | LANDLOCK_ACCESS_FS_REFER | LANDLOCK_ACCESS_FS_TRUNCATE;
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

/* All can be read but /proc, where memory of others is. */
static bool allow_reading(int rules)
{
    DIR *root = opendir("/");
    struct dirent *e;

    if (!root) {
        return false;
    }
    while ((e = readdir(root)) != NULL) {
        char path[300];

        (void)snprintf(path, sizeof(path), "/%s", e->d_name);
        if (e->d_name[0] != '.' && strcmp(e->d_name, "proc") != 0) {
            (void)allow(rules, path, reading); /* or it stays closed */
        }
    }
    closedir(root);
    return true;
}

/* What the C library, the engine's threads and the suite's recorder read about
 * this process and the machine. */
static bool allow_own_process(int rules)
{
    static const char *const machine[] = {
        "/proc/cpuinfo", "/proc/meminfo",     "/proc/stat", "/proc/version",
        "/proc/loadavg", "/proc/filesystems", "/proc/sys"};

    for (size_t i = 0; i < sizeof(machine) / sizeof(machine[0]); i++) {
        (void)allow(rules, machine[i], reading);
    }
    (void)allow(rules, "/proc/self/clear_refs", writing);
    (void)allow(rules, "/dev/null", writing);
    return allow(rules, "/proc/self/", reading);
}

static bool refuse_paths(const char *folder)
{
    struct landlock_ruleset_attr all = {.handled_access_fs = all_rights()};
    int rules;
    bool good;

    if (all.handled_access_fs == 0) {
        return false;
    }
    rules =
        (int)syscall(SYS_landlock_create_ruleset, &all, sizeof(uint64_t), 0);
    if (rules < 0) {
        return false;
    }
    good = allow_reading(rules) && allow_own_process(rules) &&
           allow(rules, folder, all.handled_access_fs) &&
           syscall(SYS_landlock_restrict_self, rules, 0) == 0;
    close(rules);
    return good;
}

/* ---- Both -------------------------------------------------------------- */

bool limits_enter(struct notary *n, uint32_t rank, const char *folder,
                  const char **why)
{
    int listener;

    *why = "no_new_privs";
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return false;
    }
    *why = "Landlock";
    if (!refuse_paths(folder)) {
        return false;
    }
    *why = "seccomp with user notification";
    listener = refuse_calls();
    return listener >= 0 && notary_hand_over(n, rank, listener);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

const char *limits_lacking(void)
{
    return "a build without sanitizers, which trace themselves";
}

#else

/* In a process of its own, to the end: a call that must be refused is, and is
 * noted. */
static const char *try_out(void)
{
    static const char *const whys[] = {"no_new_privs", "Landlock",
                                       "seccomp with user notification"};
    struct record_refusal refusal[RECORD_REFUSALS];
    struct notary n;
    const char *why = NULL;
    int status = 0;
    uint32_t noted;
    pid_t pid;

    if (!notary_start(&n)) {
        return "room for a process";
    }
    pid = fork();
    if (pid == 0) {
        if (!limits_enter(&n, 0, "/dev/null", &why)) {
            _exit(strcmp(why, whys[0]) == 0   ? 1
                  : strcmp(why, whys[1]) == 0 ? 2
                                              : 3);
        }
        _exit(syscall(SYS_socket, 1, 1, 0) == -1 && errno == EPERM ? 0 : 3);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    noted = notary_stop(&n, refusal);
    if (pid < 0 || !WIFEXITED(status)) {
        return "room for a process";
    }
    status = WEXITSTATUS(status);
    return status > 0 && status < 4    ? whys[status - 1]
           : status == 0 && noted == 1 ? NULL
                                       : whys[2];
}

const char *limits_lacking(void)
{
    static bool asked;
    static const char *lacking;

    if (!asked) {
        lacking = try_out();
        asked = true;
    }
    return lacking;
}

#endif
