/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe_names.c - see probe_names.h.
 */
#include "tools/probes/probe_names.h"

#include <stddef.h>

#define NAME_OF(list, i) \
    ((i) < sizeof(list) / sizeof(*(list)) ? (list)[i] : NULL)

const char *probe_source_name(uint32_t source)
{
    static const char *const name[] = {"mpi", "nccl", "heap", "torch",
                                       "storages"};

    return NAME_OF(name, source);
}

bool probe_source_is_memory(uint32_t source)
{
    return source == PROBE_HEAP || source == PROBE_STORAGES;
}

const char *probe_kind_name(uint32_t kind)
{
    static const char *const name[PROBE_N_KINDS] = {
        [PROBE_ALL_GATHER] = "all-gather",
        [PROBE_REDUCE_SCATTER] = "reduce-scatter",
        [PROBE_ALL_REDUCE] = "all-reduce",
        [PROBE_BROADCAST] = "broadcast",
        [PROBE_BARRIER] = "barrier",
        [PROBE_GATHER] = "gather",
        [PROBE_SCATTER] = "scatter",
        [PROBE_REDUCE] = "reduce",
        [PROBE_ALL_TO_ALL] = "all-to-all",
        [PROBE_SCAN] = "scan",
        [PROBE_EXSCAN] = "exscan",
        [PROBE_ALL_GATHER_V] = "all-gather-v",
        [PROBE_REDUCE_SCATTER_V] = "reduce-scatter-v",
        [PROBE_GATHER_V] = "gather-v",
        [PROBE_SCATTER_V] = "scatter-v",
        [PROBE_ALL_TO_ALL_V] = "all-to-all-v",
        [PROBE_NEIGHBOR_ALL_GATHER] = "neighbor-all-gather",
        [PROBE_NEIGHBOR_ALL_TO_ALL] = "neighbor-all-to-all",
        [PROBE_SEND] = "send",
        [PROBE_RECV] = "recv",
        [PROBE_OTHER] = "other",
    };

    return NAME_OF(name, kind);
}

static const struct {
    const char *name;
    uint32_t bytes;
} dtypes[PROBE_N_DTYPES] = {
    [PROBE_NONE] = {"none", 0}, [PROBE_F32] = {"f32", 4},
    [PROBE_BF16] = {"bf16", 2}, [PROBE_F16] = {"f16", 2},
    [PROBE_I32] = {"i32", 4},   [PROBE_I64] = {"i64", 8},
    [PROBE_U8] = {"u8", 1},     [PROBE_F64] = {"f64", 8},
    [PROBE_I8] = {"i8", 1},     [PROBE_I16] = {"i16", 2},
    [PROBE_U16] = {"u16", 2},   [PROBE_U32] = {"u32", 4},
    [PROBE_U64] = {"u64", 8},   [PROBE_BOOL] = {"bool", 1},
    [PROBE_F8] = {"f8", 1},     [PROBE_DERIVED] = {"derived", 0},
};

const char *probe_dtype_name(uint32_t dtype)
{
    return dtype < PROBE_N_DTYPES ? dtypes[dtype].name : NULL;
}

uint32_t probe_dtype_bytes(uint32_t dtype)
{
    return dtype < PROBE_N_DTYPES ? dtypes[dtype].bytes : 0;
}

const char *probe_mode_name(uint32_t mode)
{
    static const char *const name[] = {"blocking", "nonblocking", "persistent",
                                       "enqueued"};

    return NAME_OF(name, mode);
}

const char *probe_how_name(uint32_t how)
{
    static const char *const name[] = {"finalized", "aborted", "exited"};

    return NAME_OF(name, how);
}
