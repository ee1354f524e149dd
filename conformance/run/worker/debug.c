/* SPDX-License-Identifier: Apache-2.0 */
/* debug.c - see debug.h. */
#include "run/worker/debug.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- In the rank ---- */

static volatile sig_atomic_t released;

static void on_release(int number)
{
    (void)number;
    released = 1;
}

static bool is_traced(void)
{
    static const char word[] = "TracerPid:";
    FILE *f = fopen("/proc/self/status", "re");
    char line[256];
    long tracer = 0;

    while (f && fgets(line, sizeof(line), f)) {
        if (strncmp(line, word, sizeof(word) - 1) == 0) {
            tracer = strtol(line + sizeof(word) - 1, NULL, 10);
        }
    }
    if (f) {
        (void)fclose(f);
    }
    return tracer != 0;
}

static bool say_pid(const char *file)
{
    char partial[4096 + 64];
    FILE *f;
    bool good;

    snprintf(partial, sizeof(partial), "%s.partial", file);
    f = fopen(partial, "we");
    good = f && fprintf(f, "%d\n", (int)getpid()) > 0;
    good = (!f || fclose(f) == 0) && good;
    return good && rename(partial, file) == 0;
}

bool debug_wait(const char *file)
{
    const struct timespec moment = {.tv_nsec = 20000000};

    (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    (void)signal(SIGCONT, on_release);
    if (!say_pid(file)) {
        return false;
    }
    while (!is_traced() && !released) {
        (void)nanosleep(&moment, NULL);
    }
    (void)signal(SIGCONT, SIG_DFL);
    if (!is_traced()) {
        return false;
    }
    /* A signal that is ignored stops the process under a debugger, and nowhere
     * else. */
    (void)signal(SIGTRAP, SIG_IGN);
    (void)raise(SIGTRAP);
    (void)signal(SIGTRAP, SIG_DFL);
    return true;
}

/* ---- In the supervisor ---- */

static pid_t read_pid(const char *file)
{
    FILE *f = fopen(file, "re");
    char line[32] = "";

    if (f) {
        if (!fgets(line, sizeof(line), f)) {
            line[0] = '\0';
        }
        (void)fclose(f);
    }
    return (pid_t)strtol(line, NULL, 10);
}

/* What gdb prints when the rank has stopped. */
static char hint[] = "echo \\nThe rank waits before its first call of the "
                     "engine, and the others wait for it.\\n"
                     "Set breakpoints, then: continue\\n";

static _Noreturn void be_gdb(pid_t rank)
{
    char pid[16];
    char quiet[] = "handle SIGCONT nostop noprint";
    char go_on[] = "continue";
    char *const word[] = {"gdb", "-q",  "-p",  pid,  "-ex", quiet,
                          "-ex", go_on, "-ex", hint, NULL};

    snprintf(pid, sizeof(pid), "%d", (int)rank);
    (void)signal(SIGINT, SIG_DFL);
    (void)signal(SIGTERM, SIG_DFL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGTSTP, SIG_DFL);
    (void)execvp(word[0], word);
    fprintf(stderr, "fsdp-cts: gdb: %s\n", strerror(errno));
    _exit(127);
}

static bool has_ended(struct debugger *d, int how)
{
    pid_t ended;

    do {
        ended = waitpid(d->gdb, NULL, how);
    } while (ended < 0 && errno == EINTR);
    if (ended == 0) {
        return false;
    }
    d->gdb = -1;
    /* The rank goes on without a debugger, if it still waits. */
    (void)kill(d->rank, SIGCONT);
    return true;
}

void debugger_look(struct debugger *d, const char *file)
{
    if (d->gdb > 0) {
        (void)has_ended(d, WNOHANG);
    } else if (d->gdb == 0 && access(file, R_OK) == 0) {
        d->rank = read_pid(file);
        if (d->rank <= 1) {
            return;
        }
        (void)signal(SIGINT, SIG_IGN); /* from here on interrupts are gdb's */
        d->gdb = fork();
        if (d->gdb == 0) {
            be_gdb(d->rank);
        }
        if (d->gdb < 0) {
            (void)kill(d->rank, SIGCONT);
        }
    }
}

void debugger_end(struct debugger *d)
{
    if (d->gdb > 0) {
        (void)has_ended(d, 0);
    }
}
