/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi_arguments.c - what the arguments of a collective of MPI mean in a log:
 * type, elements of this rank's part and of all, bytes. Arguments that MPI
 * will refuse are not logged: it says so itself.
 */
#include "tools/probes/preload/mpi_probe.h"

static uint32_t dtype_of(MPI_Datatype type)
{
    /* Handles of some libraries are no constants, so this cannot be static. */
    const struct {
        MPI_Datatype type;
        uint32_t dtype;
    } known[] = {
        {MPI_FLOAT, PROBE_F32},        {MPI_DOUBLE, PROBE_F64},
        {MPI_INT, PROBE_I32},          {MPI_INT32_T, PROBE_I32},
        {MPI_BYTE, PROBE_U8},          {MPI_UINT8_T, PROBE_U8},
        {MPI_UNSIGNED_CHAR, PROBE_U8}, {MPI_CHAR, PROBE_I8},
        {MPI_SIGNED_CHAR, PROBE_I8},   {MPI_INT8_T, PROBE_I8},
        {MPI_SHORT, PROBE_I16},        {MPI_INT16_T, PROBE_I16},
        {MPI_UINT16_T, PROBE_U16},     {MPI_UNSIGNED_SHORT, PROBE_U16},
        {MPI_UNSIGNED, PROBE_U32},     {MPI_UINT32_T, PROBE_U32},
        {MPI_INT64_T, PROBE_I64},      {MPI_LONG_LONG, PROBE_I64},
        {MPI_UINT64_T, PROBE_U64},     {MPI_UNSIGNED_LONG_LONG, PROBE_U64},
        {MPI_C_BOOL, PROBE_BOOL},
    };
    if (type == MPI_LONG) {
        return sizeof(long) == 8 ? PROBE_I64 : PROBE_I32;
    }
    if (type == MPI_UNSIGNED_LONG) {
        return sizeof(long) == 8 ? PROBE_U64 : PROBE_U32;
    }
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        if (type == known[i].type) {
            return known[i].dtype;
        }
    }
    return PROBE_DERIVED;
}

/* Elements of a part and of all; -1: not known here. */
static void fill(struct mpi_probe_call *c, uint32_t kind, int64_t n,
                 int64_t total, MPI_Datatype type, const void *own)
{
    int bytes = 0;
    c->on = c->on && type != MPI_DATATYPE_NULL && n >= 0;
    if (!c->on) {
        return;
    }
    (void)PMPI_Type_size(type, &bytes);
    c->call.kind = kind;
    c->call.dtype = dtype_of(type);
    c->call.n = n;
    c->call.total = total;
    c->call.bytes = n * bytes;
    c->call.in_place = !own ? -1 : own == MPI_IN_PLACE;
}

/* A buffer of no elements may be NULL, and is not in place. */
static const void *or_nothing(const void *own)
{
    static const char nothing;
    return own ? own : &nothing;
}

void mpi_probe_even(struct mpi_probe_call *c, uint32_t kind, int count,
                    MPI_Datatype type, const void *own)
{
    fill(c, kind, count, (int64_t)count * c->size, type, or_nothing(own));
}

void mpi_probe_whole(struct mpi_probe_call *c, uint32_t kind, int count,
                     MPI_Datatype type, const void *own)
{
    fill(c, kind, count, count, type, own);
}

void mpi_probe_parts(struct mpi_probe_call *c, uint32_t even, uint32_t uneven,
                     const int *counts, MPI_Datatype type, const void *own)
{
    int64_t total = 0;
    bool is_even = true;
    c->on = c->on && counts && c->me < c->size;
    if (!c->on) {
        return;
    }
    for (int i = 0; i < c->size; i++) {
        total += counts[i];
        is_even = is_even && counts[i] == counts[0];
    }
    fill(c, is_even ? even : uneven, counts[c->me], total, type,
         or_nothing(own));
}

void mpi_probe_sum(struct mpi_probe_call *c, uint32_t kind, const int *counts,
                   MPI_Datatype type, const void *own)
{
    int64_t total = 0;
    c->on = c->on && counts;
    for (int i = 0; c->on && i < c->size; i++) {
        total += counts[i];
    }
    fill(c, kind, total, -1, type, or_nothing(own));
}

void mpi_probe_mixed(struct mpi_probe_call *c, const int *counts,
                     const MPI_Datatype *types, const void *own)
{
    int64_t total = 0;
    c->on = c->on && counts && types;
    for (int i = 0; c->on && i < c->size; i++) {
        int bytes = 0;
        if (counts[i] > 0 && types[i] != MPI_DATATYPE_NULL) {
            (void)PMPI_Type_size(types[i], &bytes);
        }
        total += (int64_t)counts[i] * bytes;
    }
    fill(c, PROBE_ALL_TO_ALL_V, total, -1, MPI_BYTE, or_nothing(own));
}

void mpi_probe_root(struct mpi_probe_call *c, int root)
{
    c->call.root = root >= 0 ? root : -1;
}

void mpi_probe_op(struct mpi_probe_call *c, MPI_Op op)
{
    c->call.op = op == MPI_SUM    ? "sum"
                 : op == MPI_PROD ? "prod"
                 : op == MPI_MAX  ? "max"
                 : op == MPI_MIN  ? "min"
                 : op == MPI_BAND ? "band"
                 : op == MPI_BOR  ? "bor"
                 : op == MPI_BXOR ? "bxor"
                 : op == MPI_LAND ? "land"
                 : op == MPI_LOR  ? "lor"
                 : op == MPI_LXOR ? "lxor"
                                  : "own";
}
