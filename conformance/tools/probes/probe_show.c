/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe_show.c - see probe_show.h. The reader has seen to it that texts of a
 * log have no control characters.
 */
#include "tools/probes/probe_show.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- For people ---- */

static bool counts_equal(const struct probe_counts *a,
                         const struct probe_counts *b)
{
    if (a->n != b->n) {
        return false;
    }
    for (uint32_t i = 0; i < a->n; i++) {
        const struct probe_count *x = &a->count[i];
        const struct probe_count *y = &b->count[i];
        if (x->kind != y->kind || x->dtype != y->dtype ||
            x->ranks != y->ranks || x->n != y->n || x->calls != y->calls) {
            return false;
        }
    }
    return true;
}

/* Whether `b` is the next rank and shows what `a` shows. */
static int alike(const struct probe_log_file *a, const struct probe_log_file *b,
                 const struct probe_counts *counts, bool *out)
{
    struct probe_counts other;

    *out = false;
    if (a->source != b->source || a->rank == PROBE_UNKNOWN ||
        b->rank != a->rank + 1 || a->ended != b->ended ||
        a->end.how != b->end.how || a->world != b->world ||
        strcmp(a->program, b->program) != 0) {
        return FSDP_OK;
    }
    int status = probe_count_calls(b, 0, b->n_calls, &other);
    *out = status == FSDP_OK && counts_equal(counts, &other);
    probe_counts_release(&other);
    return status;
}

static void print_number(uint64_t n)
{
    if (n == PROBE_UNKNOWN) {
        printf(" %12s", "?");
    } else {
        printf(" %12" PRIu64, n);
    }
}

static void print_counts(const struct probe_counts *counts)
{
    if (counts->n == 0) {
        printf("  no collectives\n");
        return;
    }
    printf("  %-20s %6s %-8s %12s %12s %16s\n", "kind", "ranks", "type", "n",
           "calls", "bytes");
    for (uint32_t i = 0; i < counts->n; i++) {
        const struct probe_count *c = &counts->count[i];
        printf("  %-20s %6" PRIu64 " %-8s", probe_kind_name(c->kind), c->ranks,
               probe_dtype_name(c->dtype));
        print_number(c->n);
        printf(" %12" PRIu64 " %16" PRIu64 "\n", c->calls, c->bytes);
    }
}

static const char *end_of(const struct probe_log_file *log)
{
    return log->ended ? probe_how_name(log->end.how)
                      : "no end: killed, or the disk was full";
}

/* Steps that the log marks, and whether each made the same calls. */
static int print_steps(const struct probe_log_file *log)
{
    struct probe_counts first = {.n = 0};
    uint64_t steps = 0;
    uint64_t others = 0;
    uint64_t mark = 0;
    uint64_t from;
    uint64_t to;
    int status = FSDP_OK;

    while (status == FSDP_OK && probe_step(log, &mark, &from, &to)) {
        struct probe_counts c = {.n = 0};
        status = probe_count_calls(log, from, to, &c);
        if (steps++ == 0) {
            first = c;
            continue;
        }
        others += !counts_equal(&first, &c);
        probe_counts_release(&c);
    }
    if (steps > 0 && status == FSDP_OK) {
        printf("  %" PRIu64 " steps; %" PRIu64
               " make other calls than the first\n",
               steps, others);
    }
    probe_counts_release(&first);
    return status;
}

static int print_calls(const struct probe_log_file *log, uint64_t last,
                       const struct probe_counts *counts)
{
    if (last != log->rank) {
        printf("%s ranks %" PRIu64 "-%" PRIu64, probe_source_name(log->source),
               log->rank, last);
    } else {
        char label[PROBE_LABEL_BYTES];
        probe_log_label(log, label);
        printf("%s", label);
    }
    if (log->world != PROBE_UNKNOWN) {
        printf(" of %" PRIu64, log->world);
    }
    printf(": %s, %s; %s\n", log->program, log->library, end_of(log));
    print_counts(counts);
    if (log->end.sends + log->end.puts > 0) {
        printf("  beside them, in the first of these ranks: %" PRIu64
               " messages of %" PRIu64 " bytes, %" PRIu64
               " one-sided accesses of %" PRIu64 " bytes\n",
               log->end.sends, log->end.send_bytes, log->end.puts,
               log->end.put_bytes);
    }
    return print_steps(log);
}

static void print_heap(const struct probe_log_file *log)
{
    char label[PROBE_LABEL_BYTES];

    probe_log_label(log, label);
    printf("%s, pid %" PRIu64 ": %s; %s\n  peak %" PRIu64 " bytes%s\n", label,
           log->pid, log->program, end_of(log), log->peak,
           log->ended ? "" : " or up to a 16th or 1 MiB more");
    if (log->ended) {
        printf("  at the end %" PRIu64 " bytes in %" PRIu64 " blocks, %" PRIu64
               " of them mapped; %" PRIu64 " allocations\n",
               log->end.live, log->end.blocks, log->end.mapped,
               log->end.allocations);
    }
    for (uint64_t i = 0; i < log->n_marks; i++) {
        const struct probe_mark *m = &log->mark[i];
        printf("  at mark '%s': %" PRIu64 " bytes, at most %" PRIu64
               " since the one before\n",
               m->name, m->live, m->peak_since);
    }
}

int probe_show_text(const struct probe_logs *logs)
{
    int status = FSDP_OK;

    for (uint32_t i = 0; i < logs->n && status == FSDP_OK; i++) {
        const struct probe_log_file *log = &logs->log[i];
        struct probe_counts counts;
        bool more = true;
        if (probe_source_is_memory(log->source)) {
            print_heap(log);
            continue;
        }
        status = probe_count_calls(log, 0, log->n_calls, &counts);
        while (status == FSDP_OK && more && i + 1 < logs->n) {
            status = alike(&logs->log[i], &logs->log[i + 1], &counts, &more);
            i += more;
        }
        if (status == FSDP_OK) {
            status = print_calls(log, logs->log[i].rank, &counts);
        }
        probe_counts_release(&counts);
    }
    return status;
}

/* ---- As JSON ---- */

/* jansson's integers end at 2^63, where a log's do. */
static json_t *known(uint64_t n)
{
    return n == PROBE_UNKNOWN ? json_null() : json_integer((json_int_t)n);
}

static json_t *counts_json(const struct probe_log_file *log)
{
    struct probe_counts counts;
    json_t *out = json_array();

    if (probe_count_calls(log, 0, log->n_calls, &counts) != FSDP_OK) {
        json_decref(out);
        out = NULL;
    }
    for (uint32_t i = 0; out && i < counts.n; i++) {
        const struct probe_count *c = &counts.count[i];
        (void)json_array_append_new(
            out,
            json_pack("{s:s, s:o, s:s, s:o, s:o, s:o}", "kind",
                      probe_kind_name(c->kind), "ranks", known(c->ranks),
                      "dtype", probe_dtype_name(c->dtype), "n", known(c->n),
                      "calls", known(c->calls), "bytes", known(c->bytes)));
    }
    probe_counts_release(&counts);
    return out;
}

static json_t *marks_json(const struct probe_log_file *log)
{
    json_t *out = json_array();

    for (uint64_t i = 0; i < log->n_marks; i++) {
        const struct probe_mark *m = &log->mark[i];
        (void)json_array_append_new(
            out,
            probe_source_is_memory(log->source)
                ? json_pack("{s:s, s:o, s:o}", "name", m->name, "live",
                            known(m->live), "peak_since", known(m->peak_since))
                : json_pack("{s:s, s:o}", "name", m->name, "at", known(m->at)));
    }
    return out;
}

json_t *probe_show_json(const struct probe_logs *logs)
{
    json_t *out = json_array();

    for (uint32_t i = 0; i < logs->n; i++) {
        const struct probe_log_file *log = &logs->log[i];
        json_t *one = json_pack(
            "{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "path",
            log->path, "source", probe_source_name(log->source), "program",
            log->program, "library", log->library, "pid", known(log->pid),
            "rank", known(log->rank), "world", known(log->world), "end",
            log->ended ? json_string(probe_how_name(log->end.how))
                       : json_null(),
            "marks", marks_json(log), "counts", counts_json(log));
        if (one && probe_source_is_memory(log->source)) {
            (void)json_object_del(one, "counts");
            (void)json_object_set_new(one, "peak", known(log->peak));
            (void)json_object_set_new(one, "live", known(log->end.live));
            (void)json_object_set_new(one, "mapped", known(log->end.mapped));
        } else if (one) {
            (void)json_object_set_new(one, "sends", known(log->end.sends));
            (void)json_object_set_new(one, "puts", known(log->end.puts));
        }
        if (json_array_append_new(out, one) != 0) {
            json_decref(out);
            return NULL;
        }
    }
    return out;
}
