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
        free(comm);
    }
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
    emulated_comm_release(comm);
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
