/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private_calls.c - for a test: preloaded before the probe it makes a program
 * communicate past its recorder. Each MPI_Ialltoall is preceded by what
 * FSDP_PRIVATE names: "barrier", a collective of its own, or "message", one to
 * itself.
 */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

/* The next in line, which is the probe. */
#define NEXT(TYPE, NAME) (*(TYPE *)(void *)(void *[]){dlsym(RTLD_NEXT, NAME)})

typedef int barrier_of(MPI_Comm);
typedef int alltoall_of(const void *, int, MPI_Datatype, void *, int,
                        MPI_Datatype, MPI_Comm, MPI_Request *);
typedef int sendrecv_of(const void *, int, MPI_Datatype, int, int, void *, int,
                        MPI_Datatype, int, int, MPI_Comm, MPI_Status *);

static int calls;

int MPI_Ialltoall(const void *in, int sent, MPI_Datatype type, void *out,
                  int got, MPI_Datatype got_type, MPI_Comm comm,
                  MPI_Request *request)
{
    const char *what = getenv("FSDP_PRIVATE");
    int me = 0;
    int x = 0;
    int y = 0;
    (void)PMPI_Comm_rank(comm, &me);
    if (what && calls++ == 5 && strcmp(what, "barrier") == 0) {
        (void)NEXT(barrier_of *, "MPI_Barrier")(comm);
    } else if (what && calls == 6 && strcmp(what, "message") == 0) {
        (void)NEXT(sendrecv_of *, "MPI_Sendrecv")(&x, 1, MPI_INT, me, 77, &y, 1,
                                                  MPI_INT, me, 77, comm,
                                                  MPI_STATUS_IGNORE);
    }
    return NEXT(alltoall_of *, "MPI_Ialltoall")(in, sent, type, out, got,
                                                got_type, comm, request);
}
