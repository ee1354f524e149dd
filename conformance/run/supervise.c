/* SPDX-License-Identifier: Apache-2.0 */
/*
 * supervise.c - deals cases out to workers and keeps them going.
 */
#include "run/supervise.h"
#include "judge/report/progress.h"
#include "run/process/orphans.h"
#include "run/supervise_worker.h"
#include "run/worker/case_record.h"
#include "run/worker/debug.h"
#include "run/worker/worker.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_WORKERS = 64,
    DEATHS = 8 /* so many cases with a dead rank, before a line says so */
};

static volatile sig_atomic_t interrupted, again, suspended;
static struct timespec came; /* when the run was interrupted */

static void on_signal(int number)
{
    if (number == SIGTSTP) {
        suspended = 1;
    } else {
        if (!interrupted) {
            clock_gettime(CLOCK_MONOTONIC, &came);
        }
        again = interrupted;
        interrupted = number;
    }
}

void supervise_catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a limit on the size of files makes writes fail,
                                 as a full disk does */
    orphans_adopt();          /* what workers leave behind */
}

bool supervise_interrupted(void)
{
    return interrupted != 0;
}

bool supervise_hurried(void)
{
    const time_t patience = 2;
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return interrupted && (again || now.tv_sec - came.tv_sec >= patience);
}

/* ABORTED, if a signal has come. */
static int end_early(struct fsdp_error *error)
{
    if (!interrupted) {
        return FSDP_OK;
    }
    error->status = FSDP_ERR_ABORTED;
    snprintf(error->message, sizeof(error->message), "interrupted");
    return FSDP_ERR_ABORTED;
}

int supervise_clear(const char *records, const struct run_case *cases,
                    uint32_t n, bool baseline, struct fsdp_error *error)
{
    char folder[CASE_FOLDER_BYTES];

    for (uint32_t i = 0; i < n && !interrupted; i++) {
        case_folder(records, &cases[i], baseline, folder);
        FSDP_TRY(record_clear(folder, error));
    }
    return end_early(error);
}

/* Case i is for this worker: by rank count under MPI, dealt out otherwise. */
static uint32_t worker_of(const struct supervise_job *job, uint32_t i,
                          uint32_t n_workers)
{
    return job->world == WORLD_MPI ? job->cases[i].ranks % MAX_WORKERS
                                   : i % n_workers;
}

static int deal(const struct supervise_job *job, struct supervised *worker,
                uint32_t n_workers)
{
    for (uint32_t k = 0; k < n_workers; k++) {
        worker[k].job = job;
        worker[k].cases =
            malloc((job->n_cases + 1u) * sizeof(*worker[k].cases));
        if (!worker[k].cases) {
            return FSDP_ERR_NOMEM;
        }
    }
    for (uint32_t i = 0; i < job->n_cases; i++) {
        struct supervised *w = &worker[worker_of(job, i, n_workers)];
        w->cases[w->n++] = job->cases[i];
    }
    return FSDP_OK;
}

/* Starts workers where there is room. Returns how many run. */
static uint32_t start(struct supervised *worker, uint32_t n_workers,
                      uint32_t most, int *status, struct fsdp_error *error)
{
    uint32_t running = 0;

    for (uint32_t k = 0; k < n_workers; k++) {
        running += worker[k].pid != 0;
    }
    for (uint32_t k = 0; k < n_workers && running < most; k++) {
        if (!worker[k].pid && worker[k].next < worker[k].n &&
            *status == FSDP_OK) {
            *status = supervised_start(&worker[k], k, error);
            running += *status == FSDP_OK;
        }
    }
    return running;
}

/* Reads what an ended worker has said and printed last. If a process that it
 * left behind goes on printing, that is not waited for. */
static void read_the_rest(struct supervised *w, struct supervise_engine *engine)
{
    enum {
        MOST = 64 /* pipes hold no more than 16 pieces each */
    };

    for (int i = 0; i < MOST && supervised_read(w, engine); i++) {
    }
}

static void turn(struct supervised *worker, uint32_t n_workers,
                 struct supervise_engine *engine, int *status,
                 struct fsdp_error *error)
{
    struct pollfd fds[(SUPERVISED_OUTPUTS + 2) * MAX_WORKERS];
    nfds_t n = 0;
    int wait_ms = 200;

    for (uint32_t k = 0; k < n_workers; k++) {
        const struct supervised *w = &worker[k];

        if (w->pid) { /* poll passes over what is -1 */
            fds[n++] = (struct pollfd){.fd = w->words, .events = POLLIN};
            for (uint32_t i = 0; i < w->n_outputs; i++) {
                fds[n++] =
                    (struct pollfd){.fd = w->output[i].fd, .events = POLLIN};
            }
            fds[n++] = (struct pollfd){.fd = w->exit, .events = POLLIN};
            wait_ms = w->exit < 0 ? 5 : wait_ms;
        }
    }
    if (poll(fds, n, wait_ms) < 0 && errno != EINTR) {
        *status = FSDP_ERR_IO;
    }
    for (uint32_t k = 0; k < n_workers; k++) {
        struct supervised *w = &worker[k];

        if (w->pid && supervised_has_ended(w)) {
            int s;

            read_the_rest(w, engine);
            s = supervised_end(w, engine, error);
            *status = *status != FSDP_OK ? *status : s;
        } else if (w->pid) {
            supervised_read(w, engine);
            supervised_watch(w);
        }
    }
}

static void tell_all(const struct supervised *worker, uint32_t n, char what)
{
    for (uint32_t k = 0; k < n; k++) {
        if (worker[k].pid) {
            supervised_tell(&worker[k], what);
        }
    }
}

static void catch_suspension(struct sigaction *before)
{
    const struct sigaction action = {.sa_handler = on_signal};

    sigaction(SIGTSTP, &action, before);
    if (before->sa_handler == SIG_IGN) {
        sigaction(SIGTSTP, before, NULL);
    }
}

/* Suspends the supervisor, as the terminal wants it, until it continues it. The
 * terminal's signal does not reach workers: they end their cases and wait. */
static void suspend(const struct supervised *worker, uint32_t n,
                    struct sigaction *before)
{
    tell_all(worker, n, WORKER_SUSPENDED);
    suspended = 0;
    sigaction(SIGTSTP, before, NULL);
    (void)raise(SIGTSTP);
    catch_suspension(before);
    tell_all(worker, n, WORKER_GO_ON);
}

static uint32_t ended(const struct supervised *worker, uint32_t n_workers)
{
    uint32_t n = 0;

    for (uint32_t k = 0; k < n_workers; k++) {
        n += worker[k].n_ended;
    }
    return n;
}

static uint32_t lost(const struct supervised *worker, uint32_t n_workers)
{
    uint32_t n = 0;

    for (uint32_t k = 0; k < n_workers; k++) {
        n += worker[k].n_lost;
    }
    return n;
}

/* Says once that many cases have a dead rank, so that nobody waits for an
 * engine that dies in every case. */
static void look_for_deaths(struct progress *p, bool *said)
{
    if (!*said && !p->silent && p->done >= DEATHS && p->failed == p->done) {
        *said = true;
        progress_clear(p);
        fprintf(stderr,
                "fsdp-cts: a rank has died in each of the first %u "
                "cases; --fail-fast stops at the first and shows it\n",
                p->done);
    }
}

/* All are told to stop before the first is killed. */
static void end_all(struct supervised *worker)
{
    for (uint32_t k = 0; worker && k < MAX_WORKERS; k++) {
        supervised_stop(&worker[k]);
    }
    for (uint32_t k = 0; worker && k < MAX_WORKERS; k++) {
        supervised_kill(&worker[k]);
        free(worker[k].cases);
    }
    free(worker);
    orphans_end(); /* ranks of mpirun, say, are in groups of their own */
}

int supervise(const struct supervise_job *job, struct supervise_engine *engine,
              struct fsdp_error *error)
{
    bool mpi = job->world == WORLD_MPI;
    uint32_t most = mpi || !job->n_workers ? 1 : job->n_workers;
    uint32_t n_workers = mpi                  ? MAX_WORKERS
                         : most < MAX_WORKERS ? most
                                              : MAX_WORKERS;
    struct supervised *worker = calloc(MAX_WORKERS, sizeof(*worker));
    int status = worker ? deal(job, worker, n_workers) : FSDP_ERR_NOMEM;
    struct debugger debugger = {0, 0};
    char file[WORKER_DEBUG_BYTES];
    struct progress progress;
    bool told = false;
    struct sigaction before;

    if (status == FSDP_OK && !job->cleared) {
        /* Removes the records of an earlier run, which could pass for one of
         * this run if its worker died before writing it. */
        status = supervise_clear(job->records, job->cases, job->n_cases,
                                 strcmp(job->engine, "unsharded") == 0, error);
    }
    progress_begin(&progress, job->title ? job->title : "", "cases",
                   job->n_cases, !job->title);
    catch_suspension(&before);
    while (status == FSDP_OK && !interrupted &&
           start(worker, n_workers, most, &status, error)) {
        turn(worker, n_workers, engine, &status, error);
        if (suspended) {
            suspend(worker, n_workers, &before);
        }
        if (job->debug) {
            debugger_look(&debugger, worker_debug_file(worker[0].folder, file));
        }
        progress_add(job->part, 0, 0);
        progress_add(&progress, ended(worker, n_workers) - progress.done,
                     lost(worker, n_workers) - progress.failed);
        look_for_deaths(&progress, &told);
    }
    sigaction(SIGTSTP, &before, NULL);
    if (job->debug) {
        debugger_end(&debugger);
    }
    progress_end(&progress);
    end_all(worker);
    return status == FSDP_OK ? end_early(error) : status;
}

int supervise_baselines(const struct supervise_job *job,
                        const struct case_list *cases, struct fsdp_error *error)
{
    struct supervise_engine said = {.known = false};
    struct case_list baselines = {NULL, 0};
    struct supervise_job own = *job;
    int status = case_baselines(cases, &baselines);

    own.cases = baselines.c;
    own.n_cases = baselines.n;
    own.engine = "unsharded";
    own.mutant = NULL;
    own.world = WORLD_LOCAL;
    own.trace = false;
    own.isolate = false;
    own.wrap = NULL;
    own.debug = 0;
    if (status == FSDP_OK && baselines.n) {
        status = supervise(&own, &said, error);
    }
    manifest_release(&baselines);
    return status;
}
