/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi_probe.c - an MPI program's collectives, seen from outside: this shared
 * object is preloaded and defines the functions of MPI that it looks at. Here:
 * how a log begins and ends, and how a call is told to it.
 */
#include "tools/probes/preload/mpi_probe.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct call_log mpi_probe_log = CALL_LOG_INITIAL;
_Thread_local int mpi_probe_depth;

static void lock(void)
{
    (void)pthread_mutex_lock(&mpi_probe_log.log.lock);
}

static void unlock(void)
{
    (void)pthread_mutex_unlock(&mpi_probe_log.log.lock);
}

static void in_child(void)
{
    probe_log_forget(&mpi_probe_log.log);
    unlock();
}

/* ---- From MPI_Init to the end ---- */

static void begin(void)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING + 1] = "";
    int length = 0;
    int rank = 0;
    int world = 0;
    (void)PMPI_Get_library_version(library, &length);
    library[strcspn(library, ",\n")] = '\0';
    (void)PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    (void)PMPI_Comm_size(MPI_COMM_WORLD, &world);
    struct probe_head head = {
        .source = PROBE_MPI, .library = library, .rank = rank, .world = world};
    lock();
    if (mpi_probe_log.log.state == PROBE_LOG_CLOSED &&
        call_log_open(&mpi_probe_log, &head)) {
        (void)mpi_probe_comm(&mpi_probe_log, MPI_COMM_WORLD, MPI_COMM_NULL);
    }
    unlock();
    (void)pthread_atfork(lock, unlock, in_child);
}

static void end(uint32_t how)
{
    lock();
    call_log_end(&mpi_probe_log, how);
    unlock();
}

/* Ends the log of a program that leaves without MPI_Finalize. */
__attribute__((destructor)) static void at_exit(void)
{
    end(PROBE_EXITED);
}

PROBE_EXPORT int MPI_Init(int *argc, char ***argv)
{
    mpi_probe_depth++;
    int code = PMPI_Init(argc, argv);
    mpi_probe_depth--;
    if (code == MPI_SUCCESS) {
        begin();
    }
    return code;
}

PROBE_EXPORT int MPI_Init_thread(int *argc, char ***argv, int required,
                                 int *provided)
{
    mpi_probe_depth++;
    int code = PMPI_Init_thread(argc, argv, required, provided);
    mpi_probe_depth--;
    if (code == MPI_SUCCESS) {
        begin();
    }
    return code;
}

PROBE_EXPORT int MPI_Finalize(void)
{
    end(PROBE_FINALIZED);
    return PMPI_Finalize();
}

PROBE_EXPORT int MPI_Abort(MPI_Comm comm, int code)
{
    end(PROBE_ABORTED);
    return PMPI_Abort(comm, code);
}

/* The one call that MPI leaves to profilers: a program may mark its steps. */
PROBE_EXPORT int MPI_Pcontrol(const int level, ...)
{
    char name[32];
    snprintf(name, sizeof(name), "pcontrol %d", level);
    lock();
    call_log_mark(&mpi_probe_log, name);
    unlock();
    return MPI_SUCCESS;
}

/* ---- A call ---- */

struct mpi_probe_call mpi_probe_begin(const char *name, uint32_t mode,
                                      MPI_Comm comm)
{
    struct mpi_probe_call c = {.call = {.call = name,
                                        .mode = mode,
                                        .comm = -1,
                                        .root = -1,
                                        .in_place = -1}};
    int is_inter = 0;
    if (mpi_probe_depth > 0 || comm == MPI_COMM_NULL) {
        return c;
    }
    lock();
    c.on = mpi_probe_log.log.state == PROBE_LOG_OPEN;
    if (c.on) {
        c.call.comm = mpi_probe_comm(&mpi_probe_log, comm, MPI_COMM_NULL);
        (void)PMPI_Comm_test_inter(comm, &is_inter);
        if (is_inter) {
            (void)PMPI_Comm_remote_size(comm, &c.size);
        } else {
            (void)PMPI_Comm_size(comm, &c.size);
        }
        (void)PMPI_Comm_rank(comm, &c.me);
    }
    unlock();
    return c;
}

uint64_t mpi_probe_enter(const struct mpi_probe_call *c)
{
    uint64_t seq = 0;
    if (c->on) {
        lock();
        seq = call_log_call(&mpi_probe_log, &c->call);
        unlock();
    }
    mpi_probe_depth++;
    return seq;
}

int mpi_probe_leave(const struct mpi_probe_call *c, uint64_t seq, int code)
{
    mpi_probe_depth--;
    if (c->on && code != MPI_SUCCESS) {
        struct probe_line line;
        probe_line_begin(&line, "failed");
        probe_line_u64(&line, "seq", seq);
        probe_line_u64(&line, "code", (uint64_t)(uint32_t)code);
        lock();
        probe_log_write(&mpi_probe_log.log, &line);
        unlock();
    }
    return code;
}

int mpi_probe_keep(const struct mpi_probe_call *c, int code,
                   const MPI_Request *request)
{
    mpi_probe_depth--;
    if (c->on && code == MPI_SUCCESS) {
        struct mpi_probe_kept kept = {.call = *c};
        lock();
        mpi_probe_remember(*request, &kept);
        unlock();
    }
    return code;
}

void mpi_probe_message(bool puts, int count, MPI_Datatype type)
{
    int bytes = 0;
    if (mpi_probe_depth > 0 || count < 0 || type == MPI_DATATYPE_NULL) {
        return;
    }
    (void)PMPI_Type_size(type, &bytes);
    lock();
    *(puts ? &mpi_probe_log.puts : &mpi_probe_log.sends) += 1;
    *(puts ? &mpi_probe_log.put_bytes : &mpi_probe_log.send_bytes) +=
        (uint64_t)count * (uint64_t)bytes;
    unlock();
}
