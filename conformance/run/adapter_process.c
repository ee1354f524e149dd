/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adapter_process.c - starts a command, watches it, and leaves nothing of it
 * behind.
 */
#include "run/adapter_process.h"

#include "run/process/orphans.h"
#include "run/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    SHOWN_BYTES = 4096
};

static int fail(struct fsdp_error *error, const char *what)
{
    error->status = FSDP_ERR_IO;
    snprintf(error->message, sizeof(error->message), "%.100s: %s", what,
             strerror(errno));
    return FSDP_ERR_IO;
}

/* Quotes a word for the shell: "'" in it ends the quotes, stands by itself, and
 * begins them again. False: it did not fit, and is of no use. */
static bool quote(const char *word, char *to, size_t room)
{
    size_t n = 0;

    for (const char *p = word; n + 8 < room; p++) {
        if (p == word) {
            to[n++] = '\'';
        }
        if (*p == '\0') {
            to[n++] = '\'';
            to[n] = '\0';
            return true;
        }
        if (*p == '\'') {
            memcpy(to + n, "'\\''", 4);
            n += 4;
        } else {
            to[n++] = *p;
        }
    }
    return false;
}

static void become(const struct adapter_process *p, pid_t parent)
{
    char job[4200];
    char line[8192];
    int out = open(p->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int n = -1;

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (out < 0 || null < 0 || getppid() != parent) {
        _exit(127);
    }
    dup2(null, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    if (quote(p->job, job, sizeof(job))) {
        n = snprintf(line, sizeof(line), "%s %s %s", p->command, p->verb, job);
    }
    if (n > 0 && (size_t)n < sizeof(line)) {
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
    }
    _exit(127);
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static uint64_t progress_of(const struct adapter_process *p)
{
    struct stat s;
    uint64_t n = stat(p->output, &s) == 0 ? (uint64_t)s.st_size : 0;

    return n + (p->progress ? p->progress(p->context) : 0);
}

/* Watches the process. True: it has ended by itself. */
static bool watch(struct adapter_process *p, pid_t pid)
{
    uint64_t seen = 0;
    int64_t last = now_ms();

    while (!supervise_interrupted()) {
        uint64_t n;

        if (waitpid(pid, &p->wait_status, WNOHANG) == pid) {
            return true;
        }
        n = progress_of(p);
        if (n != seen) {
            seen = n;
            last = now_ms();
        }
        if (now_ms() - last > (int64_t)p->timeout_ms) {
            p->timed_out = true;
            return false;
        }
        usleep(20000);
    }
    return false;
}

int adapter_process_run(struct adapter_process *p, struct fsdp_error *error)
{
    pid_t self = getpid();
    pid_t pid = fork();
    bool ended;

    p->timed_out = false;
    p->wait_status = 0;
    if (pid == 0) {
        become(p, self);
    }
    if (pid < 0) {
        return fail(error, "cannot fork an adapter");
    }
    setpgid(pid, pid); /* done by both, since either may come first */
    ended = watch(p, pid);
    if (!ended) {
        kill(-pid, SIGTERM);
        for (int i = 0; i < 50 && !ended; i++) {
            ended = waitpid(pid, &p->wait_status, WNOHANG) == pid;
            usleep(20000);
        }
    }
    orphans_end_group(pid);
    if (supervise_interrupted()) {
        error->status = FSDP_ERR_ABORTED;
        snprintf(error->message, sizeof(error->message), "interrupted");
        return FSDP_ERR_ABORTED;
    }
    return FSDP_OK;
}

void adapter_process_show(const struct adapter_process *p)
{
    FILE *f = fopen(p->output, "re");
    char text[SHOWN_BYTES + 1];
    size_t n;

    if (!f) {
        return;
    }
    if (fseek(f, -(long)SHOWN_BYTES, SEEK_END) != 0) {
        rewind(f);
    }
    n = fread(text, 1, SHOWN_BYTES, f);
    (void)fclose(f);
    for (size_t i = 0; i < n; i++) {
        bool plain = (text[i] >= ' ' && text[i] <= '~') || text[i] == '\n';

        if (!plain) {
            text[i] = '?';
        }
    }
    text[n] = '\0';
    fprintf(stderr, "%s%s", text, n > 0 && text[n - 1] != '\n' ? "\n" : "");
}
