/* SPDX-License-Identifier: Apache-2.0 */
/*
 * supervise_worker.c - starts, watches and buries workers. What they say is
 * supervise_words.c's.
 */
#include "run/supervise_worker.h"
#include "run/case_record.h"
#include "run/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MAX_ARGUMENTS = 64,
    EXIT_NOT_BEGUN = 127 /* the loader's */
};

static int fail(struct fsdp_error *error, const char *what, const char *path)
{
    error->status = FSDP_ERR_IO;
    snprintf(error->message, sizeof(error->message), "%s %.150s: %s", what,
             path, strerror(errno));
    return FSDP_ERR_IO;
}

static int write_batch(struct supervised *w, uint32_t index,
                       struct fsdp_error *error)
{
    uint32_t n = w->n - w->next;
    FILE *f;
    bool good;

    snprintf(w->batch, sizeof(w->batch), "%s/.batch-%u", w->job->records,
             index);
    f = fopen(w->batch, "wbe");
    good = f && fwrite(w->cases + w->next, sizeof(*w->cases), n, f) == n;
    if (f && fclose(f) != 0) {
        good = false;
    }
    return good ? FSDP_OK : fail(error, "cannot write", w->batch);
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

static void add_option(struct command *c, const char *name, const char *value)
{
    if (value) {
        add(c, name, 0);
        add(c, value, 0);
    }
}

static void make_command(struct supervised *w, struct command *c)
{
    const struct supervise_job *job = w->job;
    char self[1024] = "/proc/self/exe";
    char timeout[24];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    memset(c, 0, sizeof(*c));
    if (n > 0) {
        self[n] = '\0';
    }
    if (job->world == WORLD_MPI) {
        char launcher[1024];
        char *rest = launcher;
        char *word;
        snprintf(launcher, sizeof(launcher), "%s", job->launcher);
        while ((word = strtok_r(rest, " \t", &rest))) {
            add(c, word, w->cases[w->next].ranks);
        }
    }
    snprintf(timeout, sizeof(timeout), "%u", job->timeout_ms);
    add(c, self, 0);
    add(c, "worker", 0);
    add_option(c, "--batch", w->batch);
    add_option(c, "--records", job->records);
    add_option(c, "--engine", job->engine);
    add_option(c, "--mutant", job->mutant);
    add_option(c, "--text", job->text);
    add_option(c, "--world", world_names[job->world]);
    add_option(c, "--timeout-ms", timeout);
    if (job->trace) {
        add(c, "--trace-events", 0);
    }
    if (job->world != WORLD_MPI) {
        char words[24];

        snprintf(words, sizeof(words), "%d", WORKER_WORDS_FD);
        add_option(c, "--words", words);
    }
}

/* A worker dies with its supervisor. mpirun is asked to end instead, so that
 * it takes its ranks with it. */
static void become(struct command *c, int words, int output, bool mpi,
                   pid_t parent)
{
    /* Out of the way of the numbers that are wanted. */
    const int away[] = {fcntl(words, F_DUPFD_CLOEXEC, WORKER_WORDS_FD + 1),
                        fcntl(output, F_DUPFD_CLOEXEC, WORKER_WORDS_FD + 1)};

    if (away[0] < 0 || away[1] < 0) {
        dprintf(words, "refuse %d cannot start a worker: %s\n", FSDP_ERR_NOMEM,
                strerror(errno));
        _exit(1);
    }
    words = away[0];
    output = away[1];
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, mpi ? SIGTERM : SIGKILL);
    if (getppid() != parent) {
        _exit(127);
    }
    dup2(mpi ? words : output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    if (!mpi) {
        dup2(words, WORKER_WORDS_FD);
    }
    if (geteuid() == 0) { /* Open MPI asks for consent to run as root */
        setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
        setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    }
    setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 0);
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    execvp(c->word[0], c->word);
    dprintf(words, "refuse %d cannot start %s: %s\n", FSDP_ERR_IO, c->word[0],
            strerror(errno));
    _exit(127);
}

static void close_end(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
}

/* Two pipes: [0] to be read here, without waiting; [1] for the worker. */
static int open_pipes(int words[2], int output[2], struct fsdp_error *error)
{
    words[0] = words[1] = output[0] = output[1] = -1;
    if (pipe2(words, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0 ||
        fcntl(words[0], F_SETFL, O_NONBLOCK) != 0 ||
        fcntl(output[0], F_SETFL, O_NONBLOCK) != 0) {
        int status = fail(error, "pipe for", "a worker");

        close_end(&words[0]);
        close_end(&words[1]);
        close_end(&output[0]);
        close_end(&output[1]);
        return status;
    }
    return FSDP_OK;
}

int supervised_start(struct supervised *w, uint32_t index,
                     struct fsdp_error *error)
{
    struct command c;
    pid_t self = getpid();
    int words[2];
    int output[2];

    FSDP_TRY(write_batch(w, index, error));
    FSDP_TRY(open_pipes(words, output, error));
    make_command(w, &c);
    w->started = w->next;
    w->in_case = false;
    w->killed = false;
    w->refused = (struct fsdp_error){0};
    w->line_n = w->text_n = 0;
    w->shown = 0;
    w->named_signal = 0;
    w->stopped = (struct timespec){0};
    clock_gettime(CLOCK_MONOTONIC, &w->last);
    w->pid = fork();
    if (w->pid == 0) {
        become(&c, words[1], output[1], w->job->world == WORLD_MPI, self);
    }
    close(words[1]);
    close(output[1]);
    w->words = words[0];
    w->output = output[0];
    w->exit = -1;
    if (w->pid < 0) {
        close_end(&w->words);
        close_end(&w->output);
        w->pid = 0;
        return fail(error, "cannot fork", "a worker");
    }
    w->exit = (int)syscall(SYS_pidfd_open, w->pid, 0); /* -1: an old kernel */
    setpgid(w->pid, w->pid); /* whoever comes first, worker or we */
    return FSDP_OK;
}

bool supervised_has_ended(struct supervised *w)
{
    return waitpid(w->pid, &w->wait_status, WNOHANG) == w->pid;
}

/* The case that took the worker down gets a record that says so, if its own
 * ranks could not. */
static int account(struct supervised *w, const struct supervise_engine *said,
                   struct fsdp_error *error)
{
    const struct run_case *c = &w->cases[w->next];
    char folder[CASE_FOLDER_BYTES];
    char file[CASE_FOLDER_BYTES + 16];
    char text[sizeof(said->claims)];
    const char *claims[64] = {NULL};
    const struct case_player player = {said->name, said->version, claims,
                                       w->job->world == WORLD_MPI ? "mpi"
                                                                  : "local"};
    char *rest = text;
    bool baseline;

    snprintf(text, sizeof(text), "%s", said->claims);
    for (uint32_t i = 0; i < 63; i++) {
        claims[i] = strtok_r(rest, " ", &rest);
        if (!claims[i]) {
            break;
        }
    }
    baseline = claims[0] && strcmp(claims[0], "serial") == 0;
    case_folder(w->job->records, c, baseline, folder);
    snprintf(file, sizeof(file), "%s/case.json", folder);
    return access(file, R_OK) == 0
               ? FSDP_OK
               : case_record_account(
                     folder, c, &player,
                     &(struct case_process_end){w->wait_status, w->killed,
                                                w->named_signal, w->named},
                     error);
}

/* Ends what a worker left behind. It becomes ours when its parent dies
 * (supervise_catch_signals), so nothing of it runs on when this returns. */
static void end_group(pid_t group)
{
    kill(-group, SIGKILL);
    while (waitpid(-group, NULL, 0) > 0 || errno == EINTR) {
    }
}

static void close_ends(struct supervised *w)
{
    close_end(&w->words);
    close_end(&w->output);
    close_end(&w->exit);
}

/* No worker could run: the user's to put right, unless memory was short. */
static int refused(const struct supervised *w, int wait_status,
                   struct fsdp_error *error)
{
    bool early = !w->in_case && w->next == w->started;
    bool killed = WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL;
    /* Its libraries could not be loaded: memory, descriptors. */
    bool is_not_begun = WIFEXITED(wait_status) &&
                        WEXITSTATUS(wait_status) == EXIT_NOT_BEGUN &&
                        w->refused.status == FSDP_OK;
    struct fsdp_error why = w->refused;

    if (why.status == FSDP_OK) {
        snprintf(why.message, sizeof(why.message),
                 "engine %.100s: the worker %s %d before its first case",
                 w->job->engine,
                 WIFSIGNALED(wait_status) ? "was ended by signal"
                                          : "exited with",
                 WIFSIGNALED(wait_status) ? WTERMSIG(wait_status)
                                          : WEXITSTATUS(wait_status));
    }
    if (killed || is_not_begun) {      /* by the system, or by somebody */
        why.status = FSDP_ERR_ABORTED; /* not the user's to mend */
    } else if (early && why.status != FSDP_ERR_NOMEM) {
        why.status = FSDP_ERR_INVALID;
    }
    if (error->status == FSDP_OK) {
        *error = why;
    }
    return error->status;
}

int supervised_end(struct supervised *w, const struct supervise_engine *engine,
                   struct fsdp_error *error)
{
    int status = FSDP_OK;

    close_ends(w);
    end_group(w->pid);
    w->pid = 0;
    unlink(w->batch);
    if (w->refused.status != FSDP_OK ||
        (w->next < w->n && !w->in_case && w->next == w->started)) {
        return refused(w, w->wait_status, error);
    }
    if (w->in_case) {
        status = account(w, engine, error);
        w->next++;
        w->n_ended++;
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

/* Whether the worker itself was stopped, and for longer than a rank may be
 * without progress. (A rank that is stopped is its world's to end.) */
static bool is_stopped_for_good(struct supervised *w)
{
    siginfo_t info = {0};
    const int how = WSTOPPED | WNOHANG | WNOWAIT;

    if (waitid(P_PID, (id_t)w->pid, &info, how) != 0 || info.si_pid == 0) {
        w->stopped = (struct timespec){0};
        return false;
    }
    if (w->stopped.tv_sec == 0) {
        clock_gettime(CLOCK_MONOTONIC, &w->stopped);
    }
    return since_ms(&w->stopped) > (int64_t)w->job->timeout_ms;
}

void supervised_watch(struct supervised *w)
{
    /* A world ends itself after its own watchdog's time, twice at most. */
    int64_t most = 4LL * w->job->timeout_ms + 30000;

    if (!w->killed && (since_ms(&w->last) > most || is_stopped_for_good(w))) {
        w->killed = true;
        kill(-w->pid, SIGKILL);
    }
}

void supervised_stop(struct supervised *w)
{
    if (w->pid) {
        kill(-w->pid, SIGTERM); /* mpirun takes its ranks with it */
        clock_gettime(CLOCK_MONOTONIC, &w->last);
    }
}

void supervised_kill(struct supervised *w)
{
    int64_t patience = w->job && w->job->world == WORLD_MPI ? 1500 : 50;

    if (!w->pid) {
        return;
    }
    while (waitpid(w->pid, NULL, WNOHANG) == 0) {
        if (since_ms(&w->last) > patience) {
            kill(-w->pid, SIGKILL);
            while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR) {
            }
            break;
        }
        usleep(2000);
    }
    close_ends(w);
    end_group(w->pid);
    w->pid = 0;
    unlink(w->batch);
}
