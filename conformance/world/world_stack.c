/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world_stack.c - writes where the ranks of a local world stood when one of
 * them died or none got on.
 *
 * A rank writes it itself, in a handler of signals: addresses, and which file
 * is mapped where; the reader finds the names (run/process/stack_names.c). So
 * only the C library is needed, and the text is there before the process is
 * gone. The handlers call only what a handler may call. The unwinder loads
 * itself at its first call, so that is made before.
 */
#include "arena.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__has_include)
#    if __has_include(<execinfo.h>)
#        include <execinfo.h>
#        define HAS_BACKTRACE 1
#    endif
#endif

enum {
    MAX_FRAMES = 48,
    MAX_THREADS = 64, /* so many threads of a rank are asked */
    ALTERNATE_BYTES = 65536,
    /* Time for the unwinder in a process that is broken. */
    CRASH_SECONDS = 2,
    /* Time that ranks have to answer; and time for which they then wait, so
     * that one that sleeps does not go on before its world has ended. */
    ANSWER_MS = 400,
    HELD_MS = 1000
};

static char path[4096];
static const _Atomic int32_t *aborted;
static struct arena_rank *own;
static volatile sig_atomic_t dying; /* the first signal; 0: none */
static const char *_Atomic doing;   /* a wrong call; NULL: none */
static char alternate[ALTERNATE_BYTES];

static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS};

/* A signal that no C program uses by itself. */
static int ask_signal(void)
{
    return SIGRTMAX - 3;
}

/* ---- In the rank ---- */

#ifdef HAS_BACKTRACE
/* Text without the C library's formatting, which a handler may not use. */
struct text {
    char bytes[MAX_FRAMES * 24 + 192];
    size_t n;
};

static void put_text(struct text *t, const char *s)
{
    while (*s != '\0' && t->n < sizeof(t->bytes)) {
        t->bytes[t->n++] = *s++;
    }
}

static void put_number(struct text *t, uint64_t value, unsigned base)
{
    char digits[24];
    size_t i = sizeof(digits) - 1;

    digits[i] = '\0';
    do {
        digits[--i] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value > 0);
    put_text(t, digits + i);
}

/* Copies the lines of /proc/self/maps for code that is in a file. */
static void copy_maps(int to)
{
    char line[512];
    char bytes[2048];
    size_t n = 0;
    ssize_t got;
    int from = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

    while (from >= 0 && (got = read(from, bytes, sizeof(bytes))) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            if (n < sizeof(line)) {
                line[n++] = bytes[i];
            }
            if (bytes[i] == '\n') {
                if (memchr(line, '/', n) && memmem(line, n, " r-xp ", 6)) {
                    (void)!write(to, line, n);
                }
                n = 0;
            }
        }
    }
    if (from >= 0) {
        (void)close(from);
    }
}

/* The address at which the signal came; 0: the context of this machine is not
 * known here. */
static uintptr_t interrupted_at(const void *context)
{
    const ucontext_t *u = context;

#    if defined(__x86_64__)
    return (uintptr_t)u->uc_mcontext.gregs[REG_RIP];
#    elif defined(__aarch64__)
    return (uintptr_t)u->uc_mcontext.pc;
#    else
    (void)u;
    return 0;
#    endif
}

/* "signal 11 main", or "asked thread"; "doing begin-twice", if that is a wrong
 * call; an address a line; maps. Frames of the handler itself are left out. */
static void write_stack(int number, const void *context)
{
    void *frame[MAX_FRAMES];
    struct text t = {.n = 0};
    const char *const call = atomic_load(&doing);
    const uintptr_t at = interrupted_at(context);
    const int n = backtrace(frame, MAX_FRAMES);
    int first = 0;
    int to = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW,
                  0666);

    while (first < n && (uintptr_t)frame[first] != at) {
        first++;
    }
    if (first == n) {
        first = 0;
    }
    if (number != 0) {
        put_text(&t, "signal ");
        put_number(&t, (uint64_t)number, 10);
    } else {
        put_text(&t, "asked");
    }
    put_text(&t, syscall(SYS_gettid) == getpid() ? " main\n" : " thread\n");
    if (call) {
        put_text(&t, "doing ");
        put_text(&t, call);
        put_text(&t, "\n");
    }
    for (int i = first; i < n; i++) {
        put_number(&t, (uintptr_t)frame[i], 16);
        put_text(&t, "\n");
    }
    if (to >= 0) {
        (void)!write(to, t.bytes, t.n);
        copy_maps(to);
        (void)close(to);
    }
}
#else
static void write_stack(int number, const void *context)
{
    (void)number;
    (void)context;
}
#endif

static void die(void)
{
    (void)signal(dying, SIG_DFL);
    (void)raise(dying);
}

/* Dies of the first signal, if the handler takes too long. */
static void on_late(int number)
{
    (void)number;
    die();
}

static void on_crash(int number, siginfo_t *info, void *context)
{
    sigset_t late;

    (void)info;
    if (dying != 0) {
        die();
    }
    dying = number;
    (void)signal(SIGALRM, on_late);
    (void)sigemptyset(&late);
    (void)sigaddset(&late, SIGALRM);
    (void)pthread_sigmask(SIG_UNBLOCK, &late, NULL);
    (void)alarm(CRASH_SECONDS);
    write_stack(number, context);
    die();
}

static void on_ask(int number, siginfo_t *info, void *context)
{
    const int before = errno;
    const struct timespec moment = {.tv_nsec = 1000000};

    (void)number;
    if (info->si_pid == getppid()) {
        write_stack(0, context);
        atomic_fetch_add(&own->told, 1);
        for (int i = 0; i < HELD_MS && atomic_load(aborted) == FSDP_OK; i++) {
            (void)nanosleep(&moment, NULL);
        }
    }
    errno = before;
}

void world_stack_doing(const char *word)
{
    atomic_store(&doing, word);
}

void world_stack_prepare(void)
{
#ifdef HAS_BACKTRACE
    void *frame[2];

    (void)backtrace(frame, 2);
#endif
}

void arena_stack_to(struct arena_rank *rank, const _Atomic int32_t *world,
                    const char *file)
{
    struct sigaction crash = {.sa_sigaction = on_crash,
                              .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    struct sigaction ask = {.sa_sigaction = on_ask,
                            .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    const stack_t stack = {.ss_sp = alternate, .ss_size = sizeof(alternate)};
    const size_t n = strlen(file);

    if (n >= sizeof(path)) {
        return;
    }
    memcpy(path, file, n + 1);
    aborted = world;
    own = rank;
    (void)sigaltstack(&stack, NULL);
    for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++) {
        (void)sigaction(fatal[i], &crash, NULL);
    }
    if (sigaction(ask_signal(), &ask, NULL) == 0) {
        atomic_store(&own->answers, 1);
    }
}

/* ---- In its parent ---- */

/* Asks each thread, since a stream's may be the one that hangs. Returns how
 * many were asked. */
static uint32_t ask_one(pid_t pid)
{
    char folder[64];
    const struct dirent *e;
    uint32_t n = 0;
    DIR *d;

    snprintf(folder, sizeof(folder), "/proc/%d/task", (int)pid);
    d = opendir(folder);
    while (d && n < MAX_THREADS && (e = readdir(d))) {
        const long thread = strtol(e->d_name, NULL, 10);

        if (thread > 0 &&
            syscall(SYS_tgkill, pid, (pid_t)thread, ask_signal()) == 0) {
            n++;
        }
    }
    if (d) {
        (void)closedir(d);
    }
    return n;
}

void arena_stack_ask(struct arena *arena, const pid_t *pid)
{
    const int64_t end = arena_now_ms() + ANSWER_MS;
    uint32_t asked[WORLD_MAX_RANKS] = {0};

    for (uint32_t r = 0; r < arena->n_ranks; r++) {
        if (pid[r] != 0 && atomic_load(&arena_rank(arena, r)->answers) != 0 &&
            atomic_load(&arena_rank(arena, r)->ended) == 0) {
            asked[r] = ask_one(pid[r]);
        }
    }
    for (uint32_t r = 0; r < arena->n_ranks && arena_now_ms() < end; r++) {
        const struct timespec moment = {.tv_nsec = 1000000};

        while (atomic_load(&arena_rank(arena, r)->told) < asked[r] &&
               arena_now_ms() < end) {
            (void)nanosleep(&moment, NULL);
        }
    }
}
