/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_profiler_abi.h - the interface between NCCL and a profiler plug-in, as
 * far as this one uses it: versions 4 (NCCL 2.27) and 5 (2.28 and later).
 *
 * Written from NCCL's public description of it, plugins/profiler/README.md and
 * src/include/plugin/profiler/profiler_v4.h, profiler_v5.h in
 * https://github.com/NVIDIA/nccl (ext-profiler/ before 2.30). NCCL 2.29 and
 * later ask for version 6 first and then for 5 and 4.
 *
 * NCCL dlopens the file that NCCL_PROFILER_PLUGIN names and looks up
 * ncclProfiler_v6, then ncclProfiler_v5, ncclProfiler_v4 and older ones: data,
 * not functions.
 */
#ifndef FSDP_CTS_NCCL_PROFILER_ABI_H
#define FSDP_CTS_NCCL_PROFILER_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    NCCL_SUCCESS = 0,
    NCCL_INTERNAL_ERROR = 3,
};

/* Kinds of events: bits of a mask, one of them is an event's type. */
enum nccl_profile {
    NCCL_PROFILE_GROUP = 1 << 0,
    NCCL_PROFILE_COLL = 1 << 1, /* an operation as it is launched, with its
                                 * buffers */
    NCCL_PROFILE_P2P = 1 << 2,
    NCCL_PROFILE_PROXY_OP = 1 << 3,
    NCCL_PROFILE_PROXY_STEP = 1 << 4,
    NCCL_PROFILE_PROXY_CTRL = 1 << 5,
    NCCL_PROFILE_KERNEL_CH = 1 << 6,
    NCCL_PROFILE_NET_PLUGIN = 1 << 7,
    NCCL_PROFILE_GROUP_API = 1 << 8, /* from here on: version 5 */
    NCCL_PROFILE_COLL_API = 1 << 9,  /* the call of the program */
    NCCL_PROFILE_P2P_API = 1 << 10,
    NCCL_PROFILE_KERNEL_LAUNCH = 1 << 11,
};

struct nccl_coll {
    uint64_t seq_number; /* of this function in its communicator */
    const char *func;    /* "AllGather" */
    const void *send_buffer;
    void *recv_buffer;
    size_t count;
    int root;
    const char *datatype; /* "ncclFloat32" */
    uint8_t n_channels;
    uint8_t n_warps;
    const char *algo;  /* "RING" */
    const char *proto; /* "SIMPLE" */
};

/* The union's size is that of its largest member, but nothing depends on it: an
 * event is only read during the call. */
struct nccl_event_v4 {
    uint8_t type;
    void *parent;
    int rank;
    union {
        struct nccl_coll coll;
        struct {
            const char *func;
            void *buffer;
            const char *datatype;
            size_t count;
            int peer;
            uint8_t n_channels;
        } p2p;
    };
};

struct nccl_event_v5 {
    uint64_t type;
    void *parent; /* of a launch: the handle of its call */
    int rank;     /* set in launches, not in calls */
    union {
        struct {
            bool graph_captured;
            int group_depth;
        } group_api;
        struct {
            const char *func;
            size_t count;
            const char *datatype;
            int root;
            void *stream;
            bool graph_captured;
        } coll_api;
        struct {
            const char *func;
            size_t count;
            const char *datatype;
            void *stream;
            bool graph_captured;
        } p2p_api;
        struct {
            struct nccl_coll coll;
            void *parent_group;
        } coll;
    };
};

_Static_assert(offsetof(struct nccl_event_v4, coll) == 24, "as in NCCL");
_Static_assert(offsetof(struct nccl_event_v5, coll_api) == 24, "as in NCCL");
_Static_assert(offsetof(struct nccl_event_v5, coll.parent_group) == 24 + 80,
               "as in NCCL");
_Static_assert(offsetof(struct nccl_coll, datatype) == 48, "as in NCCL");
_Static_assert(offsetof(struct nccl_coll, algo) == 64, "as in NCCL");

/* Level, subsystem, file, line, format. */
typedef void (*nccl_logger)(int, unsigned long, const char *, int, const char *,
                            ...);

struct nccl_profiler_v4 {
    const char *name;
    int (*init)(void **context, int *mask, const char *comm_name,
                uint64_t comm_hash, int n_nodes, int n_ranks, int rank,
                nccl_logger log);
    int (*start_event)(void *context, void **handle,
                       struct nccl_event_v4 *event);
    int (*stop_event)(void *handle);
    int (*record_event_state)(void *handle, int state, void *arguments);
    int (*finalize)(void *context);
};

struct nccl_profiler_v5 {
    const char *name;
    int (*init)(void **context, uint64_t comm_id, int *mask,
                const char *comm_name, int n_nodes, int n_ranks, int rank,
                nccl_logger log);
    int (*start_event)(void *context, void **handle,
                       struct nccl_event_v5 *event);
    int (*stop_event)(void *handle);
    int (*record_event_state)(void *handle, int state, void *arguments);
    int (*finalize)(void *context);
};

#endif
