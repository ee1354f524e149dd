/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call_log.h - a log of collectives, which the probes of MPI and of NCCL share.
 */
#ifndef FSDP_CTS_CALL_LOG_H
#define FSDP_CTS_CALL_LOG_H

#include "tools/probes/preload/log_writer.h"

/* One call, in the words of docs/probes.md. -1 where a number is not known. */
struct probe_call {
    const char *call; /* "MPI_Iallgather" */
    const char *op;   /* "sum"; NULL: none, or not known */
    uint32_t kind, dtype, mode;
    int64_t comm, root;
    int64_t n, total, bytes; /* elements of a rank's part, of all, n in bytes */
    int in_place;            /* 1, 0; -1: not known, or has no meaning */
};

struct call_log {
    struct probe_log log;
    uint64_t calls;
    uint32_t comms;
    /* Steps: the first begins before call `first`, and then one every `every`
     * calls. 0: no steps were asked for. */
    uint64_t first, every;
    uint64_t sends, send_bytes, puts, put_bytes;
    void (*heap_mark)(const char *name); /* the function of the heap's probe, if
                                          * that is loaded */
};
#define CALL_LOG_INITIAL         \
    {                            \
        .log = PROBE_LOG_INITIAL \
    }

/* All are called with log.lock held. */
bool call_log_open(struct call_log *c, const struct probe_head *head);
/* Returns the call's number. */
uint64_t call_log_call(struct call_log *c, const struct probe_call *call);
void call_log_mark(struct call_log *c, const char *name);
void call_log_end(struct call_log *c, uint32_t how);

#endif
