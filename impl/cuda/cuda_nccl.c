/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_nccl.c - the transport over NCCL.
 *
 * The communicator does not block: a call that would wait for other ranks
 * returns "in progress", and the waiting thread looks around. ncclSum is the
 * only reduction, and only in the ring: how the library averages or scales
 * depends on protocol and compiler.
 */
#include "cuda_transport.h"

#include <nccl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

_Static_assert(CUDA_NCCL_ID == NCCL_UNIQUE_ID_BYTES, "an id is as long");

enum {
    ABORT_S = 5, /* that an abort gets */
};

/* A thread of its own that waits until it must abort a communicator. */
struct aborter {
    pthread_t thread;
    sem_t go;
    ncclComm_t comm; /* NULL: there is nothing to abort */
    int gpu;
};

struct nccl {
    struct cuda_group group;
    ncclComm_t comm; /* NULL: given up */
    struct aborter *aborter;
};

/*
 * Turns off all that would choose an algorithm by size, topology or
 * registration, so that a ring's order is the same for all of a call. Variables
 * that the caller has set stay; whether the ring has the order of comm.h is
 * tried, not believed (cuda_ring.c).
 */
static void pin(void)
{
    static const char *const variables[][2] = {
        {"NCCL_ALGO", "Ring"},        {"NCCL_NVLS_ENABLE", "0"},
        {"NCCL_COLLNET_ENABLE", "0"}, {"NCCL_PAT_ENABLE", "0"},
        {"NCCL_WIN_ENABLE", "0"},     {"NCCL_TUNER_PLUGIN", "none"},
    };

    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        (void)setenv(variables[i][0], variables[i][1], 0);
    }
}

static void pin_once(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, pin);
}

static int failed(struct cuda_device *device, ncclComm_t comm,
                  ncclResult_t result, const char *what)
{
    const char *detail = comm ? ncclGetLastError(comm) : "";
    char why[160];

    snprintf(why, sizeof(why), "%s%s%.80s", ncclGetErrorString(result),
             detail && detail[0] != '\0' ? ": " : "", detail ? detail : "");
    return cuda_device_fail(device, FSDP_ERR_COMM, (int)result, what, why);
}

/* Waits until what returned `result` has been accepted; then asks something.
 * Until NCCL 2.26 only a question to the communicator itself ends the thread
 * that did it, and takes away what it left in the caller's thread: the group of
 * another communicator would go on with that, and crash. */
static int settle(struct nccl *n, ncclResult_t result, const char *what)
{
    struct cuda_wait wait = {0, 0};
    int members;

    while (result == ncclInProgress && n->comm) {
        ncclResult_t asked = ncclCommGetAsyncError(n->comm, &result);

        if (asked != ncclSuccess) {
            result = asked;
        }
        if (result == ncclInProgress) {
            FSDP_TRY(cuda_device_look(n->group.device, &wait));
        }
    }
    if (result == ncclSuccess) {
        result = ncclCommCount(n->comm, &members);
    }
    return result == ncclSuccess
               ? FSDP_OK
               : failed(n->group.device, n->comm, result, what);
}

int cuda_nccl_check(struct cuda_device *device)
{
    char why[96];
    int version = 0;
    ncclResult_t result = ncclGetVersion(&version);

    if (result != ncclSuccess) {
        return failed(device, NULL, result, "ncclGetVersion");
    }
    if (version / 10000 == NCCL_MAJOR) {
        return FSDP_OK;
    }
    snprintf(why, sizeof(why), "version %d.%d.%d was found, %d.x is needed",
             version / 10000, version / 100 % 100, version % 100, NCCL_MAJOR);
    return cuda_device_fail(device, FSDP_ERR_MISMATCH, version, "NCCL", why);
}

int cuda_nccl_id(struct cuda_device *device, void *id)
{
    ncclUniqueId unique;
    ncclResult_t result;

    pin_once();
    result = ncclGetUniqueId(&unique);
    if (result != ncclSuccess) {
        return failed(device, NULL, result, "ncclGetUniqueId");
    }
    memcpy(id, &unique, sizeof(unique));
    return FSDP_OK;
}

/* ---- Moving ------------------------------------------------------------ */

static ncclResult_t add_messages(struct nccl *n, cudaStream_t stream,
                                 const struct cuda_message *message)
{
    ncclResult_t result = ncclSuccess;

    for (uint32_t r = 0; r < n->group.extent; r++) {
        const struct cuda_message *m = &message[r];

        if (r != n->group.me && m->in_bytes > 0 && result == ncclSuccess) {
            result = ncclSend(m->in, m->in_bytes, ncclUint8, (int)r, n->comm,
                              stream);
        }
        if (r != n->group.me && m->out_bytes > 0 && result == ncclSuccess) {
            result = ncclRecv(m->out, m->out_bytes, ncclUint8, (int)r, n->comm,
                              stream);
        }
    }
    return result;
}

static int exchange(void *self, const struct cuda_target *target,
                    const struct cuda_message *message)
{
    struct nccl *n = self;
    ncclResult_t result = ncclGroupStart();
    ncclResult_t end;

    if (result == ncclSuccess) {
        result = add_messages(n, target->stream, message);
        end = ncclGroupEnd();
        result =
            result == ncclSuccess || result == ncclInProgress ? end : result;
    }
    return settle(n, result, "NCCL: send and receive");
}

static int all_gather(void *self, const struct cuda_target *target,
                      const void *in, void *out, uint64_t bytes)
{
    struct nccl *n = self;

    return settle(
        n, ncclAllGather(in, out, bytes, ncclUint8, n->comm, target->stream),
        "NCCL: all-gather");
}

static int broadcast(void *self, const struct cuda_target *target,
                     const void *in, void *out, uint64_t bytes, uint32_t root)
{
    struct nccl *n = self;

    return settle(n,
                  ncclBroadcast(in, out, bytes, ncclUint8, (int)root, n->comm,
                                target->stream),
                  "NCCL: broadcast");
}

static int ring(void *self, const struct cuda_target *target, const float *in,
                float *out, uint64_t count)
{
    struct nccl *n = self;

    return settle(n,
                  ncclReduceScatter(in, out, count, ncclFloat32, ncclSum,
                                    n->comm, target->stream),
                  "NCCL: reduce-scatter");
}

/* ---- Life -------------------------------------------------------------- */

static int nccl_look(void *self)
{
    struct nccl *n = self;
    ncclResult_t error = ncclSuccess;
    ncclResult_t result =
        n->comm ? ncclCommGetAsyncError(n->comm, &error) : ncclSuccess;

    result = result != ncclSuccess ? result : error;
    return result == ncclSuccess || result == ncclInProgress
               ? FSDP_OK
               : failed(n->group.device, n->comm, result, "NCCL");
}

/* The thread chooses its GPU at once. A thread begins on GPU 0, and NCCL goes
 * back to the GPU of its caller, which makes a context there: half a gigabyte
 * of another rank's GPU. It must not choose only when a failure comes: it may
 * then wait for a thread that is in the driver, which waits for the kernels
 * that are to be aborted. */
static void *be_aborter(void *self)
{
    struct aborter *a = self;

    (void)cudaSetDevice(a->gpu);
    while (sem_wait(&a->go) != 0) {
    }
    if (a->comm) {
        (void)ncclCommAbort(a->comm);
    }
    return NULL;
}

static struct aborter *aborter_open(void)
{
    struct aborter *a = calloc(1, sizeof(*a));

    if (!a || cudaGetDevice(&a->gpu) != cudaSuccess ||
        sem_init(&a->go, 0, 0) != 0) {
        free(a);
        return NULL;
    }
    if (pthread_create(&a->thread, NULL, be_aborter, a) != 0) {
        sem_destroy(&a->go);
        free(a);
        return NULL;
    }
    return a;
}

/* Aborting ends the library's kernels, and waits for what lies before them: if
 * that never ends, neither does this, and after a moment it is left alone. */
static void aborter_close(struct aborter *a, ncclComm_t comm)
{
    struct timespec until;

    a->comm = comm;
    (void)sem_post(&a->go);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ABORT_S;
    if (pthread_clockjoin_np(a->thread, NULL, CLOCK_MONOTONIC, &until) != 0) {
        (void)pthread_detach(a->thread);
        return;
    }
    sem_destroy(&a->go);
    free(a);
}

static void give_up(void *self)
{
    struct nccl *n = self;
    ncclComm_t comm = n->comm;
    struct aborter *aborter = n->aborter;

    n->comm = NULL; /* first: aborting may look around */
    n->aborter = NULL;
    if (aborter) {
        aborter_close(aborter, comm);
    }
}

static void end(void *self)
{
    struct nccl *n = self;

    if (n->comm &&
        settle(n, ncclCommFinalize(n->comm), "ncclCommFinalize") == FSDP_OK) {
        (void)ncclCommDestroy(n->comm);
    }
    if (n->aborter) {
        aborter_close(n->aborter, NULL);
    }
    free(n);
}

int cuda_nccl_open(const struct cuda_group *group, const void *id,
                   struct cuda_transport *out)
{
    struct nccl *n = calloc(1, sizeof(*n));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId unique;
    ncclResult_t result;

    if (!n) {
        return cuda_device_fail(group->device, FSDP_ERR_NOMEM, 0, "NCCL",
                                "no host memory");
    }
    pin_once();
    n->group = *group;
    memcpy(&unique, id, sizeof(unique));
    config.blocking = 0;
    *out = (struct cuda_transport){.self = n,
                                   .exchange = exchange,
                                   .all_gather = all_gather,
                                   .broadcast = broadcast,
                                   .ring = ring,
                                   .look = nccl_look,
                                   .give_up = give_up,
                                   .close = end};
    n->aborter = aborter_open();
    if (!n->aborter) {
        return cuda_device_fail(group->device, FSDP_ERR_NOMEM, 0, "NCCL",
                                "no thread that could abort it");
    }
    result = ncclCommInitRankConfig(&n->comm, (int)group->extent, unique,
                                    (int)group->me, &config);
    return settle(n, result, "ncclCommInitRank");
}
