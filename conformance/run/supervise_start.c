/* SPDX-License-Identifier: Apache-2.0 */
/*
 * supervise_start.c - starts a worker: makes its folder, its command line and
 * its descriptors, and keeps it away from all else.
 */
#include "cases/case_script.h"
#include "run/process/isolate.h"
#include "run/supervise_worker.h"
#include "run/worker/case_record.h"
#include "run/worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    MAX_ARGUMENTS = 64,
    MAX_OUTPUTS = 512 /* outputs of all workers: a process may have 1024
                         files */
};

/* Writes the batch's scripts that are not the suite's into a file beside it:
 * one behind the other, each with the 0 that ends it. */
static bool write_scripts(const struct supervised *w)
{
    char path[sizeof(w->batch) + 16];
    FILE *f;
    bool good;

    snprintf(path, sizeof(path), "%s" WORKER_SCRIPTS, w->batch);
    f = fopen(path, "wbe");
    good = f != NULL;
    for (uint32_t i = w->next; good && i < w->n; i++) {
        const struct case_script *s = case_script_of(&w->cases[i]);

        if (s && s->given) {
            good = fwrite(s->text, strlen(s->text) + 1, 1, f) == 1;
        }
    }
    if (f && fclose(f) != 0) {
        good = false;
    }
    return good;
}

static int write_batch(struct supervised *w, struct fsdp_error *error)
{
    uint32_t n = w->n - w->next;
    FILE *f;
    bool good;

    snprintf(w->batch, sizeof(w->batch), "%s/batch", w->folder);
    f = fopen(w->batch, "wbe");
    good = f && fwrite(w->cases + w->next, sizeof(*w->cases), n, f) == n;
    if (f && fclose(f) != 0) {
        good = false;
    }
    good = good && write_scripts(w);
    return good ? FSDP_OK : worker_folder_fail(error, "cannot write", w->batch);
}

/* A command line, word by word. Words of launcher and wrapper are split at
 * blanks;
 * "{K}" in them becomes the number of ranks. */
struct command {
    char *word[MAX_ARGUMENTS + 1];
    uint32_t n;
    char text[16384];
    size_t used;
};

static void add_word(struct command *c, const char *word, uint32_t ranks)
{
    char *to = c->text + c->used;
    size_t room = sizeof(c->text) - c->used;
    const char *mark = strstr(word, "{K}");
    int n;

    if (c->n == MAX_ARGUMENTS) {
        return;
    }
    n = mark ? snprintf(to, room, "%.*s%u%s", (int)(mark - word), word, ranks,
                        mark + 3)
             : snprintf(to, room, "%s", word);
    if (n >= 0 && (size_t)n < room) {
        c->word[c->n++] = to;
        c->used += (size_t)n + 1;
    }
}

static void add_words(struct command *c, const char *words, uint32_t ranks)
{
    char copy[1024];
    char *rest = copy;
    char *word;

    snprintf(copy, sizeof(copy), "%s", words);
    while ((word = strtok_r(rest, " \t", &rest))) {
        add_word(c, word, ranks);
    }
}

static void add_option(struct command *c, const char *name, const char *value)
{
    if (value) {
        add_word(c, name, 0);
        add_word(c, value, 0);
    }
}

static void add_number(struct command *c, const char *name, uint32_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "%u", value);
    add_option(c, name, text);
}

static bool is_mpi(const struct supervised *w)
{
    return w->job->world == WORLD_MPI;
}

static void make_command(struct supervised *w, struct command *c)
{
    const struct supervise_job *job = w->job;
    char self[1024] = "/proc/self/exe";
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    memset(c, 0, sizeof(*c));
    if (n > 0) {
        self[n] = '\0';
    }
    if (is_mpi(w)) {
        add_words(c, job->launcher, w->cases[w->next].ranks);
    }
    if (job->wrap) {
        add_words(c, job->wrap, 0);
    }
    add_word(c, self, 0);
    add_word(c, "worker", 0);
    add_option(c, "--batch", w->batch);
    add_option(c, "--records", is_mpi(w) ? job->records : w->folder);
    add_option(c, "--engine", job->engine);
    add_option(c, "--mutant", job->mutant);
    add_option(c, "--text", job->text);
    add_option(c, "--world", world_names[job->world]);
    add_number(c, "--timeout-ms", job->timeout_ms);
    if (job->trace) {
        add_word(c, "--trace-events", 0);
    }
    if (job->isolate) {
        add_word(c, "--isolated", 0);
    }
    if (job->sample) {
        add_number(c, "--sample-ranks", job->sample);
    }
    if (job->wrap) {
        add_word(c, "--wrapped", 0);
    }
    if (job->debug) {
        add_number(c, "--debug-rank", job->debug);
    }
    if (!is_mpi(w)) {
        add_number(c, "--words", WORKER_WORDS_FD);
        add_number(c, "--outputs", w->n_outputs - 1);
    }
}

/* The worker's own ends of its descriptors. */
struct ends {
    int words, output[SUPERVISED_OUTPUTS];
};

/* Moves descriptors to the numbers where a worker looks for them. */
static void place_ends(const struct supervised *w, const struct ends *e)
{
    enum {
        FAR = WORKER_OUTPUTS_FD + SUPERVISED_OUTPUTS /* beyond all numbers that
                                                        a worker looks for */
    };
    int words = fcntl(e->words, F_DUPFD_CLOEXEC, FAR);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int output[SUPERVISED_OUTPUTS] = {0};

    for (uint32_t i = 0; i < w->n_outputs; i++) {
        output[i] = fcntl(e->output[i], F_DUPFD_CLOEXEC, FAR);
        words = output[i] < 0 ? -1 : words;
    }
    if (words < 0) { /* EINVAL: FAR is beyond the limit */
        dprintf(e->words, "refuse %d cannot start a worker: %s\n",
                FSDP_ERR_NOMEM, strerror(errno == EINVAL ? EMFILE : errno));
        _exit(1);
    }
    dup2(is_mpi(w) ? words : output[0], STDOUT_FILENO);
    dup2(output[0], STDERR_FILENO);
    if (is_mpi(w)) {
        return;
    }
    dup2(null, STDIN_FILENO); /* a worker never reads from the terminal */
    dup2(words, WORKER_WORDS_FD);
    for (uint32_t i = 1; i < w->n_outputs; i++) {
        dup2(output[i], WORKER_OUTPUTS_FD + (int)i - 1);
    }
}

static _Noreturn void die(const struct ends *e, const char *what,
                          const char *which)
{
    dprintf(e->words, "refuse %d cannot %s %s: %s\n", FSDP_ERR_IO, what, which,
            strerror(errno));
    _exit(127);
}

/* Whether the supervisor is gone: it may have died before the kernel was told
 * to kill the worker then. Its process number is 0 if it is in another
 * namespace; but if it is gone nothing reads from our descriptors. */
static bool is_alone(const struct ends *e)
{
    struct pollfd end = {.fd = e->words, .events = POLLOUT};

    return poll(&end, 1, 0) == 1 && (end.revents & (POLLERR | POLLHUP));
}

/* Sets defaults for Open MPI that a user may override. mpirun does not notice
 * by itself that a host is gone or its link is cut: here mpirun and each host's
 * daemon ask each other, and the one that gets no answer for half a minute says
 * so, and ends its ranks and itself. By default they would wait for minutes
 * before they ask. */
static void set_open_mpi(void)
{
    setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 0);
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    setenv("OMPI_MCA_oob_tcp_keepalive_time", "10", 0);
    setenv("OMPI_MCA_oob_tcp_keepalive_intvl", "5", 0);
    setenv("OMPI_MCA_oob_tcp_keepalive_probes", "4", 0);
}

/* A worker dies with its supervisor. mpirun is asked to end instead, so that
 * it takes its ranks with it. */
static _Noreturn void become(struct supervised *w, struct command *c,
                             const struct ends *e, const struct isolate *how)
{
    char tmp[sizeof(w->folder) + 8];

    if (is_mpi(w)) {
        setpgid(0, 0);
    } else {
        setsid(); /* without a terminal to write to */
    }
    prctl(PR_SET_PDEATHSIG, is_mpi(w) ? SIGTERM : SIGKILL);
    close(w->words);
    if (is_alone(e)) {
        _exit(127);
    }
    if (how && !isolate_enter(how)) {
        die(e, "isolate", "a worker");
    }
    if (!is_mpi(w)) {
        (void)isolate_drop_rights();
        snprintf(tmp, sizeof(tmp), "%s/tmp", w->folder);
        setenv("TMPDIR", tmp, 1);
    }
    if (geteuid() == 0) { /* Open MPI asks for consent to run as root */
        setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
        setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    }
    set_open_mpi();
    place_ends(w, e);
    execvp(c->word[0], c->word);
    die(e, "start", c->word[0]);
}

static void close_ends(const struct ends *e, uint32_t n)
{
    if (e->words >= 0) {
        close(e->words);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (e->output[i] >= 0) {
            close(e->output[i]);
        }
    }
}

/* Makes two ends: ours is read without waiting. With `answers` we can write to
 * it, too, so that the worker is told that it was heard. */
static bool open_two(bool answers, int *ours, int *theirs)
{
    int fd[2] = {-1, -1};
    bool good =
        (answers ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd)
                 : pipe2(fd, O_CLOEXEC)) == 0;

    *ours = fd[0];
    *theirs = fd[1];
    return good && fcntl(fd[0], F_SETFL, O_NONBLOCK) == 0;
}

static int open_ends(struct supervised *w, struct ends *e,
                     struct fsdp_error *error)
{
    bool good = open_two(!is_mpi(w), &w->words, &e->words);

    for (uint32_t i = 0; i < w->n_outputs; i++) {
        w->output[i] = (struct supervised_output){.fd = -1};
        e->output[i] = -1;
        good = good && open_two(false, &w->output[i].fd, &e->output[i]);
    }
    if (!good) {
        int status =
            worker_folder_fail(error, "no descriptors for", "a worker");

        supervised_close(w);
        close_ends(e, w->n_outputs);
        return status;
    }
    return FSDP_OK;
}

/* Counts a worker's outputs: its own, and one for each rank that is a process.
 * If there are many workers with many ranks, the last ranks print to their
 * worker's output. */
static uint32_t count_outputs(const struct supervised *w)
{
    const uint32_t n_workers = w->job->n_workers ? w->job->n_workers : 1;
    const uint32_t room = MAX_OUTPUTS / n_workers;
    uint32_t most = 0;

    for (uint32_t i = w->next; i < w->n && w->job->world == WORLD_LOCAL; i++) {
        most = w->cases[i].ranks > most ? w->cases[i].ranks : most;
    }
    most = most < WORLD_MAX_RANKS ? most : WORLD_MAX_RANKS;
    return 1 + (most < room ? most : room);
}

static int start_process(struct supervised *w, struct ends *e,
                         struct fsdp_error *error)
{
    const struct supervise_job *job = w->job;
    char *sealed = realpath(job->sealed ? job->sealed : job->records, NULL);
    const struct isolate how = {.sealed = sealed,
                                .open = w->folder,
                                .needed = strchr(job->engine, '/') ? job->engine
                                                                   : NULL};
    struct command c;

    make_command(w, &c);
    w->isolated = sealed && !is_mpi(w) && !job->wrap && !job->debug &&
                  isolate_possible(&how);
    w->pid = w->isolated ? isolate_fork() : fork();
    if (w->pid == 0) {
        become(w, &c, e, w->isolated ? &how : NULL);
    }
    free(sealed);
    if (w->pid < 0) {
        w->pid = 0;
        return worker_folder_fail(error, "cannot fork", "a worker");
    }
    if (is_mpi(w)) {
        setpgid(w->pid, w->pid); /* done by both, since either may come first */
    }
    w->exit = (int)syscall(SYS_pidfd_open, w->pid, 0); /* -1: an old kernel */
    return FSDP_OK;
}

int supervised_start(struct supervised *w, uint32_t index,
                     struct fsdp_error *error)
{
    struct ends e = {.words = -1};
    int status;

    FSDP_TRY(worker_folder_make(w->job->records, index, w->folder, error));
    FSDP_TRY(write_batch(w, error));
    w->started = w->next;
    w->in_case = false;
    w->killed = false;
    w->refused = (struct fsdp_error){0};
    w->line_n = 0;
    w->shown = 0;
    told_begin(&w->told, NULL);
    w->named_signal = 0;
    w->stopped = (struct timespec){0};
    w->exit = -1;
    w->n_outputs = count_outputs(w);
    clock_gettime(CLOCK_MONOTONIC, &w->last);
    FSDP_TRY(open_ends(w, &e, error));
    status = start_process(w, &e, error);
    close_ends(&e, w->n_outputs);
    if (status != FSDP_OK) {
        supervised_close(w);
    }
    return status;
}
