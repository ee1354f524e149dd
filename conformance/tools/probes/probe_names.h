/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe_names.h - the words of a probe's log, for those who write it and for
 * the reader. Where a record of the suite has a word for the same thing, it is
 * used.
 */
#ifndef FSDP_CTS_PROBE_NAMES_H
#define FSDP_CTS_PROBE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

enum {
    PROBE_VERSION = 1,
    PROBE_TEXT_BYTES = 256, /* of any text in a log, with its end */
};

enum probe_source {
    PROBE_MPI = 0,
    PROBE_NCCL = 1,
    PROBE_HEAP = 2,
    PROBE_TORCH = 3,    /* torch.distributed */
    PROBE_STORAGES = 4, /* of tensors of PyTorch, on the host */
    PROBE_N_SOURCES,
};
const char *probe_source_name(uint32_t source);
/* Whether the source's logs are of memory; else they are of collectives. */
bool probe_source_is_memory(uint32_t source);

/* The first five are enum fsdp_collective_kind. */
enum probe_kind {
    PROBE_ALL_GATHER = 0,
    PROBE_REDUCE_SCATTER = 1,
    PROBE_ALL_REDUCE = 2,
    PROBE_BROADCAST = 3,
    PROBE_BARRIER = 4,
    PROBE_GATHER,
    PROBE_SCATTER,
    PROBE_REDUCE,
    PROBE_ALL_TO_ALL,
    PROBE_SCAN,
    PROBE_EXSCAN,
    /* Parts of different sizes. */
    PROBE_ALL_GATHER_V,
    PROBE_REDUCE_SCATTER_V,
    PROBE_GATHER_V,
    PROBE_SCATTER_V,
    PROBE_ALL_TO_ALL_V,
    PROBE_NEIGHBOR_ALL_GATHER,
    PROBE_NEIGHBOR_ALL_TO_ALL,
    PROBE_SEND, /* where a library reports these as calls of their own */
    PROBE_RECV,
    PROBE_OTHER,
    PROBE_N_KINDS,
};
const char *probe_kind_name(uint32_t kind); /* NULL out of range */

enum probe_dtype {
    PROBE_NONE = 0, /* the first seven are enum fsdp_dtype */
    PROBE_F32 = 1,
    PROBE_BF16 = 2,
    PROBE_F16 = 3,
    PROBE_I32 = 4,
    PROBE_I64 = 5,
    PROBE_U8 = 6,
    PROBE_F64,
    PROBE_I8,
    PROBE_I16,
    PROBE_U16,
    PROBE_U32,
    PROBE_U64,
    PROBE_BOOL,
    PROBE_F8,
    PROBE_DERIVED, /* a type that the program has made */
    PROBE_N_DTYPES,
};
const char *probe_dtype_name(uint32_t dtype);
/* Bytes of an element; 0: not known from the name. */
uint32_t probe_dtype_bytes(uint32_t dtype);

enum probe_mode {
    PROBE_BLOCKING = 0,
    PROBE_NONBLOCKING = 1,
    PROBE_PERSISTENT = 2, /* logged each time it is started */
    PROBE_ENQUEUED = 3,   /* on a stream of a GPU */
};
const char *probe_mode_name(uint32_t mode);

/* How a log ended. */
enum probe_how {
    PROBE_FINALIZED = 0, /* MPI_Finalize */
    PROBE_ABORTED = 1,   /* MPI_Abort */
    PROBE_EXITED = 2,    /* the process left by exit or by returning */
};
const char *probe_how_name(uint32_t how);

#endif
