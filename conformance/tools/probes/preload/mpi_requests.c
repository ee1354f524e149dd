/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi_requests.c - persistent requests: the arguments with which they were made
 * are logged each time they are started. Of plain messages only their number
 * and bytes are kept.
 */
#include "tools/probes/preload/mpi_probe.h"

#include <stdlib.h>
#include <string.h>

/* Few are alive at a time, so that a list is enough. */
struct entry {
    struct entry *next;
    MPI_Request request;
    struct mpi_probe_kept kept;
};

static struct entry *first;

static struct entry **find(MPI_Request request)
{
    struct entry **at = &first;
    while (*at && (*at)->request != request) {
        at = &(*at)->next;
    }
    return at;
}

void mpi_probe_remember(MPI_Request request, const struct mpi_probe_kept *kept)
{
    struct entry **at = find(request);
    if (!*at) {
        *at = calloc(1, sizeof(**at));
    }
    if (!*at) {
        probe_complain("out of memory: a persistent call is not logged");
        return;
    }
    (*at)->request = request;
    (*at)->kept = *kept;
}

const struct mpi_probe_kept *mpi_probe_recall(MPI_Request request)
{
    const struct entry *entry = *find(request);
    return entry ? &entry->kept : NULL;
}

void mpi_probe_drop(MPI_Request request)
{
    struct entry **at = find(request);
    struct entry *entry = *at;
    if (entry) {
        *at = entry->next;
        free(entry);
    }
}

static void lock(void)
{
    (void)pthread_mutex_lock(&mpi_probe_log.log.lock);
}

static void unlock(void)
{
    (void)pthread_mutex_unlock(&mpi_probe_log.log.lock);
}

static void started(int n, const MPI_Request *request)
{
    if (mpi_probe_depth > 0) {
        return;
    }
    lock();
    for (int i = 0; i < n; i++) {
        const struct mpi_probe_kept *kept = mpi_probe_recall(request[i]);
        if (kept && kept->is_message) {
            mpi_probe_log.sends++;
            mpi_probe_log.send_bytes += (uint64_t)kept->bytes;
        } else if (kept && mpi_probe_log.log.state == PROBE_LOG_OPEN) {
            (void)call_log_call(&mpi_probe_log, &kept->call.call);
        }
    }
    unlock();
}

PROBE_EXPORT int MPI_Start(MPI_Request *request)
{
    started(1, request);
    return PMPI_Start(request);
}

PROBE_EXPORT int MPI_Startall(int n, MPI_Request requests[])
{
    started(n, requests);
    return PMPI_Startall(n, requests);
}

PROBE_EXPORT int MPI_Request_free(MPI_Request *request)
{
    lock();
    mpi_probe_drop(*request);
    unlock();
    return PMPI_Request_free(request);
}

/* ---- Messages ---- */

#define EXPAND(...) __VA_ARGS__

#define SENDS(NAME)                                                 \
    PROBE_EXPORT int MPI_##NAME(const void *buffer, int count,      \
                                MPI_Datatype type, int to, int tag, \
                                MPI_Comm comm)                      \
    {                                                               \
        mpi_probe_message(false, count, type);                      \
        return PMPI_##NAME(buffer, count, type, to, tag, comm);     \
    }
SENDS(Send)
SENDS(Bsend)
SENDS(Ssend)
SENDS(Rsend)

#define STARTS_SENDING(NAME)                                             \
    PROBE_EXPORT int MPI_##NAME(const void *buffer, int count,           \
                                MPI_Datatype type, int to, int tag,      \
                                MPI_Comm comm, MPI_Request *request)     \
    {                                                                    \
        mpi_probe_message(false, count, type);                           \
        return PMPI_##NAME(buffer, count, type, to, tag, comm, request); \
    }
STARTS_SENDING(Isend)
STARTS_SENDING(Ibsend)
STARTS_SENDING(Issend)
STARTS_SENDING(Irsend)

static int keep_message(int code, int count, MPI_Datatype type,
                        const MPI_Request *request)
{
    int bytes = 0;
    if (code == MPI_SUCCESS && mpi_probe_depth == 0) {
        (void)PMPI_Type_size(type, &bytes);
        struct mpi_probe_kept kept = {.is_message = true,
                                      .bytes = (int64_t)count * bytes};
        lock();
        mpi_probe_remember(*request, &kept);
        unlock();
    }
    return code;
}

#define KEEPS_SENDING(NAME)                                                  \
    PROBE_EXPORT int MPI_##NAME(const void *buffer, int count,               \
                                MPI_Datatype type, int to, int tag,          \
                                MPI_Comm comm, MPI_Request *request)         \
    {                                                                        \
        int code = PMPI_##NAME(buffer, count, type, to, tag, comm, request); \
        return keep_message(code, count, type, request);                     \
    }
KEEPS_SENDING(Send_init)
KEEPS_SENDING(Bsend_init)
KEEPS_SENDING(Ssend_init)
KEEPS_SENDING(Rsend_init)

PROBE_EXPORT int MPI_Sendrecv(const void *sent, int count, MPI_Datatype type,
                              int to, int tag, void *got, int room,
                              MPI_Datatype got_type, int from, int got_tag,
                              MPI_Comm comm, MPI_Status *status)
{
    mpi_probe_message(false, count, type);
    return PMPI_Sendrecv(sent, count, type, to, tag, got, room, got_type, from,
                         got_tag, comm, status);
}

PROBE_EXPORT int MPI_Sendrecv_replace(void *buffer, int count,
                                      MPI_Datatype type, int to, int tag,
                                      int from, int got_tag, MPI_Comm comm,
                                      MPI_Status *status)
{
    mpi_probe_message(false, count, type);
    return PMPI_Sendrecv_replace(buffer, count, type, to, tag, from, got_tag,
                                 comm, status);
}

/* ---- One-sided ---- */

#define TOUCHES(NAME, BUFFER, MORE, ARGUMENTS)                             \
    PROBE_EXPORT int MPI_##NAME(BUFFER own, int count, MPI_Datatype type,  \
                                int target, MPI_Aint at, int target_count, \
                                MPI_Datatype target_type, EXPAND MORE)     \
    {                                                                      \
        mpi_probe_message(true, count, type);                              \
        return PMPI_##NAME(own, count, type, target, at, target_count,     \
                           target_type, EXPAND ARGUMENTS);                 \
    }
TOUCHES(Put, const void *, (MPI_Win win), (win))
TOUCHES(Get, void *, (MPI_Win win), (win))
TOUCHES(Rput, const void *, (MPI_Win win, MPI_Request *r), (win, r))
TOUCHES(Rget, void *, (MPI_Win win, MPI_Request *r), (win, r))
TOUCHES(Accumulate, const void *, (MPI_Op op, MPI_Win win), (op, win))
TOUCHES(Raccumulate, const void *, (MPI_Op op, MPI_Win win, MPI_Request *r),
        (op, win, r))
