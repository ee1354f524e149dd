/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_run.c - is what the probe of MPI saw of a run of the suite's own the same
 * as what the recorder recorded?
 *
 *     own_run LOGS CASE-FOLDER
 *
 * The suite's MPI world makes its collectives of others (world_mpi.c,
 * world_turns.c), so a recorded one stands for a row of calls, which follows
 * from it to the byte. For a group of D ranks and elements of 4 bytes:
 *
 *     any             an all-gather of 48 bytes: what the ranks agree about
 *     all-gather      then all-gathers of 4 n bytes, in turns of 2^18
 *     reduce-scatter  then all-to-alls of 4 n bytes a rank, in turns of 2^18 /
 * D all-reduce      then both, of ceil(n / D) elements broadcast       then
 * broadcasts of 4 n bytes, in turns of 2^18 barrier         nothing more; nor
 * has any with n = 0
 *
 * Written here once more, without a line of the world's. Every call of a log
 * must be one of these, in the record's order, on the communicator whose
 * members are the dimension's, or a part of an exchange out of band: an
 * agreement among all ranks, and an all-gather of 1 to 4096 bytes. The first
 * one of all says which build each rank is of: a host's name and two hashes.
 * Beside them each rank sends one message, its farewell, to each other one.
 */
#include "record/record.h"
#include "tools/probes/probe.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    AGREEMENT_BYTES = 48,
    TURN_BYTES = 1 << 18,
    EXCHANGE_BYTES = 4096,
    BUILD_BYTES = 64 + 65 + 65,
    N_GROUPS = 3, /* replicate, shard, world */
};

static const char *const group_name[N_GROUPS] = {"replicate", "shard", "world"};

struct follow {
    const struct probe_log_file *log;
    uint64_t at; /* next call of the log */
    uint64_t comm[N_GROUPS], extent[N_GROUPS];
    uint64_t exchanges, collectives;
    char why[240];
};

#define WRONG(f, ...) (snprintf((f)->why, sizeof((f)->why), __VA_ARGS__), false)

/* ---- Communicators ---- */

static bool is_run(const struct probe_comm *c, uint64_t first, uint64_t stride,
                   uint64_t n)
{
    return c->n_runs == 1 && c->run[0].first == first && c->run[0].n == n &&
           (n == 1 || c->run[0].stride == stride);
}

/* The world is split into its groups in this order, once a case. */
static bool find_groups(struct follow *f, uint64_t rank, uint64_t replicas,
                        uint64_t shards)
{
    const struct probe_log_file *log = f->log;
    uint64_t first = 0;
    while (first < log->n_comms && log->comm[first].parent != 1) {
        first++;
    }
    if (first + N_GROUPS != log->n_comms) {
        return WRONG(f, "%" PRIu64 " communicators; one case makes 5",
                     log->n_comms);
    }
    const struct probe_comm *c = &log->comm[first];
    if (!is_run(&c[0], rank % shards, shards, replicas) ||
        !is_run(&c[1], rank - rank % shards, 1, shards) ||
        !is_run(&c[2], 0, 1, replicas * shards)) {
        return WRONG(f, "communicators are not the mesh's dimensions");
    }
    for (uint64_t g = 0; g < N_GROUPS; g++) {
        f->comm[g] = first + g;
        f->extent[g] = c[g].size;
    }
    return true;
}

/* ---- Calls ---- */

static bool is_call(const struct follow *f, uint64_t at, uint32_t kind,
                    uint64_t group, uint64_t bytes)
{
    const struct probe_collective *c = &f->log->call[at];
    return at < f->log->n_calls && c->kind == kind &&
           c->comm == f->comm[group] && c->bytes == bytes &&
           c->dtype == PROBE_U8 && c->mode == PROBE_NONBLOCKING && !c->failed;
}

static bool take(struct follow *f, uint32_t kind, uint64_t group,
                 uint64_t bytes, const char *of)
{
    if (is_call(f, f->at, kind, group, bytes)) {
        f->at++;
        return true;
    }
    if (f->at >= f->log->n_calls) {
        return WRONG(f,
                     "the log ends; recorded collective %" PRIu64
                     ", %s over %s, needs %s of %" PRIu64 " bytes",
                     f->collectives, of, group_name[group],
                     probe_kind_name(kind), bytes);
    }
    const struct probe_collective *c = &f->log->call[f->at];
    return WRONG(
        f,
        "call %" PRIu64 ": %s of %" PRIu64 " bytes on communicator %" PRIu64
        "; recorded collective %" PRIu64 ", %s over %s, needs %s of %" PRIu64
        " bytes on communicator %" PRIu64,
        f->at, probe_kind_name(c->kind), c->bytes, c->comm, f->collectives, of,
        group_name[group], probe_kind_name(kind), bytes, f->comm[group]);
}

static bool take_turns(struct follow *f, uint32_t kind, uint64_t group,
                       uint64_t bytes, uint64_t most, const char *of)
{
    for (uint64_t at = 0; at < bytes; at += most) {
        uint64_t left = bytes - at;
        if (!take(f, kind, group, left < most ? left : most, of)) {
            return false;
        }
    }
    return true;
}

/* Skips exchanges, which are not recorded: they are of all ranks, small, and
 * never empty, which tells them from a barrier. One of `but` bytes would be a
 * recorded all-gather. */
static void skip_exchanges(struct follow *f, uint64_t but)
{
    while (f->at + 1 < f->log->n_calls &&
           is_call(f, f->at, PROBE_ALL_GATHER, 2, AGREEMENT_BYTES)) {
        uint64_t bytes = f->log->call[f->at + 1].bytes;
        if (bytes == 0 || bytes == but || bytes > EXCHANGE_BYTES ||
            !is_call(f, f->at + 1, PROBE_ALL_GATHER, 2, bytes)) {
            return;
        }
        f->at += 2;
        f->exchanges++;
    }
}

static bool follow_one(struct follow *f, const struct record_collective *c)
{
    const char *of = record_collective_name(c->kind);
    uint64_t group = c->dim < 2 ? c->dim : 2;
    uint64_t extent = f->extent[group];
    uint64_t part = TURN_BYTES / extent / 64 * 64;
    uint64_t own = (c->n + extent - 1) / extent;
    skip_exchanges(f, group == 2 && c->kind == FSDP_ALL_GATHER ? 4 * c->n : 0);
    if (c->kind != FSDP_BARRIER && c->dtype != FSDP_DTYPE_F32) {
        return WRONG(f, "a recorded collective is not of float32");
    }
    if (!take(f, PROBE_ALL_GATHER, group, AGREEMENT_BYTES, of)) {
        return false;
    }
    switch (c->kind) {
    case FSDP_ALL_GATHER:
        return take_turns(f, PROBE_ALL_GATHER, group, 4 * c->n, TURN_BYTES, of);
    case FSDP_REDUCE_SCATTER:
        return take_turns(f, PROBE_ALL_TO_ALL, group, 4 * c->n, part, of);
    case FSDP_ALL_REDUCE:
        return take_turns(f, PROBE_ALL_TO_ALL, group, 4 * own, part, of) &&
               take_turns(f, PROBE_ALL_GATHER, group, 4 * own, TURN_BYTES, of);
    case FSDP_BROADCAST:
        return take_turns(f, PROBE_BROADCAST, group, 4 * c->n, TURN_BYTES, of);
    default:
        return true;
    }
}

static bool follow_sequence(struct follow *f, const struct record_sequence *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        if (!follow_one(f, &s->c[i])) {
            return false;
        }
        f->collectives++;
    }
    return true;
}

static bool follow_rank(struct follow *f, const struct record_rank *r,
                        uint64_t world)
{
    const struct probe_collective *first = f->log->call;
    bool is_right;

    if (f->log->n_calls == 0 || first->kind != PROBE_ALL_GATHER ||
        first->bytes != BUILD_BYTES || first->mode != PROBE_BLOCKING ||
        first->failed) {
        return WRONG(f, "the first call does not say of which build it is");
    }
    f->at = 1;
    is_right = follow_sequence(f, &r->sequence[r->shard_sequence]);
    for (uint32_t s = 0; is_right && s < r->n_steps; s++) {
        is_right = follow_sequence(f, &r->sequence[r->step_sequence[s]]);
    }
    if (!is_right || !follow_sequence(f, &r->sequence[r->end_sequence])) {
        return false;
    }
    skip_exchanges(f, 0);
    if (f->at != f->log->n_calls) {
        const struct probe_collective *c = &f->log->call[f->at];
        return WRONG(f,
                     "call %" PRIu64 ": %s of %" PRIu64
                     " bytes on communicator %" PRIu64
                     " behind all that was recorded",
                     f->at, probe_kind_name(c->kind), c->bytes, c->comm);
    }
    if (!f->log->ended || f->log->end.how != PROBE_FINALIZED ||
        f->log->end.sends != world - 1 || f->log->end.puts != 0) {
        return WRONG(f,
                     "%" PRIu64 " messages and %" PRIu64
                     " one-sided accesses; a farewell to each other rank "
                     "was expected",
                     f->log->end.sends, f->log->end.puts);
    }
    return true;
}

static bool compare(const struct probe_logs *logs, const struct record *record)
{
    uint64_t shards = case_shard_degree(&record->c);
    if (logs->n != record->n_ranks) {
        printf("%u logs of %u ranks\n", logs->n, record->n_ranks);
        return false;
    }
    for (uint32_t r = 0; r < logs->n; r++) {
        struct follow f = {.log = &logs->log[r]};
        bool is_right = f.log->source == PROBE_MPI && f.log->rank == r &&
                        record->rank[r].present &&
                        find_groups(&f, r, record->n_ranks / shards, shards) &&
                        follow_rank(&f, &record->rank[r], record->n_ranks);
        if (!is_right) {
            printf("rank %u: %s\n", r,
                   f.why[0] != '\0' ? f.why : "no log, or no record");
            return false;
        }
        printf("rank %u: %" PRIu64
               " recorded collectives are the log's %" PRIu64
               " calls, with %" PRIu64 " exchanges\n",
               r, f.collectives, f.log->n_calls, f.exchanges);
    }
    return true;
}

int main(int argc, char **argv)
{
    struct fsdp_error error = {0};
    struct probe_logs logs = {.n = 0};
    struct record record = {.n_ranks = 0};
    int code = 65;
    if (argc != 3) {
        fputs("usage: own_run LOGS CASE-FOLDER\n", stderr);
        return 64;
    }
    const char *path = argv[1];
    if (probe_logs_read(&path, 1, &logs, &error) != FSDP_OK ||
        record_read(argv[2], &record, &error) != FSDP_OK) {
        fprintf(stderr, "own_run: %s\n", error.message);
    } else {
        code = compare(&logs, &record) ? 0 : 1;
    }
    probe_logs_release(&logs);
    record_release(&record);
    return code;
}
