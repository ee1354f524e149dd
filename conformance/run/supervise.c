/* SPDX-License-Identifier: Apache-2.0 */
/*
 * supervise.c - deals cases out to lanes and keeps them going.
 */
#include "run/supervise.h"
#include "run/supervise_worker.h"
#include "run/worker.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MAX_LANES = 64
};

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    interrupted = number;
}

void supervise_catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* workers' children become ours */
}

bool supervise_interrupted(void)
{
    return interrupted != 0;
}

/* Ranks of mpirun are in groups of their own. When it has ended they are our
 * children, and we have no others. */
static void end_orphans(void)
{
    char path[64];
    char word[24];
    FILE *f;

    snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
    f = fopen(path, "re");
    while (f && fscanf(f, "%23s", word) == 1) {
        pid_t pid = (pid_t)strtol(word, NULL, 10);

        if (pid <= 0) {
            break;
        }
        kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    if (f) {
        fclose(f);
    }
}

/* A folder may have records of an earlier run: none may pass for one of this
 * run, whose worker did not come to writing it. */
static int clear_records(const struct supervise_job *job,
                         struct fsdp_error *error)
{
    bool baseline = strcmp(job->engine, "unsharded") == 0;
    char folder[WORKER_PATH_BYTES];

    for (uint32_t i = 0; i < job->n_cases; i++) {
        worker_folder(job->records, &job->cases[i], baseline, folder);
        FSDP_TRY(record_clear(folder, error));
    }
    return FSDP_OK;
}

/* Progress: one line that rewrites itself on a terminal, a line for each
 * quarter in a pipe. */
static void show(const struct supervise_job *job, uint32_t done, uint32_t n)
{
    bool terminal = isatty(STDERR_FILENO) != 0;
    uint32_t quarter = n / 4 ? n / 4 : 1;

    if (!job->title) {
        return;
    }
    if (terminal) {
        fprintf(stderr, "\r\033[K%s: %u of %u cases%s", job->title, done, n,
                done == n ? "\n" : "");
    } else if (done == n || (done && done % quarter == 0 && n > 8)) {
        fprintf(stderr, "%s: %u of %u cases\n", job->title, done, n);
    }
}

/* Case i belongs to lane: by rank count under MPI, dealt out otherwise. */
static uint32_t lane_of(const struct supervise_job *job, uint32_t i,
                        uint32_t n_lanes)
{
    return job->world == WORLD_MPI ? job->cases[i].ranks % MAX_LANES
                                   : i % n_lanes;
}

static int deal(const struct supervise_job *job, struct lane *lane,
                uint32_t n_lanes)
{
    for (uint32_t k = 0; k < n_lanes; k++) {
        lane[k].job = job;
        lane[k].cases = malloc((job->n_cases + 1u) * sizeof *lane[k].cases);
        if (!lane[k].cases) {
            return FSDP_ERR_NOMEM;
        }
    }
    for (uint32_t i = 0; i < job->n_cases; i++) {
        struct lane *l = &lane[lane_of(job, i, n_lanes)];
        l->cases[l->n++] = job->cases[i];
    }
    return FSDP_OK;
}

/* Starts workers where there is room. Returns how many run. */
static uint32_t start(struct lane *lane, uint32_t n_lanes, uint32_t most,
                      int *status, struct fsdp_error *error)
{
    uint32_t running = 0;

    for (uint32_t k = 0; k < n_lanes; k++) {
        running += lane[k].pid != 0;
    }
    for (uint32_t k = 0; k < n_lanes && running < most; k++) {
        if (!lane[k].pid && lane[k].next < lane[k].n && *status == FSDP_OK) {
            *status = lane_start(&lane[k], k, error);
            running += *status == FSDP_OK;
        }
    }
    return running;
}

static void turn(struct lane *lane, uint32_t n_lanes,
                 struct supervise_engine *engine, int *status,
                 struct fsdp_error *error)
{
    struct pollfd fds[MAX_LANES];
    struct lane *of[MAX_LANES];
    nfds_t n = 0;

    for (uint32_t k = 0; k < n_lanes; k++) {
        if (lane[k].pid) {
            fds[n] = (struct pollfd){.fd = lane[k].fd, .events = POLLIN};
            of[n++] = &lane[k];
        }
    }
    if (poll(fds, n, 200) < 0 && errno != EINTR) {
        *status = FSDP_ERR_IO;
    }
    for (nfds_t i = 0; i < n; i++) {
        if (fds[i].revents && !lane_read(of[i], engine)) {
            int s = lane_end(of[i], engine, error);
            *status = *status != FSDP_OK ? *status : s;
        } else {
            lane_watch(of[i]);
        }
    }
}

static uint32_t ended(const struct lane *lane, uint32_t n_lanes)
{
    uint32_t n = 0;

    for (uint32_t k = 0; k < n_lanes; k++) {
        n += lane[k].n_ended;
    }
    return n;
}

int supervise(const struct supervise_job *job, struct supervise_engine *engine,
              struct fsdp_error *error)
{
    bool mpi = job->world == WORLD_MPI;
    uint32_t most = mpi || !job->n_workers ? 1 : job->n_workers;
    uint32_t n_lanes = mpi ? MAX_LANES : most < MAX_LANES ? most : MAX_LANES;
    struct lane *lane = calloc(MAX_LANES, sizeof *lane);
    int status = lane ? deal(job, lane, n_lanes) : FSDP_ERR_NOMEM;
    uint32_t shown = UINT32_MAX;

    if (status == FSDP_OK) {
        status = clear_records(job, error);
    }
    while (status == FSDP_OK && !interrupted &&
           start(lane, n_lanes, most, &status, error)) {
        turn(lane, n_lanes, engine, &status, error);
        if (ended(lane, n_lanes) != shown) {
            shown = ended(lane, n_lanes);
            show(job, shown, job->n_cases);
        }
    }
    for (uint32_t k = 0; lane && k < MAX_LANES; k++) {
        lane_stop(&lane[k]);
    }
    for (uint32_t k = 0; lane && k < MAX_LANES; k++) {
        lane_kill(&lane[k]);
        free(lane[k].cases);
    }
    free(lane);
    end_orphans();
    if (interrupted && status == FSDP_OK) {
        error->status = FSDP_ERR_ABORTED;
        snprintf(error->message, sizeof error->message, "interrupted");
        status = FSDP_ERR_ABORTED;
    }
    return status;
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
    if (status == FSDP_OK && baselines.n) {
        status = supervise(&own, &said, error);
    }
    manifest_release(&baselines);
    return status;
}
