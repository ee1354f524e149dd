/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world_mpi.c - this process as one rank of a program that mpirun started.
 *
 * Everything is nonblocking and polled, so that a rank which waits also hears
 * that another one has failed. Data goes through staging buffers of our own: an
 * operation that was given up may still write later on, and must not write into
 * memory that an engine has freed. For the same reason such buffers are never
 * freed.
 *
 * When a body has returned, its rank sends a farewell to all others: its
 * status, and how many collectives it has begun in each of its groups. A
 * farewell aborts ranks that wait, or tells them that they wait in vain; and
 * when a rank has the farewells of all others, the world has ended. It is the
 * only message of the control communicator, at most one from each rank and
 * world.
 */
#include "world_kinds.h"

#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    YIELDS = 200,
    NAP_NS = 50000,
    LOOK_MS = 20,
    FAREWELL_MS = 1000, /* time to send an abort to ranks that do not listen */
    EXIT_HUNG = 70,     /* EX_SOFTWARE */
};

struct farewell {
    int64_t status;
    uint64_t begun[WORLD_MAX_GROUPS];
};

struct member {
    struct world_comm comm;
    struct world_progress progress;
    struct world_rank rank;
    struct fsdp_error error;
    MPI_Comm group[WORLD_MAX_GROUPS];
    struct world_header headers[WORLD_MAX_RANKS];
    struct world_header header; /* outlives a call, as the staging does */
    unsigned char *sent;
    unsigned char *got; /* WORLD_PLACE_BYTES of each rank */
    struct farewell farewell;
    struct farewell from[WORLD_MAX_RANKS];
    bool has_left[WORLD_MAX_RANKS];
    uint32_t n_left;
    bool bade_farewell;
    bool timed_out;
    uint32_t timeout_ms;
    _Atomic int32_t abort_wish; /* set by any thread, sent by the rank's */
    _Atomic uint32_t done;
};

/* MPI belongs to the process, and so does this. */
static struct {
    bool is_open;
    bool aborted;
    MPI_Comm control;
    uint32_t rank, world;
} mpi;

static int64_t now_ms(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Ranks share cores, so a rank that waits gives its core away. */
static void pause_between(uint32_t tries)
{
    if (tries < YIELDS) {
        (void)sched_yield();
    } else {
        (void)nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    }
}

static int failed(struct fsdp_error *error, int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    (void)MPI_Error_string(code, text, &length);
    return world_fail(error, FSDP_ERR_COMM, mpi.rank, code, "mpi", "%s: %.150s",
                      what, text);
}

/* Sends the farewell once, and waits until it is sent. */
static void bid_farewell(struct member *m, int32_t status)
{
    MPI_Request request[WORLD_MAX_RANKS];
    int n = 0;
    int all_sent = 0;
    if (m->bade_farewell) {
        return;
    }
    m->bade_farewell = true;
    m->farewell.status = status;
    memcpy(m->farewell.begun, m->comm.sequence, sizeof(m->farewell.begun));
    for (uint32_t r = 0; r < mpi.world; r++) {
        if (r != mpi.rank &&
            MPI_Isend(&m->farewell, (int)sizeof(m->farewell), MPI_BYTE, (int)r,
                      0, mpi.control, &request[n]) == MPI_SUCCESS) {
            n++;
        }
    }
    int64_t begin = now_ms();
    for (uint32_t tries = 0; all_sent == 0; tries++) {
        if (MPI_Testall(n, request, &all_sent, MPI_STATUSES_IGNORE) !=
                MPI_SUCCESS ||
            now_ms() - begin > FAREWELL_MS) {
            break;
        }
        pause_between(tries);
    }
}

static void give_up(struct member *m, int32_t status)
{
    mpi.aborted = true;
    bid_farewell(m, status == FSDP_OK ? FSDP_ERR_ABORTED : status);
}

/* Takes in the farewells that have come. ABORTED if one was a failure, or if a
 * thread of this rank has asked for an abort. */
static int listen(struct member *m)
{
    int32_t wish = atomic_load(&m->abort_wish);
    if (wish != FSDP_OK) {
        give_up(m, wish);
    }
    for (;;) {
        int has_come = 0;
        MPI_Status from;
        if (MPI_Iprobe(MPI_ANY_SOURCE, 0, mpi.control, &has_come, &from) !=
                MPI_SUCCESS ||
            has_come == 0) {
            break;
        }
        struct farewell *farewell = &m->from[from.MPI_SOURCE];
        if (MPI_Recv(farewell, (int)sizeof(*farewell), MPI_BYTE,
                     from.MPI_SOURCE, 0, mpi.control,
                     MPI_STATUS_IGNORE) != MPI_SUCCESS) {
            mpi.aborted = true;
            break;
        }
        m->n_left += !m->has_left[from.MPI_SOURCE];
        m->has_left[from.MPI_SOURCE] = true;
        if (farewell->status != FSDP_OK) {
            mpi.aborted = true;
        }
    }
    return mpi.aborted ? FSDP_ERR_ABORTED : FSDP_OK;
}

/* MISMATCH if a member has left before it began the collective that we wait
 * for. */
static int check_present(struct member *m, uint32_t group)
{
    const struct world_group *g = &m->comm.group[group];
    for (uint32_t i = 0; i < g->extent; i++) {
        uint32_t r = g->first + i * g->stride;
        if (m->has_left[r] &&
            m->from[r].begun[group] < m->comm.sequence[group]) {
            mpi.aborted = true; /* what is pending will never end */
            return world_comm_deserted(&m->comm, r);
        }
    }
    return FSDP_OK;
}

static int finish(struct member *m, uint32_t group, int code,
                  MPI_Request *request)
{
    int64_t begin = 0;
    for (uint32_t tries = 0;; tries++) {
        int is_done = 0;
        if (code == MPI_SUCCESS) {
            code = MPI_Test(request, &is_done, MPI_STATUS_IGNORE);
        }
        if (code != MPI_SUCCESS) {
            mpi.aborted = true;
            return failed(m->rank.error, code, "a collective");
        }
        if (is_done) {
            return FSDP_OK;
        }
        FSDP_TRY(listen(m));
        FSDP_TRY(check_present(m, group));
        if (tries < YIELDS) {
            begin = now_ms();
        } else if (now_ms() - begin > m->timeout_ms) {
            m->timed_out = true;
            give_up(m, FSDP_ERR_TIMEOUT);
            return world_fail(m->rank.error, FSDP_ERR_TIMEOUT, mpi.rank, 0,
                              "mpi", "a collective took over %u ms",
                              m->timeout_ms);
        }
        pause_between(tries);
    }
}

static void *mpi_place(struct world_comm *comm, uint32_t group)
{
    (void)group;
    return ((struct member *)comm)->sent;
}

/* The headers go ahead: MPI cannot bear that ranks disagree about sizes. */
static int agree(struct member *m, uint32_t group,
                 const struct world_turn *turn)
{
    const struct world_header *header[WORLD_MAX_RANKS];
    int bytes = (int)sizeof(m->header);
    MPI_Request request = MPI_REQUEST_NULL;
    m->header = turn->header;
    int code = MPI_Iallgather(&m->header, bytes, MPI_BYTE, m->headers, bytes,
                              MPI_BYTE, m->group[group], &request);
    FSDP_TRY(finish(m, group, code, &request));
    for (uint32_t i = 0; i < m->comm.group[group].extent; i++) {
        header[i] = &m->headers[i];
    }
    return world_comm_agree(&m->comm, group, header);
}

static int take_turn(struct world_comm *comm, uint32_t group,
                     const struct world_turn *turn, const unsigned char **parts)
{
    struct member *m = (struct member *)comm;
    MPI_Comm ranks = m->group[group];
    MPI_Request request = MPI_REQUEST_NULL;
    int bytes = (int)turn->bytes; /* it fits: world_turn_take */
    int root = (int)turn->header.root;
    int code;
    FSDP_TRY(listen(m));
    if (turn->header.turn == 0) {
        FSDP_TRY(agree(m, group, turn));
    }
    if (turn->bytes == 0) {
        return FSDP_OK;
    }
    if (turn->pattern == WORLD_EACH) {
        code = MPI_Ialltoall(m->sent, bytes, MPI_BYTE, m->got, bytes, MPI_BYTE,
                             ranks, &request);
    } else if (turn->pattern == WORLD_ALL) {
        code = MPI_Iallgather(m->sent, bytes, MPI_BYTE, m->got, bytes, MPI_BYTE,
                              ranks, &request);
    } else {
        code = MPI_Ibcast(m->sent, bytes, MPI_BYTE, root, ranks, &request);
        parts[root] = m->sent;
    }
    FSDP_TRY(finish(m, group, code, &request));
    if (turn->pattern != WORLD_ROOT) {
        for (uint32_t i = 0; i < comm->group[group].extent; i++) {
            parts[i] = m->got + i * turn->bytes;
        }
    }
    return FSDP_OK;
}

static void wish_abort(struct world_comm *comm, int32_t status)
{
    int32_t none = FSDP_OK;
    (void)atomic_compare_exchange_strong(
        &((struct member *)comm)->abort_wish, &none,
        status == FSDP_OK ? FSDP_ERR_ABORTED : status);
}

static int mpi_check(struct world_comm *comm)
{
    return listen((struct member *)comm);
}

static const struct world_carrier carrier = {
    .place = mpi_place,
    .turn = take_turn,
    .abort = wish_abort,
    .check = mpi_check,
};

/* Ends a process whose rank neither returns nor calls a collective. */
static void *watch(void *argument)
{
    struct member *m = argument;
    uint64_t seen = UINT64_MAX;
    int64_t since = 0;
    while (atomic_load(&m->done) == 0) {
        uint64_t beats = atomic_load(&m->progress.beats);
        if (beats != seen) {
            seen = beats;
            since = now_ms();
        } else if (now_ms() - since > 2 * (int64_t)m->timeout_ms) {
            dprintf(
                STDERR_FILENO, "world: rank %u hangs after %llu collectives\n",
                mpi.rank,
                (unsigned long long)atomic_load(&m->progress.n_collectives));
            _exit(EXIT_HUNG);
        }
        (void)nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L},
                        NULL);
    }
    return NULL;
}

static int make_groups(struct member *m, uint32_t n_groups)
{
    for (uint32_t g = 0; g < n_groups; g++) {
        const struct world_group *group = &m->comm.group[g];
        int code = MPI_Comm_split(mpi.control, (int)group->first,
                                  (int)group->me, &m->group[g]);
        if (code != MPI_SUCCESS) {
            mpi.aborted = true;
            return failed(&m->error, code, "MPI_Comm_split");
        }
    }
    return FSDP_OK;
}

/* Waits until every rank has said farewell. There is no limit: a rank that
 * hangs is ended by its own watchdog, and then mpirun ends us all. */
static void part(struct member *m)
{
    for (uint32_t tries = 0; m->n_left + 1 < mpi.world; tries++) {
        if (listen(m) != FSDP_OK) {
            return;
        }
        pause_between(tries);
    }
}

static int live(struct member *m, const struct world_job *job)
{
    struct world_result *result = &job->result[mpi.rank];
    pthread_t watcher;
    int code = pthread_create(&watcher, NULL, watch, m);
    if (code != 0) {
        give_up(m, FSDP_ERR_NOMEM);
        return world_fail(job->error, FSDP_ERR_NOMEM, mpi.rank, code, "mpi",
                          "no thread for the watchdog");
    }
    int status = job->body(job->context, &m->rank);
    atomic_store(&m->done, 1);
    (void)pthread_join(watcher, NULL);
    (void)listen(m);
    if (status != FSDP_OK) {
        give_up(m, status);
    }
    bid_farewell(m, status);
    part(m);
    world_progress_read(&m->progress, result);
    result->end = m->timed_out ? WORLD_TIMED_OUT : WORLD_RETURNED;
    result->status = status;
    result->error = m->error;
    return FSDP_OK;
}

int world_run_mpi(const struct world_job *job)
{
    if (!mpi.is_open || mpi.aborted) {
        return world_fail(
            job->error, mpi.is_open ? FSDP_ERR_ABORTED : FSDP_ERR_INVALID,
            mpi.rank, 0, "mpi", "MPI is %s",
            mpi.is_open ? "unusable after an aborted world" : "not open");
    }
    if (job->n_ranks != mpi.world) {
        return world_fail(job->error, FSDP_ERR_INVALID, mpi.rank, 0, "mpi",
                          "a mesh of %u ranks in a world of %u", job->n_ranks,
                          mpi.world);
    }
    struct member *m = calloc(1, sizeof(*m));
    unsigned char *staging = malloc((1 + mpi.world) * WORLD_PLACE_BYTES);
    if (!m || !staging) {
        free(m);
        free(staging);
        mpi.aborted = true; /* the others do not know */
        return world_fail(job->error, FSDP_ERR_NOMEM, mpi.rank, 0, "mpi",
                          "no memory for staging");
    }
    m->sent = staging;
    m->got = staging + WORLD_PLACE_BYTES;
    m->timeout_ms = job->timeout_ms;
    world_comm_init(&m->comm, &carrier, job->mesh, mpi.rank, &m->progress,
                    &m->error, &m->rank);
    uint32_t n_groups = job->mesh->n_dims + 1;
    int status = make_groups(m, n_groups);
    if (status == FSDP_OK) {
        status = live(m, job);
    }
    if (mpi.aborted) {
        return status; /* and MPI keeps m and its staging */
    }
    for (uint32_t g = 0; g < n_groups; g++) {
        (void)MPI_Comm_free(&m->group[g]);
    }
    free(staging);
    free(m);
    return status;
}

int world_mpi_open(uint32_t *out_rank, uint32_t *out_world,
                   struct fsdp_error *error)
{
    if (!mpi.is_open) {
        int provided = 0;
        int rank = 0;
        int world = 0;
        /* An engine may call from a thread of its own, one at a time. */
        int code =
            MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
        if (code == MPI_SUCCESS) {
            code = MPI_Comm_dup(MPI_COMM_WORLD, &mpi.control);
        }
        if (code != MPI_SUCCESS) {
            return failed(error, code, "MPI_Init_thread");
        }
        if (provided < MPI_THREAD_SERIALIZED) {
            return failed(error, MPI_ERR_OTHER,
                          "MPI_Init_thread with MPI_THREAD_SERIALIZED");
        }
        (void)MPI_Comm_set_errhandler(mpi.control, MPI_ERRORS_RETURN);
        (void)MPI_Comm_rank(mpi.control, &rank);
        (void)MPI_Comm_size(mpi.control, &world);
        mpi.rank = (uint32_t)rank;
        mpi.world = (uint32_t)world;
        mpi.is_open = true;
    }
    *out_rank = mpi.rank;
    *out_world = mpi.world;
    return FSDP_OK;
}

int world_mpi_exchange(const void *mine, uint32_t bytes, void *all,
                       struct fsdp_error *error)
{
    const int code = MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes,
                                   MPI_BYTE, mpi.control);

    return code == MPI_SUCCESS ? FSDP_OK : failed(error, code, "MPI_Allgather");
}

void world_mpi_close(void)
{
    if (mpi.is_open) {
        mpi.is_open = false;
        (void)MPI_Finalize();
    }
}
