/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated_nccl.c - TEST ONLY: NCCL by mailboxes in shared memory, one from
 * each rank to each other one. Every collective is a group of sends and
 * receives, done in small pieces, and never waits: it is called again.
 *
 * The memory is a memfd of the rank that made the id; the others find it in
 * /proc. Nothing has a name that could be left behind.
 */
#include "emulated.h"
#include "nccl.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    MOST_RANKS = 16,
    MAIL_BYTES = 16 * 1024,
};

struct mail {
    _Atomic uint32_t full;
    char data[MAIL_BYTES];
};

struct post {
    _Atomic uint32_t joined;
    struct mail mail[MOST_RANKS][MOST_RANKS]; /* from, to */
};

struct ncclComm {
    struct post *post;
    int n, me, fd; /* -1: the memory is another rank's */
    ncclResult_t error;
    bool aborted;
    unsigned int users; /* the owner, and work that is not done */
};

/* One end of a message. */
struct move {
    struct ncclComm *comm;
    bool sends;
    int peer;
    char *data;
    size_t bytes, at;
};

/* A group, as work of a stream. Reductions fold what came into `heap`. */
struct group {
    struct ncclComm *comm;
    struct move *move;
    size_t n_moves;
    float *heap;
    const float *own;
    float *out;
    size_t n;
    bool copies; /* out = own: what a rank sends itself */
};

/* The group that is being put together, by this thread. */
static _Thread_local struct {
    int depth;
    struct move move[2 * MOST_RANKS * MOST_RANKS];
    size_t n;
    cudaStream_t stream;
} open_group;

static size_t size_of(ncclDataType_t type)
{
    return type == ncclFloat32 ? 4 : 1;
}

static void release(struct ncclComm *comm)
{
    if (--comm->users == 0) {
        munmap(comm->post, sizeof(*comm->post));
        free(comm);
    }
}

/* ---- Moving ------------------------------------------------------------ */

/* One piece, if there is room for it, or if it is there. */
static void step(struct move *m)
{
    struct ncclComm *c = m->comm;
    struct mail *mail = m->sends ? &c->post->mail[c->me][m->peer]
                                 : &c->post->mail[m->peer][c->me];
    size_t left = m->bytes - m->at;
    size_t piece = left < MAIL_BYTES ? left : MAIL_BYTES;

    if (piece == 0 ||
        atomic_load_explicit(&mail->full, memory_order_acquire) != !m->sends) {
        return;
    }
    if (m->sends) {
        memcpy(mail->data, m->data + m->at, piece);
    } else {
        memcpy(m->data + m->at, mail->data, piece);
    }
    m->at += piece;
    atomic_store_explicit(&mail->full, m->sends, memory_order_release);
}

static void fold(const struct group *g)
{
    struct ncclComm *c = g->comm;
    bool backward = emulated_fault("nccl-order");

    for (size_t i = 0; i < g->n && g->heap != NULL; i++) {
        float sum = 0.0f;

        for (int k = 1; k <= c->n; k++) {
            int r = (c->me + (backward ? c->n - k : k)) % c->n;
            float x = r == c->me ? g->own[i] : g->heap[(size_t)r * g->n + i];

            sum = k == 1 ? x : sum + x;
        }
        g->out[i] = sum;
    }
    if (g->copies && g->out != g->own) {
        memmove(g->out, g->own, g->n);
    }
}

static bool group_progress(void *self)
{
    struct group *g = self;
    bool all = true;

    if (g->comm->aborted) {
        return true;
    }
    for (size_t i = 0; i < g->n_moves; i++) {
        step(&g->move[i]);
        all = all && g->move[i].at == g->move[i].bytes;
    }
    if (!all) {
        usleep(20);
        return false;
    }
    fold(g);
    return true;
}

static void group_done(void *self)
{
    struct group *g = self;

    release(g->comm);
    free(g->heap);
    free(g->move);
    free(g);
}

static bool never(void *self)
{
    usleep(1000);
    return ((struct group *)self)->comm->aborted;
}

static ncclResult_t enqueue(struct group *g, cudaStream_t stream)
{
    struct emulated_work work = {group_progress, group_done, g};

    g->comm->users++;
    if (emulated_fault("nccl-error")) {
        g->comm->error = ncclRemoteError;
        work.progress = never;
    }
    if (emulated_fault("nccl-hang")) {
        work.progress = never;
    }
    if (emulated_fault("rank-dies")) {
        raise(SIGKILL);
    }
    if (emulated_push(stream, work) != cudaSuccess) {
        group_done(g);
        return ncclUnhandledCudaError;
    }
    return ncclSuccess;
}

/* Takes what the group holds so far as work of its stream. */
static struct group *take_moves(struct ncclComm *comm)
{
    struct group *g = calloc(1, sizeof(*g));

    if (g != NULL) {
        g->comm = comm;
        g->n_moves = open_group.n;
        g->move = malloc(open_group.n * sizeof(*g->move) + 1);
        if (g->move == NULL) {
            free(g);
            return NULL;
        }
        memcpy(g->move, open_group.move, open_group.n * sizeof(*g->move));
    }
    open_group.n = 0;
    return g;
}

ncclResult_t ncclGroupStart(void)
{
    open_group.depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    struct group *g;

    if (open_group.depth == 0) {
        return ncclInvalidUsage;
    }
    if (--open_group.depth > 0 || open_group.n == 0) {
        return ncclSuccess;
    }
    g = take_moves(open_group.move[0].comm);
    return g != NULL ? enqueue(g, open_group.stream) : ncclSystemError;
}

static ncclResult_t add(struct ncclComm *comm, bool sends, const void *data,
                        size_t bytes, int peer, cudaStream_t stream)
{
    union {
        const void *in;
        void *out;
    } p = {.in = data};
    size_t i = open_group.n;

    if (open_group.depth == 0 || peer < 0 || peer >= comm->n ||
        peer == comm->me ||
        i == sizeof(open_group.move) / sizeof(*open_group.move)) {
        return ncclInvalidArgument;
    }
    open_group.move[i] = (struct move){comm, sends, peer, p.out, bytes, 0};
    open_group.n++;
    open_group.stream = stream;
    return ncclSuccess;
}

ncclResult_t ncclSend(const void *in, size_t n, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream)
{
    return add(comm, true, in, n * size_of(type), peer, stream);
}

ncclResult_t ncclRecv(void *out, size_t n, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream)
{
    return add(comm, false, out, n * size_of(type), peer, stream);
}

/* ---- Collectives ------------------------------------------------------- */

/* What is sent to, and received from, each other rank: `send` and `get`, a
 * part of `bytes` for each rank where the stride is not 0. */
static struct group *exchange(struct ncclComm *comm, const char *send,
                              size_t send_stride, char *get, size_t get_stride,
                              size_t bytes, cudaStream_t stream)
{
    open_group.depth++;
    for (int r = 0; r < comm->n; r++) {
        size_t i = (size_t)r;

        if (r != comm->me) {
            if (send != NULL) {
                add(comm, true, send + i * send_stride, bytes, r, stream);
            }
            if (get != NULL) {
                add(comm, false, get + i * get_stride, bytes, r, stream);
            }
        }
    }
    open_group.depth--;
    return take_moves(comm);
}

ncclResult_t ncclAllGather(const void *in, void *out, size_t n,
                           ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream)
{
    size_t bytes = n * size_of(type);
    struct group *g = exchange(comm, in, 0, out, bytes, bytes, stream);

    if (g == NULL) {
        return ncclSystemError;
    }
    g->own = in;
    g->out = (float *)(void *)((char *)out + (size_t)comm->me * bytes);
    g->n = bytes;
    g->copies = true;
    return enqueue(g, stream);
}

ncclResult_t ncclReduceScatter(const void *in, void *out, size_t n,
                               ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream)
{
    size_t bytes = n * sizeof(float);
    float *heap = malloc((size_t)comm->n * bytes + 1);
    struct group *g;

    if (heap == NULL || type != ncclFloat32 || op != ncclSum) {
        free(heap);
        return ncclInvalidArgument;
    }
    g = exchange(comm, in, bytes, (char *)heap, bytes, bytes, stream);
    if (g == NULL) {
        free(heap);
        return ncclSystemError;
    }
    g->heap = heap;
    g->own = (const float *)in + (size_t)comm->me * n;
    g->out = out;
    g->n = n;
    return enqueue(g, stream);
}

ncclResult_t ncclBroadcast(const void *in, void *out, size_t n,
                           ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream)
{
    size_t bytes = n * size_of(type);
    struct group *g;

    if (root == comm->me) {
        g = exchange(comm, in, 0, NULL, 0, bytes, stream);
    } else {
        open_group.depth++;
        add(comm, false, out, bytes, root, stream);
        open_group.depth--;
        g = take_moves(comm);
    }
    if (g == NULL) {
        return ncclSystemError;
    }
    g->own = in;
    g->out = out;
    g->n = bytes;
    g->copies = root == comm->me;
    return enqueue(g, stream);
}

/* ---- Communicators ----------------------------------------------------- */

struct address {
    int pid, fd;
};

ncclResult_t ncclGetVersion(int *version)
{
    *version = emulated_fault("nccl-version") ? 30100 : NCCL_VERSION_CODE;
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    struct address a = {getpid(), memfd_create("emulated-nccl", MFD_CLOEXEC)};

    memset(id, 0, sizeof(*id));
    memcpy(id->internal, &a, sizeof(a));
    return a.fd >= 0 && ftruncate(a.fd, sizeof(struct post)) == 0
               ? ncclSuccess
               : ncclSystemError;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int n, ncclUniqueId id,
                                    int rank, ncclConfig_t *config)
{
    struct ncclComm *c = calloc(1, sizeof(*c));
    struct address a;
    char path[64];
    int fd;

    memcpy(&a, id.internal, sizeof(a));
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", a.pid, a.fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (c == NULL || fd < 0 || n > MOST_RANKS || config->blocking != 0) {
        free(c);
        return ncclSystemError;
    }
    c->post =
        mmap(NULL, sizeof(*c->post), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (c->post == MAP_FAILED) {
        free(c);
        return ncclSystemError;
    }
    c->n = n;
    c->me = rank;
    c->fd = rank == 0 ? a.fd : -1; /* its maker is the group's first */
    c->users = 1;
    c->error = ncclInProgress;
    atomic_fetch_add(&c->post->joined, 1);
    *comm = c;
    return ncclInProgress;
}

/* In progress until all have joined. */
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
    if (comm->error == ncclInProgress &&
        atomic_load(&comm->post->joined) == (uint32_t)comm->n) {
        comm->error = ncclSuccess;
        if (comm->fd >= 0) {
            close(comm->fd);
            comm->fd = -1;
        }
    }
    *error = comm->error;
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    comm->aborted = true;
    return ncclCommDestroy(comm);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    (void)comm;
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    if (comm->fd >= 0) {
        close(comm->fd);
        comm->fd = -1;
    }
    release(comm);
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    return result == ncclRemoteError
               ? "remote process exited or there was a network error"
               : "internal error - please report this issue to the NCCL "
                 "developers";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return "";
}
