/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faults_testing.c - runs a command in which calls of the system fail, for
 * faults_test.sh: a disk that is full, descriptors or memory that are used up.
 *
 *     faults_testing KIND ERROR FIRST EVERY COMMAND ...
 *
 * Calls of KIND, in all processes of the command together, are counted; number
 * FIRST fails with ERROR and is not made, and so does each EVERYth that
 * follows, where EVERY is not 0. Descriptor 9, where it is open, is told how
 * many calls there were and which one failed first, and "left NAME" for each
 * process that outlives the command; those are ended. The exit code is the
 * command's.
 *
 * Calls are caught by ptrace, so that what stdio does within the C library is
 * caught, too. Exits 77 where that is not to be had.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __x86_64__

enum {
    MAX_PROCESSES = 1024,
    REPORT_FD = 9,
    SKIPPED = 77
};

static struct {
    const char *kind;
    int error;
    uint64_t first, every;
    bool begun;   /* the command is being run */
    uint64_t n;   /* calls of the kind so far */
    char hit[32]; /* the first one that failed */
} plan;

static struct {
    pid_t pid; /* 0: free */
    bool failing;
} process[MAX_PROCESSES];

/* ---- Kinds ---------------------------------------------------------------
 */

enum {
    WRITES = 1,      /* changes a file, or makes one */
    DESCRIPTORS = 2, /* makes a descriptor */
    MEMORY = 4,      /* takes memory, or makes a process */
    SLOW = 8         /* may be interrupted */
};

static const struct {
    long number;
    const char *name;
    unsigned kinds;
} calls[] = {
    {SYS_openat, "openat", DESCRIPTORS}, /* WRITES by its flags */
    {SYS_open, "open", DESCRIPTORS},
    {SYS_write, "write", WRITES | SLOW},
    {SYS_pwrite64, "pwrite", WRITES},
    {SYS_writev, "writev", WRITES},
    {SYS_ftruncate, "ftruncate", WRITES},
    {SYS_fsync, "fsync", WRITES},
    {SYS_mkdir, "mkdir", WRITES},
    {SYS_mkdirat, "mkdirat", WRITES},
    {SYS_rename, "rename", WRITES},
    {SYS_renameat, "renameat", WRITES},
    {SYS_unlink, "unlink", WRITES},
    {SYS_unlinkat, "unlinkat", WRITES},
    {SYS_rmdir, "rmdir", WRITES},
    {SYS_pipe2, "pipe2", DESCRIPTORS},
    {SYS_dup, "dup", DESCRIPTORS},
    {SYS_pidfd_open, "pidfd_open", DESCRIPTORS},
    {SYS_mmap, "mmap", MEMORY},
    {SYS_clone, "clone", MEMORY},
    {SYS_clone3, "clone3", MEMORY},
    {SYS_read, "read", SLOW},
    {SYS_poll, "poll", SLOW},
    {SYS_ppoll, "ppoll", SLOW},
    {SYS_wait4, "wait4", SLOW},
    {SYS_waitid, "waitid", SLOW},
    {SYS_futex, "futex", SLOW},
    {SYS_nanosleep, "nanosleep", SLOW},
    {SYS_clock_nanosleep, "clock_nanosleep", SLOW},
};

static const struct {
    const char *name;
    unsigned kind;
} kinds[] = {{"writes", WRITES},
             {"descriptors", DESCRIPTORS},
             {"memory", MEMORY},
             {"slow", SLOW}};

static unsigned wanted(void)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].name, plan.kind) == 0) {
            return kinds[i].kind;
        }
    }
    return 0;
}

/* Whether a descriptor is a file's: pipes and terminals never grow full, and
 * files keep nobody waiting. */
static bool is_file(pid_t pid, unsigned long long fd)
{
    char link[64];
    char path[8] = "";

    snprintf(link, sizeof(link), "/proc/%d/fd/%d", pid, (int)fd);
    return readlink(link, path, sizeof(path) - 1) > 0 && path[0] == '/' &&
           strncmp(path, "/dev/", 5) != 0;
}

static unsigned kinds_of(pid_t pid, const struct user_regs_struct *r,
                         const char **name)
{
    const unsigned long long flags = r->orig_rax == SYS_openat ? r->rdx
                                     : r->orig_rax == SYS_open ? r->rsi
                                                               : 0;
    unsigned is = (flags & (O_WRONLY | O_RDWR | O_CREAT)) != 0 ? WRITES : 0u;

    *name = NULL;
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        if (calls[i].number == (long)r->orig_rax) {
            *name = calls[i].name;
            is |= calls[i].kinds;
        }
    }
    if (r->orig_rax == SYS_futex &&
        ((int)r->rsi & FUTEX_CMD_MASK) != FUTEX_WAIT &&
        ((int)r->rsi & FUTEX_CMD_MASK) != FUTEX_WAIT_BITSET) {
        is = 0; /* it does not wait */
    }
    if (r->orig_rax == SYS_write || r->orig_rax == SYS_read ||
        r->orig_rax == SYS_pwrite64 || r->orig_rax == SYS_writev) {
        is &= ~(unsigned)(is_file(pid, r->rdi) ? SLOW : WRITES);
    }
    return is;
}

/* The name of a call if it is of the kind that is asked for; else NULL. */
static const char *name_of(pid_t pid, const struct user_regs_struct *r)
{
    const char *name;

    return (kinds_of(pid, r, &name) & wanted()) != 0 ? name : NULL;
}

static bool is_its_turn(void)
{
    plan.n++;
    return plan.n == plan.first || (plan.every != 0 && plan.n > plan.first &&
                                    (plan.n - plan.first) % plan.every == 0);
}

/* ---- Tracing -------------------------------------------------------------
 */

static size_t slot_of(pid_t pid)
{
    size_t free_slot = 0;

    for (size_t i = 1; i < MAX_PROCESSES; i++) {
        if (process[i].pid == pid) {
            return i;
        }
        free_slot = free_slot == 0 && process[i].pid == 0 ? i : free_slot;
    }
    process[free_slot].pid = pid;
    process[free_slot].failing = false;
    return free_slot;
}

/* A call begins or has ended. One that is to fail gets a number that is no
 * call's, and the error as its answer afterwards. */
static void at_call(pid_t pid)
{
    size_t at = slot_of(pid);
    struct user_regs_struct r;
    struct __ptrace_syscall_info info;
    const char *name;

    if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) <= 0 ||
        ptrace(PTRACE_GETREGS, pid, NULL, &r) != 0) {
        return;
    }
    if (info.op == PTRACE_SYSCALL_INFO_EXIT && process[at].failing) {
        process[at].failing = false;
        r.rax = (unsigned long long)-(long long)plan.error;
        (void)ptrace(PTRACE_SETREGS, pid, NULL, &r);
    } else if (plan.begun && info.op == PTRACE_SYSCALL_INFO_ENTRY &&
               (name = name_of(pid, &r)) && is_its_turn()) {
        process[at].failing = true;
        r.orig_rax = (unsigned long long)-1;
        (void)ptrace(PTRACE_SETREGS, pid, NULL, &r);
        if (plan.hit[0] == '\0') {
            snprintf(plan.hit, sizeof(plan.hit), "%s", name);
        }
    }
}

/* Whether a process has no handler for a signal. */
static bool is_fatal(pid_t pid, int number)
{
    char path[64];
    char line[256];
    unsigned long long caught = 0;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f)) {
        if (strncmp(line, "SigCgt:", 7) == 0) {
            caught = strtoull(line + 7, NULL, 16);
        }
    }
    if (f) {
        (void)fclose(f);
    }
    return (caught >> (number - 1) & 1) == 0;
}

/* The kernel does not end the first process of a namespace for a fault of its
 * own while it is traced: it would run into it forever. Let go of, it does so
 * once more, and dies of it. */
static bool let_die(pid_t pid, int number)
{
    if ((number != SIGSEGV && number != SIGBUS && number != SIGILL &&
         number != SIGFPE) ||
        !is_fatal(pid, number) || ptrace(PTRACE_DETACH, pid, NULL, NULL) != 0) {
        return false;
    }
    process[slot_of(pid)].pid = 0;
    return true;
}

static void at_stop(pid_t pid, int status)
{
    const int number = WSTOPSIG(status);
    const int event = status >> 16;

    if (number == (SIGTRAP | 0x80)) {
        at_call(pid);
        (void)ptrace(PTRACE_SYSCALL, pid, NULL, NULL);
    } else if (event == PTRACE_EVENT_STOP && number != SIGTRAP) {
        (void)ptrace(PTRACE_LISTEN, pid, NULL, NULL); /* it is stopped */
    } else if (event != 0 || !let_die(pid, number)) {
        plan.begun = plan.begun || event == PTRACE_EVENT_EXEC;
        (void)ptrace(PTRACE_SYSCALL, pid, NULL, event != 0 ? 0L : (long)number);
    }
}

/* Names the processes that outlive the command, and ends them. */
static void end_others(void)
{
    for (size_t i = 1; i < MAX_PROCESSES; i++) {
        char path[64];
        char name[64] = "";
        FILE *f;

        if (process[i].pid == 0) {
            continue;
        }
        snprintf(path, sizeof(path), "/proc/%d/comm", process[i].pid);
        f = fopen(path, "re");
        if (f && fgets(name, sizeof(name), f)) {
            dprintf(REPORT_FD, "left %s", name);
        }
        if (f) {
            (void)fclose(f);
        }
        (void)kill(process[i].pid, SIGKILL);
    }
}

/* Traces until no process is left; those that outlive the command have a
 * second. */
static int trace(pid_t command)
{
    struct timespec ended = {0, 0};
    int code = SKIPPED;

    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, __WALL | (ended.tv_sec ? WNOHANG : 0));

        if (pid < 0 && errno != EINTR) {
            return code;
        }
        if (pid > 0 && WIFSTOPPED(status)) {
            (void)slot_of(pid);
            at_stop(pid, status);
        } else if (pid > 0) {
            process[slot_of(pid)].pid = 0;
            if (pid == command) {
                code = WIFEXITED(status) ? WEXITSTATUS(status)
                                         : 128 + WTERMSIG(status);
                (void)clock_gettime(CLOCK_MONOTONIC, &ended);
            }
        } else if (pid == 0) {
            struct timespec now;

            (void)clock_gettime(CLOCK_MONOTONIC, &now);
            if (now.tv_sec > ended.tv_sec + 1) {
                end_others();
            }
            (void)usleep(2000);
        }
    }
}

int main(int argc, char **argv)
{
    const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK |
                         PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
                         PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    char go = 0;
    int code;
    int gate[2];
    pid_t pid;

    if (argc < 6) {
        fprintf(stderr, "usage: %s KIND ERROR FIRST EVERY COMMAND ...\n",
                argv[0]);
        return 64;
    }
    plan.kind = argv[1];
    plan.error = (int)strtol(argv[2], NULL, 10);
    plan.first = strtoull(argv[3], NULL, 10);
    plan.every = strtoull(argv[4], NULL, 10);
    if (wanted() == 0 || pipe2(gate, O_CLOEXEC) != 0) {
        return 64;
    }
    pid = fork();
    if (pid == 0) {
        (void)close(gate[1]);
        (void)close(REPORT_FD);
        if (read(gate[0], &go, 1) == 1) {
            (void)execvp(argv[5], argv + 5);
        }
        _exit(127);
    }
    if (pid < 0 || ptrace(PTRACE_SEIZE, pid, NULL, options) != 0) {
        fprintf(stderr, "no ptrace here: %s\n", strerror(errno));
        return SKIPPED;
    }
    (void)ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
    if (write(gate[1], &go, 1) != 1) {
        return SKIPPED;
    }
    code = trace(pid);
    dprintf(REPORT_FD, "calls %llu %s\n", (unsigned long long)plan.n, plan.hit);
    return code;
}

#else

int main(void)
{
    return 77;
}

#endif
