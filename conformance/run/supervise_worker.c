/* SPDX-License-Identifier: Apache-2.0 */
/*
 * supervise_worker.c - watches workers and clears up behind them.
 * supervise_start.c starts them, and supervise_words.c reads what they say.
 */
#include "run/supervise_worker.h"
#include "checkpoint/folder_erase.h"
#include "run/process/orphans.h"
#include "run/worker/case_record.h"
#include "run/worker/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    EXIT_NOT_BEGUN = 127 /* the exit code of the dynamic loader */
};

bool supervised_has_ended(struct supervised *w)
{
    if (waitpid(w->pid, &w->wait_status, WNOHANG) != w->pid) {
        return false;
    }
    if (w->isolated && WIFEXITED(w->wait_status) &&
        WEXITSTATUS(w->wait_status) == WORKER_ABORTED) {
        w->wait_status = W_EXITCODE(0, SIGABRT);
    }
    return true;
}

/* Whether the engine plays unsharded runs. */
static bool plays_baselines(const struct supervise_engine *said)
{
    return strncmp(said->claims, "serial", strlen("serial")) == 0;
}

/* Under MPI records are written to where they stay. */
void supervised_settle(struct supervised *w,
                       const struct supervise_engine *engine)
{
    const struct run_case *c = &w->cases[w->next];
    struct fsdp_error error = {0};
    char folder[CASE_FOLDER_BYTES];

    if (w->job->world == WORLD_MPI) {
        case_folder(w->job->records, c, plays_baselines(engine), folder);
        told_keep(&w->told, folder, c->ranks, false, NULL);
        return;
    }
    if (worker_folder_settle(w->folder, w->job->records, c,
                             plays_baselines(engine), folder,
                             &error) != FSDP_OK) {
        fprintf(stderr, "fsdp-cts: %s\n", error.message);
        return;
    }
    told_keep(&w->told, folder, c->ranks, w->job->tells,
              w->job->isolate ? w->job->records : NULL);
    if (w->job->seals) {
        (void)seals_add(w->job->seals, folder);
    }
}

/* The case that took the worker down gets a record that says so, if its own
 * ranks could not: over MPI they may have. It names no isolation: what the
 * worker's ranks were refused went with it. */
static int account(struct supervised *w, const struct supervise_engine *said,
                   struct fsdp_error *error)
{
    const struct run_case *c = &w->cases[w->next];
    const bool mpi = w->job->world == WORLD_MPI;
    char folder[CASE_FOLDER_BYTES];
    char file[CASE_FOLDER_BYTES + 16];
    char text[sizeof(said->claims)];
    const char *claims[64] = {NULL};
    const struct case_player player = {.engine = said->name,
                                       .version = said->version,
                                       .claims = claims,
                                       .world = world_names[w->job->world],
                                       .sample = w->job->sample};
    char *rest = text;

    snprintf(text, sizeof(text), "%s", said->claims);
    for (uint32_t i = 0; i < 63; i++) {
        claims[i] = strtok_r(rest, " ", &rest);
        if (!claims[i]) {
            break;
        }
    }
    if (mpi) {
        case_folder(w->job->records, c, plays_baselines(said), folder);
    } else {
        worker_folder_clean(w->folder, c, plays_baselines(said), folder);
    }
    snprintf(file, sizeof(file), "%s/case.json", folder);
    if (!mpi || access(file, R_OK) != 0) {
        FSDP_TRY(case_record_account(
            folder, c, &player,
            &(struct case_process_end){w->wait_status, w->killed,
                                       w->named_signal, w->named},
            error));
    }
    supervised_settle(w, said);
    return FSDP_OK;
}

/* Kills the worker and its process group. */
static void shoot(const struct supervised *w)
{
    kill(w->pid, SIGKILL);
    kill(-w->pid, SIGKILL);
}

static void close_end(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
}

void supervised_close(struct supervised *w)
{
    for (uint32_t i = 0; i < w->n_outputs; i++) {
        close_end(&w->output[i].fd);
    }
    close_end(&w->words);
    close_end(&w->exit);
}

/* No worker could run: says why. That is the user's to put right, unless memory
 * was short. */
static int refused(const struct supervised *w, int wait_status,
                   struct fsdp_error *error)
{
    bool early = !w->in_case && w->next == w->started;
    bool killed = WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL;
    /* The program's libraries could not be loaded, for want of memory or
     * descriptors. */
    bool is_not_begun = WIFEXITED(wait_status) &&
                        WEXITSTATUS(wait_status) == EXIT_NOT_BEGUN &&
                        w->refused.status == FSDP_OK;
    struct fsdp_error why = w->refused;

    if (why.status == FSDP_OK && killed) {
        snprintf(why.message, sizeof(why.message),
                 "engine %.100s: the worker was ended by SIGKILL before its "
                 "first case, as the system does where memory is short",
                 w->job->engine);
    } else if (why.status == FSDP_OK) {
        snprintf(why.message, sizeof(why.message),
                 "engine %.100s: the worker %s %d before its first case",
                 w->job->engine,
                 WIFSIGNALED(wait_status) ? "was ended by signal"
                                          : "exited with",
                 WIFSIGNALED(wait_status) ? WTERMSIG(wait_status)
                                          : WEXITSTATUS(wait_status));
    }
    if (killed || is_not_begun) {      /* killed by the system, or by another
                                          user or process */
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

    supervised_close(w);
    orphans_end_group(w->pid);
    w->pid = 0;
    if (w->refused.status != FSDP_OK ||
        (w->next < w->n && !w->in_case && w->next == w->started)) {
        status = refused(w, w->wait_status, error);
    } else if (w->in_case) {
        status = account(w, engine, error);
        w->next++;
        w->n_ended++;
        w->n_lost++;
    }
    folder_erase(w->folder);
    return status;
}

static int64_t since_ms(const struct timespec *then)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - then->tv_sec) * 1000 +
           (now.tv_nsec - then->tv_nsec) / 1000000;
}

/* Whether the worker itself has been stopped for longer than a rank may be
 * without progress. (If a rank is stopped, its world ends it.) */
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

    if (!w->killed && !w->job->debug &&
        (since_ms(&w->last) > most || is_stopped_for_good(w))) {
        w->killed = true;
        shoot(w);
    }
}

void supervised_stop(struct supervised *w)
{
    if (w->pid && w->job->world == WORLD_MPI) {
        kill(-w->pid, SIGTERM); /* mpirun takes its ranks with it */
        clock_gettime(CLOCK_MONOTONIC, &w->last);
    } else if (w->pid) {
        shoot(w);
    }
}

void supervised_kill(struct supervised *w)
{
    const int64_t patience = 1500;

    if (!w->pid) {
        return;
    }
    while (waitpid(w->pid, NULL, WNOHANG) == 0) {
        if (since_ms(&w->last) > patience) {
            shoot(w);
            while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR) {
            }
            break;
        }
        usleep(2000);
    }
    supervised_close(w);
    orphans_end_group(w->pid);
    w->pid = 0;
    folder_erase(w->folder);
}
