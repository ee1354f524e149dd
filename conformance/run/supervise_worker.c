/* SPDX-License-Identifier: Apache-2.0 */
/*
 * supervise_worker.c - starts, reads and buries workers.
 */
#include "run/supervise_worker.h"
#include "run/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MAX_ARGUMENTS = 64
};

static int fail(struct fsdp_error *error, const char *what, const char *path)
{
    error->status = FSDP_ERR_IO;
    snprintf(error->message, sizeof error->message, "%s %.150s: %s", what, path,
             strerror(errno));
    return FSDP_ERR_IO;
}

static int write_batch(struct lane *l, uint32_t index, struct fsdp_error *error)
{
    uint32_t n = l->n - l->next;
    FILE *f;
    bool good;

    snprintf(l->batch, sizeof l->batch, "%s/.batch-%u", l->job->records, index);
    f = fopen(l->batch, "wbe");
    good = f && fwrite(l->cases + l->next, sizeof *l->cases, n, f) == n;
    if (f && fclose(f) != 0) {
        good = false;
    }
    return good ? FSDP_OK : fail(error, "cannot write", l->batch);
}

/* A command line, word by word. Words of the launcher are split at blanks;
 * "{K}" in them becomes the number of ranks. */
struct command {
    char *word[MAX_ARGUMENTS + 1];
    uint32_t n;
    char text[2048];
    size_t used;
};

static void add(struct command *c, const char *word, uint32_t ranks)
{
    char *to = c->text + c->used;
    size_t room = sizeof c->text - c->used;
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

static void add_option(struct command *c, const char *name, const char *value)
{
    if (value) {
        add(c, name, 0);
        add(c, value, 0);
    }
}

static void make_command(struct lane *l, struct command *c)
{
    static const char *const world[] = {"local", "threads", "mpi"};
    const struct supervise_job *job = l->job;
    char self[1024] = "/proc/self/exe";
    char timeout[24];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    memset(c, 0, sizeof *c);
    if (n > 0) {
        self[n] = '\0';
    }
    if (job->world == WORLD_MPI) {
        char launcher[1024];
        char *rest = launcher;
        char *word;
        snprintf(launcher, sizeof launcher, "%s", job->launcher);
        while ((word = strtok_r(rest, " \t", &rest))) {
            add(c, word, l->cases[l->next].ranks);
        }
    }
    snprintf(timeout, sizeof timeout, "%u", job->timeout_ms);
    add(c, self, 0);
    add(c, "worker", 0);
    add_option(c, "--batch", l->batch);
    add_option(c, "--records", job->records);
    add_option(c, "--engine", job->engine);
    add_option(c, "--mutant", job->mutant);
    add_option(c, "--text", job->text);
    add_option(c, "--world", world[job->world]);
    add_option(c, "--timeout-ms", timeout);
    if (job->trace) {
        add(c, "--trace-events", 0);
    }
}

/* A worker dies with its supervisor. mpirun is asked to end instead, so that
 * it takes its ranks with it. */
static void become(struct command *c, int out, bool mpi, pid_t parent)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, mpi ? SIGTERM : SIGKILL);
    if (getppid() != parent) {
        _exit(127);
    }
    dup2(out, STDOUT_FILENO);
    if (geteuid() == 0) { /* Open MPI asks for consent to run as root */
        setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
        setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    }
    setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 0);
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    execvp(c->word[0], c->word);
    dprintf(STDOUT_FILENO, "refuse %d cannot start %s: %s\n", FSDP_ERR_IO,
            c->word[0], strerror(errno));
    _exit(127);
}

int lane_start(struct lane *l, uint32_t index, struct fsdp_error *error)
{
    struct command c;
    pid_t self = getpid();
    int ends[2];

    FSDP_TRY(write_batch(l, index, error));
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return fail(error, "pipe for", "a worker");
    }
    make_command(l, &c);
    l->started = l->next;
    l->in_case = false;
    l->killed = false;
    l->refused = (struct fsdp_error){0};
    l->line_n = 0;
    clock_gettime(CLOCK_MONOTONIC, &l->last);
    l->pid = fork();
    if (l->pid == 0) {
        become(&c, ends[1], l->job->world == WORLD_MPI, self);
    }
    close(ends[1]);
    l->fd = ends[0];
    if (l->pid < 0) {
        close(l->fd);
        l->pid = 0;
        return fail(error, "cannot fork", "a worker");
    }
    setpgid(l->pid, l->pid); /* whoever comes first, worker or we */
    return FSDP_OK;
}

/* Whether a line is this word and the index of a case. */
static bool says(const char *line, const char *word, uint32_t *index)
{
    size_t n = strlen(word);
    char *end;
    unsigned long value;

    if (strncmp(line, word, n) != 0 || line[n] < '0' || line[n] > '9') {
        return false;
    }
    errno = 0;
    value = strtoul(line + n, &end, 10);
    *index = (uint32_t)value;
    return errno == 0 && value <= UINT32_MAX;
}

/* "refuse", a status and a sentence. */
static void take_refusal(struct lane *l)
{
    const char *number = l->line + strlen("refuse ");
    char *end;
    long status;

    errno = 0;
    status = strtol(number, &end, 10);
    if (end == number || errno != 0 || status < INT32_MIN ||
        status > INT32_MAX || end[0] != ' ' || end[1] == '\0') {
        return; /* printed by the engine */
    }
    if (l->refused.status == FSDP_OK) {
        l->refused.status = (int32_t)status;
        snprintf(l->refused.message, sizeof l->refused.message, "%s", end + 1);
    }
}

static void take_line(struct lane *l, struct supervise_engine *engine)
{
    uint32_t i;

    if (says(l->line, "begin ", &i)) {
        l->in_case = true;
        if (l->started + i < l->n) {
            l->next = l->started + i;
        }
    } else if (says(l->line, "end ", &i)) {
        l->in_case = false;
        if (l->started + i < l->n) {
            l->next = l->started + i + 1;
        }
        l->n_ended++;
    } else if (says(l->line, "again ", &i)) {
        l->in_case = false;
        if (l->started + i < l->n) {
            l->next = l->started + i;
        }
    } else if (strncmp(l->line, "refuse ", strlen("refuse ")) == 0) {
        take_refusal(l);
    } else if (sscanf(l->line, "engine %63s %31s %1023[^\n]", engine->name,
                      engine->version, engine->claims) >= 2) {
        engine->known = true;
    } /* else: something that the engine printed; not ours */
}

bool lane_read(struct lane *l, struct supervise_engine *engine)
{
    char bytes[4096];
    ssize_t n = read(l->fd, bytes, sizeof bytes);

    if (n < 0) {
        return errno == EINTR || errno == EAGAIN;
    }
    clock_gettime(CLOCK_MONOTONIC, &l->last);
    for (ssize_t i = 0; i < n; i++) {
        if (bytes[i] == '\n') {
            l->line[l->line_n] = '\0';
            take_line(l, engine);
            l->line_n = 0;
        } else if (l->line_n + 1 < sizeof l->line) {
            l->line[l->line_n++] = bytes[i];
        }
    }
    return n > 0;
}

/* The case that took the worker down gets a record that says so, if its own
 * ranks could not. */
static int account(struct lane *l, const struct supervise_engine *said,
                   int wait_status, struct fsdp_error *error)
{
    const struct run_case *c = &l->cases[l->next];
    struct world_result ends[WORLD_MAX_RANKS] = {0};
    char folder[WORKER_PATH_BYTES];
    char file[WORKER_PATH_BYTES + 16];
    char text[sizeof said->claims];
    const char *claims[64] = {NULL};
    struct fsdp_engine engine = {
        .name = said->name, .version = said->version, .claims = claims};
    char *rest = text;
    bool baseline;

    snprintf(text, sizeof text, "%s", said->claims);
    for (uint32_t i = 0; i < 63; i++) {
        claims[i] = strtok_r(rest, " ", &rest);
        if (!claims[i]) {
            break;
        }
    }
    baseline = claims[0] && strcmp(claims[0], "serial") == 0;
    worker_folder(l->job->records, c, baseline, folder);
    snprintf(file, sizeof file, "%s/case.json", folder);
    if (access(file, R_OK) == 0) {
        return FSDP_OK;
    }
    for (uint32_t r = 0; r < c->ranks && r < WORLD_MAX_RANKS; r++) {
        ends[r].end = l->killed                  ? WORLD_TIMED_OUT
                      : WIFSIGNALED(wait_status) ? WORLD_SIGNALLED
                                                 : WORLD_EXITED;
        ends[r].signal = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;
        ends[r].status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 0;
    }
    return worker_write_case(folder, c, &engine,
                             l->job->world == WORLD_MPI ? "mpi" : "local",
                             c->ranks, ends, error);
}

/* Ends what a worker left behind. It becomes ours when its parent dies
 * (supervise_catch_signals), so nothing of it runs on when this returns. */
static void end_group(pid_t group)
{
    kill(-group, SIGKILL);
    while (waitpid(-group, NULL, 0) > 0 || errno == EINTR) {
    }
}

/* No worker could run: the user's to put right, unless memory was short. */
static int refused(const struct lane *l, int wait_status,
                   struct fsdp_error *error)
{
    bool early = !l->in_case && l->next == l->started;
    struct fsdp_error why = l->refused;

    if (why.status == FSDP_OK) {
        snprintf(why.message, sizeof why.message,
                 "engine %.100s: the worker %s %d before its first case",
                 l->job->engine,
                 WIFSIGNALED(wait_status) ? "was ended by signal"
                                          : "exited with",
                 WIFSIGNALED(wait_status) ? WTERMSIG(wait_status)
                                          : WEXITSTATUS(wait_status));
    }
    if (early && why.status != FSDP_ERR_NOMEM) {
        why.status = FSDP_ERR_INVALID;
    }
    if (error->status == FSDP_OK) {
        *error = why;
    }
    return error->status;
}

int lane_end(struct lane *l, const struct supervise_engine *engine,
             struct fsdp_error *error)
{
    int wait_status = 0;
    int status = FSDP_OK;

    close(l->fd);
    while (waitpid(l->pid, &wait_status, 0) < 0 && errno == EINTR) {
    }
    end_group(l->pid);
    l->pid = 0;
    unlink(l->batch);
    if (l->refused.status != FSDP_OK ||
        (l->next < l->n && !l->in_case && l->next == l->started)) {
        return refused(l, wait_status, error);
    }
    if (l->in_case) {
        status = account(l, engine, wait_status, error);
        l->next++;
        l->n_ended++;
    }
    return status;
}

static int64_t since_ms(const struct timespec *then)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - then->tv_sec) * 1000 +
           (now.tv_nsec - then->tv_nsec) / 1000000;
}

void lane_watch(struct lane *l)
{
    int64_t most = 4LL * l->job->timeout_ms + 30000;

    /* A world ends itself after its own watchdog's time, twice at most. */
    if (l->pid && since_ms(&l->last) > most) {
        l->killed = true;
        kill(-l->pid, SIGKILL);
    }
}

void lane_stop(struct lane *l)
{
    if (l->pid) {
        kill(-l->pid, SIGTERM); /* mpirun takes its ranks with it */
        clock_gettime(CLOCK_MONOTONIC, &l->last);
    }
}

void lane_kill(struct lane *l)
{
    int64_t patience = l->job && l->job->world == WORLD_MPI ? 1500 : 50;

    if (!l->pid) {
        return;
    }
    while (waitpid(l->pid, NULL, WNOHANG) == 0) {
        if (since_ms(&l->last) > patience) {
            kill(-l->pid, SIGKILL);
            while (waitpid(l->pid, NULL, 0) < 0 && errno == EINTR) {
            }
            break;
        }
        usleep(2000);
    }
    close(l->fd);
    end_group(l->pid);
    l->pid = 0;
    unlink(l->batch);
}
