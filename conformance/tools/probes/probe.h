/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe.h - logs of probes: read strictly, added up, and compared with the
 * calls that a model must make. docs/probes.md is normative for the format.
 *
 * A log comes from a program that was not checked, and may come from anywhere:
 * every field is checked, and memory is taken in proportion to the file.
 */
#ifndef FSDP_CTS_PROBE_H
#define FSDP_CTS_PROBE_H

#include "tools/probes/probe_names.h"

#include <fsdp/status.h>

#include <stdbool.h>
#include <stddef.h>

enum {
    PROBE_MAX_LOGS = 4096,
    PROBE_MAX_RUNS = 1024, /* of one communicator's members */
    PROBE_LABEL_BYTES = 96,
};

#define PROBE_UNKNOWN UINT64_MAX /* where a log has null */

struct probe_comm {
    uint64_t comm;             /* its number, from 0 */
    uint64_t parent, size, me; /* parent: a number in this log, or unknown */
    uint32_t n_runs;           /* 0: its members are not known */
    struct probe_run {
        uint64_t first, stride, n;
    } * run; /* ranks of the world: first, first + stride, ... */
    char name[PROBE_TEXT_BYTES], id[PROBE_TEXT_BYTES];
};

struct probe_collective {
    uint32_t kind, dtype, mode;
    int8_t in_place; /* 1, 0; -1: unknown */
    bool failed;
    uint32_t launches; /* of NCCL: how often the GPU was given it */
    uint64_t seq, comm, n, total, bytes, root;
    char op[8], call[40];
};

struct probe_mark {
    char name[PROBE_TEXT_BYTES];
    uint64_t at;               /* in a log of collectives: it comes before this
                                * call */
    uint64_t live, peak_since; /* of the heap */
};

struct probe_end {
    uint32_t how;
    uint64_t collectives, sends, send_bytes, puts, put_bytes;
    uint64_t live, mapped, blocks, allocations, untracked;
};

struct probe_log_file {
    char path[1024];
    uint32_t source;
    char library[PROBE_TEXT_BYTES], program[PROBE_TEXT_BYTES];
    uint64_t pid, parent, rank, world, started;
    uint64_t n_comms, n_calls, n_marks;
    struct probe_comm *comm;
    struct probe_collective *call;
    struct probe_mark *mark;
    uint64_t peak; /* of the heap: the last peak that was written */
    bool ended;    /* false: the program was killed, or the disk was full */
    struct probe_end end;
};

struct probe_logs {
    uint32_t n;
    struct probe_log_file *log; /* by source, rank, pid */
};

/* Reads files, and from folders their *.jsonl. FORMAT: malformed; IO. `error`
 * says which file and line. *out is to be released whatever is returned. */
int probe_logs_read(const char *const *path, uint32_t n, struct probe_logs *out,
                    struct fsdp_error *error);
void probe_logs_release(struct probe_logs *logs);
/* Parses the text of one log. */
int probe_log_parse(const char *text, size_t bytes, const char *path,
                    struct probe_log_file *out, struct fsdp_error *error);
void probe_log_release(struct probe_log_file *log);

/* "mpi rank 3", "heap pid 123": for messages. */
void probe_log_label(const struct probe_log_file *log,
                     char label[PROBE_LABEL_BYTES]);
/* Which ranks a communicator has: "world", "shard 0-3", "1,3,5", "?". */
void probe_comm_label(const struct probe_log_file *log, uint64_t comm,
                      char label[PROBE_LABEL_BYTES]);

/* Finds the next mark "step ..." from *mark on, which moves behind the step.
 * The step's calls are [from, to): up to the last mark "after step ..." before
 * the next step, or up to that step. False: there is none. */
bool probe_step(const struct probe_log_file *log, uint64_t *mark,
                uint64_t *from, uint64_t *to);

/* Collectives that are alike: of one kind, dtype and size, over groups of one
 * size; counted in [from, to) of a log. */
struct probe_count {
    uint32_t kind, dtype;
    uint64_t ranks, n, calls, bytes; /* bytes: of all calls together */
};
struct probe_counts {
    uint32_t n, room;
    struct probe_count *count; /* by kind, ranks, dtype, n */
};
/* NOMEM. To be released whatever is returned. */
int probe_count_calls(const struct probe_log_file *log, uint64_t from,
                      uint64_t to, struct probe_counts *out);
int probe_counts_add(struct probe_counts *counts,
                     const struct probe_count *more);
void probe_counts_release(struct probe_counts *counts);

/* The calls that a program of fully sharded data parallelism must make, by the
 * rules of docs/specification.md (collectives). */
enum {
    PROBE_MAX_UNITS = 4096,
    PROBE_MAX_ALSO = 64
};
struct probe_expect {
    uint32_t n_units;
    uint64_t unit[PROBE_MAX_UNITS]; /* elements */
    uint32_t replicas, dtype, reduce_dtype;
    bool reshard, keep_root, shards; /* shards: false for NO_SHARD */
    bool messages_ok;                /* there may be sends and puts */
    bool in_steps;                   /* only calls within a marked step count */
    const char *sync;                /* "s", "ns": a letter a microbatch */
    uint64_t steps;
    uint32_t n_also; /* other calls that it makes, over all ranks, all steps
                      * together */
    struct probe_count also[PROBE_MAX_ALSO]; /* kind, dtype, n, calls */
};
/* The counts that are expected of all steps together, on one rank of a world of
 * that size. NOMEM; INVALID: the replicas do not divide the world. */
int probe_expect_counts(const struct probe_expect *expect, uint64_t world,
                        struct probe_counts *out);

/* Why a program is not as expected, or cannot be judged: a sentence each. */
enum {
    PROBE_FINDING_BYTES = 240,
    PROBE_MAX_FINDINGS = 100
};
struct probe_verdict {
    bool incomplete, differs;
    uint32_t n; /* of findings; those beyond the maximum are only counted */
    char finding[PROBE_MAX_FINDINGS][PROBE_FINDING_BYTES];
};
/* Every rank's log must be there and complete, and show exactly what is
 * expected. Without `expect` (NULL) only peaks are compared: each log of a heap
 * may have at most `peak` bytes (PROBE_UNKNOWN: any). NOMEM, INVALID. */
int probe_judge(const struct probe_logs *logs,
                const struct probe_expect *expect, uint64_t peak,
                struct probe_verdict *out);

#endif
