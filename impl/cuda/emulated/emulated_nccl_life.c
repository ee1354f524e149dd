/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated_nccl_life.c - TEST ONLY: NCCL's ids and communicators.
 *
 * The memory is a memfd of the rank that made the id; the others find it in
 * /proc. Nothing has a name that could be left behind.
 */
#include "emulated.h"
#include "emulated_post.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void emulated_comm_release(struct ncclComm *comm)
{
    if (--comm->users == 0) {
        munmap(comm->post, sizeof(*comm->post));
        comm->post = NULL;
    }
}

/* Until NCCL 2.26 a group that does not block leaves its thread behind, and the
 * arguments of that thread in memory of the caller. The next call for the same
 * communicator removes both, but a query of its state does not. If a group of
 * another communicator comes before, it takes them for its own, and crashes.
 * One entry for each rank that this thread plays. */
static _Thread_local struct ncclComm *behind[MOST_RANKS];

static struct ncclComm **left_behind(void)
{
    struct ncclComm **left = &behind[emulated_rank() % MOST_RANKS];

    if (*left && !(*left)->alive) {
        *left = NULL;
    }
    return left;
}

static bool stumbles(const struct ncclComm *comm)
{
    const struct ncclComm *left = *left_behind();

    if (!left || left == comm) {
        return false;
    }
    fprintf(stderr, "emulated NCCL: the group of another communicator has "
                    "left its thread behind\n");
    return true;
}

ncclResult_t emulated_comm_ready(struct ncclComm *comm)
{
    if (!comm || !comm->alive) {
        return ncclInvalidArgument;
    }
    if (comm->error == ncclInProgress) {
        fprintf(stderr, "emulated NCCL: the operation before has not "
                        "returned ncclSuccess\n");
        return ncclInvalidArgument;
    }
    if (comm->error == ncclSuccess && stumbles(comm)) {
        return ncclInternalError;
    }
    if (comm->error == ncclSuccess) {
        *left_behind() = NULL;
    }
    return comm->error;
}

ncclResult_t emulated_comm_begin(struct ncclComm *comm)
{
    static _Thread_local unsigned int number;

    if (comm->error == ncclSuccess) {
        comm->error = ncclInProgress;
        comm->looks = ++number % 4;
        *left_behind() = comm;
    }
    return comm->error == ncclInProgress ? ncclInProgress : ncclSuccess;
}

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

/* By this number NCCL recognises ranks of one GPU. */
static uint64_t my_place(void)
{
    const char *host = getenv("NCCL_HOSTID");
    uint64_t h = (uint64_t)emulated_device() + 1;

    for (; host && *host != '\0'; host++) {
        h = (h ^ (unsigned char)*host) * 0x100000001b3u;
    }
    return h;
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
    if (!c || fd < 0 || n > MOST_RANKS || config->blocking != 0 ||
        emulated_fault("nccl-init") || stumbles(NULL)) {
        free(c);
        return ncclSystemError;
    }
    c->post =
        mmap(NULL, sizeof(*c->post), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (c->post == MAP_FAILED || rank < 0 || rank >= n) {
        free(c);
        return ncclInvalidArgument;
    }
    c->n = n;
    c->me = rank;
    c->device = emulated_device();
    c->fd = rank == 0 ? a.fd : -1; /* its maker is the group's first */
    c->users = 1;
    c->of_owner = emulated_hanging();
    c->alive = true;
    c->error = ncclInProgress;
    c->post->place[rank] = my_place();
    atomic_fetch_add(&c->post->joined, 1);
    *left_behind() = c;
    *comm = c;
    return ncclInProgress;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count)
{
    ncclResult_t ready = emulated_comm_ready(comm);

    if (ready == ncclSuccess) {
        *count = comm->n;
    }
    return ready;
}

static bool share_gpu(const struct ncclComm *c)
{
    bool share = false;

    for (int r = 0; r < c->n; r++) {
        for (int s = 0; s < r; s++) {
            share = share || c->post->place[r] == c->post->place[s];
        }
    }
    return share;
}

/* In progress until all have joined; then for some looks more. */
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
    if (!comm || !comm->alive) {
        return ncclInvalidArgument;
    }
    if (comm->finalized && comm->users > 1) {
        emulated_flush(); /* the device goes on by itself */
        comm->looks += comm->users > 1;
    }
    if (comm->error == ncclSuccess && comm->fails > 0 && --comm->fails == 0) {
        comm->error = ncclRemoteError;
    }
    if (comm->error == ncclInProgress &&
        atomic_load(&comm->post->joined) == (uint32_t)comm->n) {
        if (comm->looks > 0) {
            comm->looks--;
        } else {
            comm->error = share_gpu(comm) ? ncclInvalidUsage : ncclSuccess;
        }
        if (comm->fd >= 0) {
            close(comm->fd);
            comm->fd = -1;
        }
    }
    *error = comm->error;
    return ncclSuccess;
}

/* The thread that ends a communicator goes back to the GPU of the thread that
 * asked for it, and thereby makes a context there. */
static ncclResult_t destroy(ncclComm_t comm)
{
    if (emulated_device() != comm->device) {
        fprintf(stderr,
                "emulated NCCL: a communicator of GPU %d was ended by "
                "a thread on GPU %d, which gets a context\n",
                comm->device, emulated_device());
    }
    comm->alive = false;
    if (comm->fd >= 0) {
        close(comm->fd);
        comm->fd = -1;
    }
    emulated_comm_release(comm);
    return ncclSuccess;
}

/* Ends the library's own work, and waits for the work before that. */
ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    if (!comm || !comm->alive) {
        return ncclInvalidArgument;
    }
    comm->aborted = true;
    atomic_fetch_sub(comm->of_owner, comm->hanging);
    while (atomic_load(comm->of_owner) > 0) {
        usleep(1000);
    }
    return destroy(comm);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    ncclResult_t ready = emulated_comm_ready(comm);

    if (ready != ncclSuccess || comm->finalized) {
        return ready != ncclSuccess ? ready : ncclInvalidArgument;
    }
    comm->finalized = true;
    return emulated_comm_begin(comm);
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    ncclResult_t ready = emulated_comm_ready(comm);

    return ready == ncclSuccess ? destroy(comm) : ready;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    return result == ncclRemoteError
               ? "remote process exited or there was a network error"
           : result == ncclInvalidUsage ? "invalid usage"
           : result == ncclInvalidArgument
               ? "invalid argument"
               : "internal error - please report this issue to the NCCL "
                 "developers";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return "";
}
