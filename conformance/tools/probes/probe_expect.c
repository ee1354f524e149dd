/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe_expect.c - what a program must show, computed from its model's units
 * and its strategy alone, and the comparison. The closed form is that of
 * docs/specification.md, where every unit has two windows in a pass.
 *
 * Order is not looked at: an engine may run ahead. Counts and bytes are.
 */
#include "tools/probes/probe.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The closed form ---- */

static int expect_unit(const struct probe_expect *e, uint32_t unit,
                       uint64_t shards, uint64_t replicas,
                       struct probe_counts *out)
{
    uint64_t chunk = e->unit[unit] / shards + (e->unit[unit] % shards != 0);
    uint64_t batches = strlen(e->sync);
    uint64_t reduced = 0;
    bool reshards = e->reshard && !(e->keep_root && unit == 0);
    struct probe_count c = {.n = chunk};

    for (const char *s = e->sync; *s != '\0'; s++) {
        reduced += *s == 's';
    }
    if (shards > 1) {
        c.kind = PROBE_ALL_GATHER;
        c.dtype = e->dtype;
        c.ranks = shards;
        c.calls = e->steps * batches * (reshards ? 2 : 1);
        c.bytes = c.calls * chunk * probe_dtype_bytes(c.dtype);
        FSDP_TRY(probe_counts_add(out, &c));
        c.kind = PROBE_REDUCE_SCATTER;
        c.dtype = e->reduce_dtype;
        c.calls = e->steps * reduced;
        c.bytes = c.calls * chunk * probe_dtype_bytes(c.dtype);
        FSDP_TRY(probe_counts_add(out, &c));
    }
    if (replicas > 1) {
        c.kind = PROBE_ALL_REDUCE;
        c.dtype = e->reduce_dtype;
        c.ranks = replicas;
        c.calls = e->steps * reduced;
        c.bytes = c.calls * chunk * probe_dtype_bytes(c.dtype);
        FSDP_TRY(probe_counts_add(out, &c));
    }
    return FSDP_OK;
}

int probe_expect_counts(const struct probe_expect *e, uint64_t world,
                        struct probe_counts *out)
{
    uint64_t replicas = e->shards ? e->replicas : world;

    memset(out, 0, sizeof(*out));
    if (world == 0 || replicas == 0 || world % replicas != 0) {
        return FSDP_ERR_INVALID;
    }
    for (uint32_t u = 0; u < e->n_units; u++) {
        FSDP_TRY(expect_unit(e, u, world / replicas, replicas, out));
    }
    for (uint32_t i = 0; i < e->n_also; i++) {
        struct probe_count c = e->also[i];
        c.ranks = world;
        c.bytes = c.calls * c.n * probe_dtype_bytes(c.dtype);
        FSDP_TRY(probe_counts_add(out, &c));
    }
    return FSDP_OK;
}

/* ---- The comparison ---- */

__attribute__((format(printf, 3, 4))) static void
find(struct probe_verdict *v, bool *what, const char *format, ...)
{
    va_list arguments;

    *what = true;
    if (v->n < PROBE_MAX_FINDINGS) {
        va_start(arguments, format);
        vsnprintf(v->finding[v->n], PROBE_FINDING_BYTES, format, arguments);
        va_end(arguments);
    }
    v->n++;
}

/* A log without its end certainly lacks calls. */
static void find_count(struct probe_verdict *v, const char *label, bool ended,
                       const struct probe_count *c, uint64_t got, uint64_t want)
{
    if (ended ? got != want : got > want) {
        find(v, &v->differs,
             "%s: %s of %" PRIu64 " %s over %" PRIu64 " ranks: %" PRIu64
             " calls, %" PRIu64 " expected",
             label, probe_kind_name(c->kind), c->n, probe_dtype_name(c->dtype),
             c->ranks, got, want);
    }
}

static uint64_t calls_alike(const struct probe_counts *counts,
                            const struct probe_count *c)
{
    for (uint32_t i = 0; i < counts->n; i++) {
        const struct probe_count *d = &counts->count[i];
        if (d->kind == c->kind && d->dtype == c->dtype &&
            d->ranks == c->ranks && d->n == c->n) {
            return d->calls;
        }
    }
    return 0;
}

static void compare(struct probe_verdict *v, const char *label, bool ended,
                    const struct probe_counts *got,
                    const struct probe_counts *want)
{
    for (uint32_t i = 0; i < want->n; i++) {
        const struct probe_count *c = &want->count[i];
        find_count(v, label, ended, c, calls_alike(got, c), c->calls);
    }
    for (uint32_t i = 0; i < got->n; i++) {
        const struct probe_count *c = &got->count[i];
        if (calls_alike(want, c) == 0) {
            find_count(v, label, ended, c, c->calls, 0);
        }
    }
}

static uint64_t world_of(const struct probe_log_file *log)
{
    uint64_t most = 0;

    for (uint64_t i = 0; i < log->n_comms && log->world == PROBE_UNKNOWN; i++) {
        most = log->comm[i].size > most ? log->comm[i].size : most;
    }
    return log->world == PROBE_UNKNOWN ? most : log->world;
}

/* Counts the calls within marked steps, and these steps. */
static int count_steps(const struct probe_log_file *log, const char *label,
                       uint64_t steps, struct probe_counts *out,
                       struct probe_verdict *v)
{
    uint64_t n = 0;
    uint64_t mark = 0;
    uint64_t from;
    uint64_t to;

    for (; probe_step(log, &mark, &from, &to); n++) {
        struct probe_counts one;
        int status = probe_count_calls(log, from, to, &one);
        for (uint32_t i = 0; i < one.n && status == FSDP_OK; i++) {
            status = probe_counts_add(out, &one.count[i]);
        }
        probe_counts_release(&one);
        FSDP_TRY(status);
    }
    if (n != steps && (log->ended || n > steps)) {
        find(v, &v->differs,
             "%s: %" PRIu64 " marked steps, %" PRIu64 " expected", label, n,
             steps);
    }
    return FSDP_OK;
}

static int judge_calls(const struct probe_log_file *log,
                       const struct probe_expect *expect,
                       struct probe_verdict *v)
{
    struct probe_counts got = {.n = 0};
    struct probe_counts want = {.n = 0};
    char label[PROBE_LABEL_BYTES];
    int status = FSDP_OK;

    probe_log_label(log, label);
    if (world_of(log) == 0) {
        find(v, &v->incomplete, "%s: nobody says how many ranks there are",
             label);
        return FSDP_OK;
    }
    status = probe_expect_counts(expect, world_of(log), &want);
    if (status == FSDP_OK) {
        status = expect->in_steps
                     ? count_steps(log, label, expect->steps, &got, v)
                     : probe_count_calls(log, 0, log->n_calls, &got);
    }
    if (status == FSDP_OK) {
        compare(v, label, log->ended, &got, &want);
        if (!expect->messages_ok && log->end.sends + log->end.puts > 0) {
            find(v, &v->differs,
                 "%s: %" PRIu64 " messages of %" PRIu64 " bytes and %" PRIu64
                 " one-sided accesses of %" PRIu64
                 " bytes beside the collectives",
                 label, log->end.sends, log->end.send_bytes, log->end.puts,
                 log->end.put_bytes);
        }
    }
    for (uint64_t i = 0; i < log->n_calls; i++) {
        if (log->call[i].failed) {
            find(v, &v->differs, "%s: call %" PRIu64 ", %s, failed", label, i,
                 log->call[i].call);
        }
    }
    probe_counts_release(&got);
    probe_counts_release(&want);
    return status;
}

/* A program whose ranks are not all there cannot be judged. */
static void judge_ranks(const struct probe_logs *logs, uint32_t source,
                        struct probe_verdict *v)
{
    uint64_t n = 0;
    uint64_t world = 0;

    for (uint32_t i = 0; i < logs->n; i++) {
        const struct probe_log_file *log = &logs->log[i];
        if (log->source != source) {
            continue;
        }
        char label[PROBE_LABEL_BYTES];
        probe_log_label(log, label);
        if (n == 0) {
            world = world_of(log);
        } else if (world_of(log) != world) {
            find(v, &v->incomplete,
                 "%s: of a world of %" PRIu64 ", others of %" PRIu64
                 ": logs of two runs?",
                 label, world_of(log), world);
        }
        if (log->rank != PROBE_UNKNOWN && log->rank != n) {
            find(v, &v->incomplete, "%s rank %" PRIu64 ": no log",
                 probe_source_name(source), n);
            n = log->rank;
        }
        if (!log->ended) {
            find(v, &v->incomplete,
                 "%s: no end: the program was killed, or the disk was full",
                 label);
        }
        n++;
    }
    if (n > 0 && n < world) {
        find(v, &v->incomplete, "%s: logs of %" PRIu64 " of %" PRIu64 " ranks",
             probe_source_name(source), n, world);
    }
}

/* Several ranks of one communicator in one process: whose calls are whose? */
static bool shares_process(const struct probe_log_file *log)
{
    for (uint64_t i = 0; i < log->n_comms; i++) {
        for (uint64_t j = 0; j < i && log->comm[i].id[0] != '\0'; j++) {
            if (strcmp(log->comm[i].id, log->comm[j].id) == 0 &&
                log->comm[i].me != log->comm[j].me) {
                return true;
            }
        }
    }
    return false;
}

static void judge_peak(const struct probe_log_file *log, uint64_t peak,
                       struct probe_verdict *v)
{
    char label[PROBE_LABEL_BYTES];

    probe_log_label(log, label);
    if (log->peak > peak) {
        find(v, &v->differs,
             "%s: a peak of %" PRIu64 " bytes, at most %" PRIu64 " expected",
             label, log->peak, peak);
    } else if (!log->ended) {
        find(v, &v->incomplete,
             "%s: no end: the program was killed, or the disk was full", label);
    } else if (log->end.untracked > 0) {
        find(v, &v->incomplete,
             "%s: %" PRIu64 " mappings could not be followed", label,
             log->end.untracked);
    }
}

int probe_judge(const struct probe_logs *logs,
                const struct probe_expect *expect, uint64_t peak,
                struct probe_verdict *v)
{
    uint32_t calls = 0;
    uint32_t heaps = 0;

    memset(v, 0, sizeof(*v));
    for (uint32_t i = 0; i < logs->n; i++) {
        const struct probe_log_file *log = &logs->log[i];
        bool is_memory = probe_source_is_memory(log->source);
        heaps += is_memory;
        calls += !is_memory;
        if (is_memory && peak != PROBE_UNKNOWN) {
            judge_peak(log, peak, v);
        } else if (!is_memory && expect) {
            if (shares_process(log)) {
                find(v, &v->incomplete,
                     "%.100s: several ranks share the process", log->path);
            } else {
                FSDP_TRY(judge_calls(log, expect, v));
            }
        }
    }
    if (expect) {
        for (uint32_t source = 0; source < PROBE_N_SOURCES; source++) {
            if (!probe_source_is_memory(source)) {
                judge_ranks(logs, source, v);
            }
        }
    }
    if ((expect && calls == 0) || (peak != PROBE_UNKNOWN && heaps == 0)) {
        find(v, &v->incomplete, "no log of %s",
             expect && calls == 0 ? "collectives" : "a heap");
    }
    return FSDP_OK;
}
