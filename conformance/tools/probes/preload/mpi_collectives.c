/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi_collectives.c - every collective of MPI in its three forms: blocking,
 * nonblocking, and persistent (of MPI 4, or Open MPI's own before it). One row
 * each: parameters, arguments, and how they are told to the log.
 */
#include "tools/probes/preload/mpi_probe.h"

#ifdef FSDP_HAVE_MPIX_PERSISTENT
#    include <mpi-ext.h>
#endif

#define EXPAND(...) __VA_ARGS__

#define FORM(NAME, MODE, PARAMETERS, ARGUMENTS, FILL)                        \
    PROBE_EXPORT int MPI_##NAME(EXPAND PARAMETERS)                           \
    {                                                                        \
        struct mpi_probe_call c = mpi_probe_begin("MPI_" #NAME, MODE, comm); \
        FILL;                                                                \
        uint64_t seq = mpi_probe_enter(&c);                                  \
        return mpi_probe_leave(&c, seq, PMPI_##NAME(EXPAND ARGUMENTS));      \
    }

#define PERSISTENT(PREFIX, NAME, PARAMETERS, ARGUMENTS, FILL)                  \
    PROBE_EXPORT int PREFIX##_##NAME(EXPAND PARAMETERS, MPI_Info info,         \
                                     MPI_Request *request)                     \
    {                                                                          \
        struct mpi_probe_call c =                                              \
            mpi_probe_begin(#PREFIX "_" #NAME, PROBE_PERSISTENT, comm);        \
        FILL;                                                                  \
        mpi_probe_depth++;                                                     \
        return mpi_probe_keep(                                                 \
            &c, P##PREFIX##_##NAME(EXPAND ARGUMENTS, info, request), request); \
    }

#ifdef FSDP_HAVE_MPI_PERSISTENT
#    define STANDARD(...) PERSISTENT(MPI, __VA_ARGS__)
#else
#    define STANDARD(...)
#endif
#ifdef FSDP_HAVE_MPIX_PERSISTENT
#    define EXTENSION(...) PERSISTENT(MPIX, __VA_ARGS__)
#else
#    define EXTENSION(...)
#endif

#define COLLECTIVE(NAME, INAME, PARAMETERS, ARGUMENTS, FILL)                   \
    FORM(NAME, PROBE_BLOCKING, PARAMETERS, ARGUMENTS, FILL)                    \
    FORM(INAME, PROBE_NONBLOCKING, (EXPAND PARAMETERS, MPI_Request * request), \
         (EXPAND ARGUMENTS, request), FILL)                                    \
    STANDARD(NAME##_init, PARAMETERS, ARGUMENTS, FILL)                         \
    EXTENSION(NAME##_init, PARAMETERS, ARGUMENTS, FILL)

/* ---- Those of FSDP ---- */

COLLECTIVE(Allgather, Iallgather,
           (const void *in, int sent, MPI_Datatype type, void *out, int got,
            MPI_Datatype got_type, MPI_Comm comm),
           (in, sent, type, out, got, got_type, comm),
           mpi_probe_even(&c, PROBE_ALL_GATHER, got, got_type, in))

COLLECTIVE(Allgatherv, Iallgatherv,
           (const void *in, int sent, MPI_Datatype type, void *out,
            const int got[], const int at[], MPI_Datatype got_type,
            MPI_Comm comm),
           (in, sent, type, out, got, at, got_type, comm),
           mpi_probe_parts(&c, PROBE_ALL_GATHER, PROBE_ALL_GATHER_V, got,
                           got_type, in))

COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block,
           (const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
            MPI_Comm comm),
           (in, out, count, type, op, comm),
           (mpi_probe_even(&c, PROBE_REDUCE_SCATTER, count, type, in),
            mpi_probe_op(&c, op)))

COLLECTIVE(Reduce_scatter, Ireduce_scatter,
           (const void *in, void *out, const int counts[], MPI_Datatype type,
            MPI_Op op, MPI_Comm comm),
           (in, out, counts, type, op, comm),
           (mpi_probe_parts(&c, PROBE_REDUCE_SCATTER, PROBE_REDUCE_SCATTER_V,
                            counts, type, in),
            mpi_probe_op(&c, op)))

COLLECTIVE(Allreduce, Iallreduce,
           (const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
            MPI_Comm comm),
           (in, out, count, type, op, comm),
           (mpi_probe_whole(&c, PROBE_ALL_REDUCE, count, type, in),
            mpi_probe_op(&c, op)))

COLLECTIVE(Bcast, Ibcast,
           (void *buffer, int count, MPI_Datatype type, int root,
            MPI_Comm comm),
           (buffer, count, type, root, comm),
           (mpi_probe_whole(&c, PROBE_BROADCAST, count, type, NULL),
            mpi_probe_root(&c, root)))

COLLECTIVE(Barrier, Ibarrier, (MPI_Comm comm), (comm),
           (mpi_probe_whole(&c, PROBE_BARRIER, 0, MPI_BYTE, NULL),
            c.call.dtype = PROBE_NONE))

/* ---- Those with a root ---- */

/* Arguments that only the root has are read there alone. In an
 * intercommunicator the root passes MPI_ROOT, which is no rank. */
static bool is_root(const struct mpi_probe_call *c, int root)
{
    return root == c->me || root == MPI_ROOT;
}

static void fill_rooted(struct mpi_probe_call *c, uint32_t kind, int root,
                        const void *own, int count, MPI_Datatype type,
                        int root_count, MPI_Datatype root_type)
{
    if (is_root(c, root)) {
        mpi_probe_even(c, kind, root_count, root_type, own);
    } else {
        mpi_probe_even(c, kind, count, type, own);
    }
    mpi_probe_root(c, root);
}

COLLECTIVE(Gather, Igather,
           (const void *in, int sent, MPI_Datatype type, void *out, int got,
            MPI_Datatype got_type, int root, MPI_Comm comm),
           (in, sent, type, out, got, got_type, root, comm),
           fill_rooted(&c, PROBE_GATHER, root, in, sent, type, got, got_type))

COLLECTIVE(Scatter, Iscatter,
           (const void *in, int sent, MPI_Datatype type, void *out, int got,
            MPI_Datatype got_type, int root, MPI_Comm comm),
           (in, sent, type, out, got, got_type, root, comm),
           fill_rooted(&c, PROBE_SCATTER, root, out, got, got_type, sent, type))

static void fill_rooted_parts(struct mpi_probe_call *c, uint32_t even,
                              uint32_t uneven, int root, const void *own,
                              int count, MPI_Datatype type, const int *counts,
                              MPI_Datatype root_type)
{
    if (is_root(c, root)) {
        mpi_probe_parts(c, even, uneven, counts, root_type, own);
        c->call.kind = uneven; /* the others cannot know that it is even */
    } else {
        mpi_probe_even(c, uneven, count, type, own);
        c->call.total = -1;
    }
    mpi_probe_root(c, root);
}

COLLECTIVE(Gatherv, Igatherv,
           (const void *in, int sent, MPI_Datatype type, void *out,
            const int got[], const int at[], MPI_Datatype got_type, int root,
            MPI_Comm comm),
           (in, sent, type, out, got, at, got_type, root, comm),
           fill_rooted_parts(&c, PROBE_GATHER, PROBE_GATHER_V, root, in, sent,
                             type, got, got_type))

COLLECTIVE(Scatterv, Iscatterv,
           (const void *in, const int sent[], const int at[], MPI_Datatype type,
            void *out, int got, MPI_Datatype got_type, int root, MPI_Comm comm),
           (in, sent, at, type, out, got, got_type, root, comm),
           fill_rooted_parts(&c, PROBE_SCATTER, PROBE_SCATTER_V, root, out, got,
                             got_type, sent, type))

COLLECTIVE(Reduce, Ireduce,
           (const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
            int root, MPI_Comm comm),
           (in, out, count, type, op, root, comm),
           (mpi_probe_whole(&c, PROBE_REDUCE, count, type, in),
            mpi_probe_op(&c, op), mpi_probe_root(&c, root)))

/* ---- The others ---- */

COLLECTIVE(Alltoall, Ialltoall,
           (const void *in, int sent, MPI_Datatype type, void *out, int got,
            MPI_Datatype got_type, MPI_Comm comm),
           (in, sent, type, out, got, got_type, comm),
           mpi_probe_even(&c, PROBE_ALL_TO_ALL, got, got_type, in))

COLLECTIVE(Alltoallv, Ialltoallv,
           (const void *in, const int sent[], const int at[], MPI_Datatype type,
            void *out, const int got[], const int got_at[],
            MPI_Datatype got_type, MPI_Comm comm),
           (in, sent, at, type, out, got, got_at, got_type, comm),
           mpi_probe_sum(&c, PROBE_ALL_TO_ALL_V, got, got_type, in))

COLLECTIVE(Alltoallw, Ialltoallw,
           (const void *in, const int sent[], const int at[],
            const MPI_Datatype types[], void *out, const int got[],
            const int got_at[], const MPI_Datatype got_types[], MPI_Comm comm),
           (in, sent, at, types, out, got, got_at, got_types, comm),
           mpi_probe_mixed(&c, got, got_types, in))

COLLECTIVE(Scan, Iscan,
           (const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
            MPI_Comm comm),
           (in, out, count, type, op, comm),
           (mpi_probe_whole(&c, PROBE_SCAN, count, type, in),
            mpi_probe_op(&c, op)))

COLLECTIVE(Exscan, Iexscan,
           (const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
            MPI_Comm comm),
           (in, out, count, type, op, comm),
           (mpi_probe_whole(&c, PROBE_EXSCAN, count, type, in),
            mpi_probe_op(&c, op)))

/* For neighbors the log has the part of each, not how many there are. */
static void fill_neighbors(struct mpi_probe_call *c, uint32_t kind, int count,
                           MPI_Datatype type)
{
    mpi_probe_whole(c, kind, count, type, NULL);
    c->call.total = -1;
}

COLLECTIVE(Neighbor_allgather, Ineighbor_allgather,
           (const void *in, int sent, MPI_Datatype type, void *out, int got,
            MPI_Datatype got_type, MPI_Comm comm),
           (in, sent, type, out, got, got_type, comm),
           fill_neighbors(&c, PROBE_NEIGHBOR_ALL_GATHER, sent, type))

COLLECTIVE(Neighbor_allgatherv, Ineighbor_allgatherv,
           (const void *in, int sent, MPI_Datatype type, void *out,
            const int got[], const int at[], MPI_Datatype got_type,
            MPI_Comm comm),
           (in, sent, type, out, got, at, got_type, comm),
           fill_neighbors(&c, PROBE_NEIGHBOR_ALL_GATHER, sent, type))

COLLECTIVE(Neighbor_alltoall, Ineighbor_alltoall,
           (const void *in, int sent, MPI_Datatype type, void *out, int got,
            MPI_Datatype got_type, MPI_Comm comm),
           (in, sent, type, out, got, got_type, comm),
           fill_neighbors(&c, PROBE_NEIGHBOR_ALL_TO_ALL, sent, type))
