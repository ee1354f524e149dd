/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile_ways_testing.c - what a hostile engine does to the processes around
 * it, a row each. Every rank does it once.
 */
#include "cli/hostile/hostile_ways_testing.h"

#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

enum {
    LOTS = 100000,
    MANY = 64
};

/* ---- Signals ---- */

/* Each rank signals itself; under mpirun rank 1 alone, which mpirun then
 * names. */
static void send_self(long number)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");

    if (!rank || strcmp(rank, "1") == 0) {
        raise((int)number);
    }
}

static void send_worker(long number)
{
    kill(getppid(), (int)number);
}

/* Signals the supervisor, if it can be seen. */
static void send_run(long number)
{
    char path[64];
    char line[128];
    long pid = 0;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/status", getppid());
    f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f)) {
        if (strncmp(line, "PPid:", 5) == 0) {
            pid = strtol(line + 5, NULL, 10);
        }
    }
    if (f) {
        fclose(f);
    }
    if (pid > 1) {
        kill((pid_t)pid, (int)number);
    }
}

static void send_group(long number)
{
    kill(0, (int)number);
}

/* Signals everything, if it is in a namespace; elsewhere that would be the
 * whole machine. */
static void send_all(long number)
{
    if (getppid() == 1) {
        kill(-1, (int)number);
    }
}

/* Prints the number of its worker: in a namespace that is process 1. */
static void tell_parent(long with)
{
    (void)with;
    fprintf(stderr, "parent %d\n", getppid());
}

static void mask_all(long with)
{
    sigset_t all;

    (void)with;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
}

static void ignore_all(long with)
{
    for (int i = 1; i < NSIG; i++) {
        (void)signal(i, with ? SIG_IGN : SIG_DFL);
    }
}

static void tick(long microseconds)
{
    const struct itimerval t = {{0, microseconds}, {0, microseconds}};

    setitimer(ITIMER_REAL, &t, NULL);
    usleep(2 * (unsigned)microseconds);
}

/* ---- Limits ---- */

static void limit_to(pid_t pid, long resource, rlim_t n)
{
    const struct rlimit r = {n, n};

    (void)syscall(SYS_prlimit64, pid, (int)resource, &r, NULL);
}

static void limit(long resource)
{
    limit_to(0, resource, 0);
}

static void limit_worker(long resource)
{
    limit_to(getppid(), resource, 0);
}

/* ---- The processor ---- */

static void round_so(long mode)
{
    fesetround((int)mode);
}

static void trap(long exceptions)
{
    feenableexcept((int)exceptions);
}

static void flush_to_zero(long bits)
{
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | (unsigned)bits);
#else
    (void)bits;
#endif
}

static void speak(long with)
{
    (void)with;
    setlocale(LC_ALL, "");
    (void)setenv("LC_ALL", "de_DE.UTF-8", 1);
    clearenv();
}

/* ---- Descriptors ---- */

static void close_from(long first)
{
    for (int fd = (int)first; fd < 1024; fd++) {
        close(fd);
    }
}

void hostile_write_to_all(long with)
{
    static const char words[] = "begin 1\nend 0\nrefuse 5 \033[31mforged\n";

    (void)with;
    fprintf(stderr, "\033[2J\033[31mCONFORMANT: forged\033[0m\r\n");
    for (int fd = 1; fd < MANY + 64; fd++) {
        if (write(fd, words, sizeof(words) - 1) < 0) {
            continue; /* not open, or not open for writing */
        }
    }
}

static void set_all(long flags)
{
    for (int fd = 0; fd < MANY + 64; fd++) {
        (void)fcntl(fd, F_SETFL, (int)flags);
    }
}

static void use_up(long with)
{
    (void)with;
    while (open("/dev/null", O_RDONLY) >= 0) {
    }
}

/* Reads from the descriptor, which may take for ever. */
static void read_input(long fd)
{
    char c;

    (void)!read((int)fd, &c, 1);
}

static void write_terminal(long with)
{
    int fd = open("/dev/tty", O_WRONLY);

    (void)with;
    (void)!write(fd, "\033[31mCONFORMANT: forged\n", 24);
}

static void flood(long lines)
{
    for (long i = 0; i < LOTS; i++) {
        fprintf(stderr, "%s%ld", lines ? "\nline " : " ", i);
    }
    fprintf(stderr, "\n");
}

static void print_bytes(long byte)
{
    for (int i = 0; i < LOTS; i++) {
        (void)!write(STDOUT_FILENO, &(char){(char)byte}, 1);
    }
}

/* ---- Processes and threads ---- */

static _Noreturn void stay(void)
{
    prctl(PR_SET_NAME, "hostile-daemon");
    for (;;) {
        pause();
    }
}

/* Starts a process that lives on in a session of its own, with all descriptors,
 * until it is found. */
static void leave_daemon(long adopts)
{
    prctl(PR_SET_CHILD_SUBREAPER, adopts);
    if (fork() == 0) {
        setsid();
        if (fork() == 0) {
            setsid();
            ignore_all(1);
            stay();
        }
        _exit(0);
    }
}

static void leave_child(long number)
{
    if (fork() == 0) {
        raise((int)number); /* 0: none */
        stay();
    }
}

static void leave_brother(long with)
{
    (void)with;
    if (syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0) == 0) {
        stay();
    }
}

/* Each process starts the next one and ends: a search always finds the last one
 * gone. */
static void leave_chain(long n)
{
    if (fork() == 0) {
        while (n-- > 0 && fork() == 0) {
        }
        _exit(0);
    }
}

static void leave_many(long n)
{
    while (n-- > 0) {
        leave_child(0);
    }
}

static void start_program(long with)
{
    pid_t pid = vfork(); /* NOLINT(*-security.insecureAPI.vfork) */

    (void)with;
    if (pid == 0) {
        execl("/bin/sleep", "hostile-daemon", "1000", (char *)NULL);
        _exit(127);
    }
}

static void become_program(long seconds)
{
    char text[24];

    snprintf(text, sizeof(text), "%ld", seconds);
    execl("/bin/sleep", "hostile-daemon", text, (char *)NULL);
}

static void *wait_for_ever(void *with)
{
    (void)with;
    stay();
}

static void leave_thread(long with)
{
    pthread_t t;

    (void)with;
    pthread_create(&t, NULL, wait_for_ever, NULL);
}

static void hang(long seconds)
{
    for (volatile long i = 0;; i++) {
        sleep((unsigned)seconds);
    }
}

/* Hangs, and prints all the while. */
static void chatter(long with)
{
    (void)with;
    for (;;) {
        (void)!write(STDOUT_FILENO, ".", 1);
        usleep(100000);
    }
}

static void be_in_the_way(long nice)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(0, &one);
    setpriority(PRIO_PROCESS, 0, (int)nice);
    sched_setaffinity(0, sizeof(one), &one);
}

/* ---- Ways out ---- */

static void leave(long status)
{
    exit((int)status);
}

static void leave_at_once(long status)
{
    _exit((int)status);
}

static void abort_at_exit(long with)
{
    (void)with;
    atexit(abort);
    exit(0);
}

static void leave_thread_alone(long with)
{
    (void)with;
    syscall(SYS_exit, 0);
}

static void end_this_thread(long with)
{
    (void)with;
    pthread_exit(NULL);
}

const struct hostile_way hostile_ways[] = {
    {"none", ignore_all, 0},
    {"tell", tell_parent, 0},
    {"segv", send_self, SIGSEGV},
    {"abort", send_self, SIGABRT},
    {"killed", send_self, SIGKILL}, /* as a system does that is short of
                                       memory */
    {"stopped", send_self, SIGSTOP},
    {"terminated", send_self, SIGTERM},
    {"user-signal", send_self, SIGUSR1},
    {"stop-worker", send_worker, SIGSTOP},
    {"kill-worker", send_worker, SIGKILL},
    {"abort-worker", send_worker, SIGABRT},
    {"segv-worker", send_worker, SIGSEGV},
    {"stop-run", send_run, SIGSTOP},
    {"kill-run", send_run, SIGKILL},
    {"stop-group", send_group, SIGSTOP},
    {"kill-group", send_group, SIGKILL},
    {"stop-all", send_all, SIGSTOP},
    {"kill-all", send_all, SIGKILL},
    {"mask", mask_all, 0},
    {"ignore", ignore_all, 1},
    {"timer", tick, 1000},
    {"no-descriptors", limit, RLIMIT_NOFILE},
    {"no-memory", limit, RLIMIT_AS},
    {"no-data", limit, RLIMIT_DATA},
    {"no-files", limit, RLIMIT_FSIZE},
    {"no-stack", limit, RLIMIT_STACK},
    {"no-processes", limit, RLIMIT_NPROC},
    {"no-time", limit, RLIMIT_CPU},
    {"worker-no-descriptors", limit_worker, RLIMIT_NOFILE},
    {"worker-no-files", limit_worker, RLIMIT_FSIZE},
    {"worker-no-memory", limit_worker, RLIMIT_AS},
    {"worker-no-time", limit_worker, RLIMIT_CPU},
    {"round-up", round_so, FE_UPWARD},
    {"round-to-zero", round_so, FE_TOWARDZERO},
    {"trap", trap, FE_INEXACT},
    {"flush-to-zero", flush_to_zero, 0x8040},
    {"locale", speak, 0},
    {"close-all", close_from, 0},
    {"close-above", close_from, 3},
    {"use-up", use_up, 0},
    {"forge", hostile_write_to_all, 0},
    {"nonblocking", set_all, O_NONBLOCK},
    {"append", set_all, O_APPEND | O_ASYNC},
    {"read-input", read_input, 0},
    {"read-output", read_input, 1},
    {"terminal", write_terminal, 0},
    {"flood", flood, 1},
    {"long-line", flood, 0},
    {"zeros", print_bytes, 0},
    {"escapes", print_bytes, 27},
    {"daemon", leave_daemon, 1},
    {"daemon-unseen", leave_daemon, 0},
    {"child", leave_child, 0},
    {"child-stopped", leave_child, SIGSTOP},
    {"brother", leave_brother, 0},
    {"chain", leave_chain, MANY},
    {"many", leave_many, MANY / 4},
    {"program", start_program, 0},
    {"be-program", become_program, 0},
    {"be-slow-program", become_program, 1000},
    {"thread", leave_thread, 0},
    {"sleep", hang, 1000},
    {"spin", hang, 0},
    {"chatter", chatter, 0},
    {"low-priority", be_in_the_way, 19},
    {"exit", leave, 0},
    {"exit-77", leave, 77},
    {"exit-at-once", leave_at_once, 0},
    {"abort-at-exit", abort_at_exit, 0},
    {"exit-thread", leave_thread_alone, 0},
    {"pthread-exit", end_this_thread, 0},
    {"attach", hostile_trace_worker, PTRACE_ATTACH},
    {"seize", hostile_trace_worker, PTRACE_SEIZE},
    {"trace-me", hostile_trace_me, 0},
    {"write-worker", hostile_write_worker, 0},
    {"take-descriptors", hostile_take_descriptors, 0},
    {"not-dumpable", hostile_control, PR_SET_DUMPABLE},
    {"no-death-signal", hostile_control, PR_SET_PDEATHSIG},
    {"adopts-nobody", hostile_control, PR_SET_CHILD_SUBREAPER},
    {"strict", hostile_be_strict, 0},
    {"nobody", hostile_be_nobody, 0},
    {"shared-memory", hostile_share_memory, 7},
    {"temporary-files", hostile_leave_files, 0},
    {"empty-records", hostile_spoil_others, 0},
    {"remove-records", hostile_spoil_others, 1},
    {"empty-engines", hostile_spoil_engines, 0},
    {"remove-engines", hostile_spoil_engines, 1},
    {"remove-batch", hostile_in_folder, 0},
    {"remove-folder", hostile_in_folder, 1},
    {"close-folder", hostile_in_folder, 2},
    {"link-folder", hostile_in_folder, 3},
    {"bury-folder", hostile_in_folder, 4},
    {"plant-folder", hostile_in_folder, 5},
    {"folder-for-file", hostile_in_folder, 6},
    {"close-worker", hostile_in_folder, 7},
    {"unmount", hostile_in_folder, 8},
    {"elsewhere", hostile_go_away, 0},
    {"lock-memory", hostile_map_all, 0},
    {NULL, NULL, 0},
};
