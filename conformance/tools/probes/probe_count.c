/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe_count.c - collectives that are alike, counted.
 */
#include "tools/probes/probe.h"

#include <stdlib.h>
#include <string.h>

static int order(const struct probe_count *a, const struct probe_count *b)
{
    const uint64_t x[] = {a->kind, a->ranks, a->dtype, a->n};
    const uint64_t y[] = {b->kind, b->ranks, b->dtype, b->n};

    for (int i = 0; i < 4; i++) {
        if (x[i] != y[i]) {
            return x[i] < y[i] ? -1 : 1;
        }
    }
    return 0;
}

/* The place of one that is alike, or where it belongs. */
static uint32_t place_of(const struct probe_counts *counts,
                         const struct probe_count *c)
{
    uint32_t low = 0;
    uint32_t high = counts->n;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (order(&counts->count[middle], c) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

int probe_counts_add(struct probe_counts *counts,
                     const struct probe_count *more)
{
    uint32_t at = place_of(counts, more);

    if (at < counts->n && order(&counts->count[at], more) == 0) {
        counts->count[at].calls += more->calls;
        counts->count[at].bytes += more->bytes;
        return FSDP_OK;
    }
    if (counts->n == counts->room) {
        uint32_t room = counts->room == 0 ? 16 : 2 * counts->room;
        struct probe_count *grown =
            realloc(counts->count, room * sizeof(*grown));
        if (!grown) {
            return FSDP_ERR_NOMEM;
        }
        counts->count = grown;
        counts->room = room;
    }
    memmove(&counts->count[at + 1], &counts->count[at],
            (counts->n - at) * sizeof(*counts->count));
    counts->count[at] = *more;
    counts->n++;
    return FSDP_OK;
}

int probe_count_calls(const struct probe_log_file *log, uint64_t from,
                      uint64_t to, struct probe_counts *out)
{
    memset(out, 0, sizeof(*out));
    for (uint64_t i = from; i < to && i < log->n_calls; i++) {
        const struct probe_collective *c = &log->call[i];
        /* A call that a CUDA graph holds happens each time it is launched. */
        uint64_t times = c->launches > 1 ? c->launches : 1;
        struct probe_count one = {
            .kind = c->kind,
            .dtype = c->dtype,
            .ranks = log->comm[c->comm].size,
            .n = c->n,
            .calls = times,
            .bytes = c->bytes == PROBE_UNKNOWN ? 0 : times * c->bytes};
        FSDP_TRY(probe_counts_add(out, &one));
    }
    return FSDP_OK;
}

static bool begins(const struct probe_mark *mark, const char *with)
{
    return strncmp(mark->name, with, strlen(with)) == 0;
}

bool probe_step(const struct probe_log_file *log, uint64_t *mark,
                uint64_t *from, uint64_t *to)
{
    uint64_t m = *mark;
    bool closed = false;

    while (m < log->n_marks && !begins(&log->mark[m], "step ")) {
        m++;
    }
    if (m == log->n_marks) {
        return false;
    }
    *from = log->mark[m++].at;
    for (; m < log->n_marks && !begins(&log->mark[m], "step "); m++) {
        if (begins(&log->mark[m], "after step ")) {
            *to = log->mark[m].at;
            closed = true;
        }
    }
    if (!closed) {
        *to = m < log->n_marks ? log->mark[m].at : log->n_calls;
    }
    *mark = m;
    return true;
}

void probe_counts_release(struct probe_counts *counts)
{
    free(counts->count);
    memset(counts, 0, sizeof(*counts));
}
