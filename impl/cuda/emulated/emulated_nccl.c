/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated_nccl.c - TEST ONLY: NCCL's collectives. Every one is a group of
 * sends and receives, done in small pieces, and never waits: it is called
 * again.
 */
#include "emulated.h"
#include "emulated_post.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CHANNEL_BYTES = 8192, /* of all ranks, before there is one more */
    MOST_CHANNELS = 8,
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
    bool all;    /* nothing is left to do */
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

/* ---- Moving ------------------------------------------------------------ */

static struct mail *mail_of(const struct move *m)
{
    struct ncclComm *c = m->comm;

    return m->sends ? &c->post->mail[c->me][m->peer]
                    : &c->post->mail[m->peer][c->me];
}

/* Whether there is room for a piece, or one is there. */
static bool can_step(const struct move *m)
{
    return m->at < m->bytes &&
           atomic_load_explicit(&mail_of(m)->full, memory_order_acquire) ==
               !m->sends;
}

static void step(struct move *m)
{
    struct mail *mail = mail_of(m);
    size_t left = m->bytes - m->at;
    size_t piece = left < MAIL_BYTES ? left : MAIL_BYTES;

    if (m->sends) {
        memcpy(mail->data, m->data + m->at, piece);
    } else {
        memcpy(m->data + m->at, mail->data, piece);
    }
    m->at += piece;
    atomic_store_explicit(&mail->full, m->sends, memory_order_release);
}

/* How many channels a message takes: short ones take one. Each of several
 * channels has its own share of the message, and a ring of its own. */
static size_t channels(const struct group *g)
{
    size_t n = g->n * sizeof(float) * (size_t)g->comm->n / CHANNEL_BYTES;

    return n < 1 ? 1 : n < MOST_CHANNELS ? n : MOST_CHANNELS;
}

static void fold(const struct group *g)
{
    struct ncclComm *c = g->comm;
    bool all = emulated_fault("nccl-order");
    bool odd = emulated_fault("nccl-channels");
    size_t rings = channels(g);

    for (size_t i = 0; i < g->n && g->heap; i++) {
        bool backward = all || (odd && i * rings / g->n % 2 != 0);
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

static void step_all(void *self)
{
    struct group *g = self;

    g->all = true;
    for (size_t i = 0; i < g->n_moves; i++) {
        if (can_step(&g->move[i])) {
            step(&g->move[i]);
        }
        g->all = g->all && g->move[i].at == g->move[i].bytes;
    }
    if (g->all) {
        fold(g);
    }
}

/* A GPU reads no memory of the host, but what is pinned. */
static bool reachable(const struct group *g)
{
    bool good = true;

    for (size_t i = 0; i < g->n_moves; i++) {
        const struct move *m = &g->move[i];

        good = good && (emulated_place(m->data, m->bytes) >= EMULATED_PINNED ||
                        (g->heap && !m->sends));
    }
    return good;
}

static bool group_progress(void *self)
{
    struct group *g = self;
    bool all = true;
    bool any = g->n_moves == 0;

    if (g->comm->aborted) {
        return true;
    }
    if (!reachable(g)) {
        emulated_break(cudaErrorIllegalAddress);
        return true;
    }
    for (size_t i = 0; i < g->n_moves; i++) {
        any = any || can_step(&g->move[i]);
        all = all && g->move[i].at == g->move[i].bytes;
    }
    if (!any && !all) {
        usleep(20);
        return false;
    }
    return !emulated_guarded(step_all, g) || g->all;
}

static void group_done(void *self)
{
    struct group *g = self;

    emulated_comm_release(g->comm);
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
        g->comm->fails = 3;
        work.progress = never;
    }
    if (emulated_fault("nccl-hang")) {
        work.progress = never;
    }
    if (emulated_fault("rank-dies")) {
        raise(SIGKILL);
    }
    if (work.progress == never) {
        g->comm->hanging++;
        atomic_fetch_add(g->comm->of_owner, 1);
    }
    if (emulated_push(stream, work) != cudaSuccess) {
        group_done(g);
        return ncclUnhandledCudaError;
    }
    return emulated_comm_begin(g->comm);
}

/* Takes what the group holds so far as work of its stream. */
static struct group *take_moves(struct ncclComm *comm)
{
    struct group *g = calloc(1, sizeof(*g));

    if (g) {
        g->comm = comm;
        g->n_moves = open_group.n;
        g->move = malloc(open_group.n * sizeof(*g->move) + 1);
        if (!g->move) {
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
    return g ? enqueue(g, open_group.stream) : ncclSystemError;
}

static ncclResult_t add_message(struct ncclComm *comm, bool sends,
                                const void *data, size_t bytes, int peer,
                                cudaStream_t stream)
{
    union {
        const void *in;
        void *out;
    } p = {.in = data};
    size_t i = open_group.n;

    if (emulated_comm_ready(comm) != ncclSuccess) {
        return emulated_comm_ready(comm);
    }
    if (open_group.depth == 0 || peer < 0 || peer >= comm->n ||
        peer == comm->me ||
        i == sizeof(open_group.move) / sizeof(*open_group.move)) {
        return ncclInvalidArgument;
    }
    emulated_turn();
    open_group.move[i] = (struct move){comm, sends, peer, p.out, bytes, 0};
    open_group.n++;
    open_group.stream = stream;
    return ncclSuccess;
}

ncclResult_t ncclSend(const void *in, size_t n, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream)
{
    return add_message(comm, true, in, n * size_of(type), peer, stream);
}

ncclResult_t ncclRecv(void *out, size_t n, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream)
{
    return add_message(comm, false, out, n * size_of(type), peer, stream);
}

/* ---- Collectives ------------------------------------------------------- */

/* The part that is sent is read while the others' parts come in: if both are in
 * one buffer, each rank's part must be in its own place, or the result is
 * undefined. */
static bool in_place_or_apart(const char *part, const char *all, size_t bytes,
                              const struct ncclComm *comm)
{
    size_t n = (size_t)comm->n;

    if (part == all + (size_t)comm->me * bytes || part + bytes <= all ||
        all + n * bytes <= part) {
        return true;
    }
    fprintf(stderr, "emulated NCCL: a part lies in the whole, and not in its "
                    "place\n");
    return false;
}

/* Sends a part to each other rank, and receives one from it: `send` and `get`
 * have a part of `bytes` for each rank where the stride is not 0. */
static struct group *exchange(struct ncclComm *comm, const char *send,
                              size_t send_stride, char *get, size_t get_stride,
                              size_t bytes, cudaStream_t stream)
{
    open_group.depth++;
    for (int r = 0; r < comm->n; r++) {
        size_t i = (size_t)r;

        if (r != comm->me) {
            if (send) {
                add_message(comm, true, send + i * send_stride, bytes, r,
                            stream);
            }
            if (get) {
                add_message(comm, false, get + i * get_stride, bytes, r,
                            stream);
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
    ncclResult_t ready = emulated_comm_ready(comm);
    struct group *g;

    if (ready != ncclSuccess) {
        return ready;
    }
    if (!in_place_or_apart(in, out, bytes, comm)) {
        return ncclInvalidUsage;
    }
    g = exchange(comm, in, 0, out, bytes, bytes, stream);
    if (!g) {
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
    ncclResult_t ready = emulated_comm_ready(comm);
    struct group *g;
    float *heap;

    if (ready != ncclSuccess) {
        return ready;
    }
    if (!in_place_or_apart(out, in, bytes, comm)) {
        return ncclInvalidUsage;
    }
    heap = malloc((size_t)comm->n * bytes + 1);
    if (!heap || type != ncclFloat32 || op != ncclSum) {
        free(heap);
        return ncclInvalidArgument;
    }
    g = exchange(comm, in, bytes, (char *)heap, bytes, bytes, stream);
    if (!g) {
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
    ncclResult_t ready = emulated_comm_ready(comm);
    struct group *g;

    if (ready != ncclSuccess) {
        return ready;
    }
    if (root == comm->me) {
        g = exchange(comm, in, 0, NULL, 0, bytes, stream);
    } else {
        open_group.depth++;
        add_message(comm, false, out, bytes, root, stream);
        open_group.depth--;
        g = take_moves(comm);
    }
    if (!g) {
        return ncclSystemError;
    }
    g->own = in;
    g->out = out;
    g->n = bytes;
    g->copies = root == comm->me;
    return enqueue(g, stream);
}
