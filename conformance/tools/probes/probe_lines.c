/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe_lines.c - the lines that a log has, a table each of what stands beside
 * the type, and what must be true of them where they stand.
 */
#include "tools/probes/probe_parse.h"

#include <inttypes.h>
#include <string.h>

/* Null is PROBE_UNKNOWN. */
static bool read_known(struct record_json *j, struct record_field at, json_t *v,
                       const struct record_row *row, void *base)
{
    uint64_t *const out = record_at(row, base);

    *out = PROBE_UNKNOWN;
    return json_is_null(v) ||
           (record_u64.read(j, at, v, row, base) &&
            (*out <= INT64_MAX || record_refuse(j, at, "too large")));
}

static const struct record_type known = {read_known, NULL};

/* Null is -1. */
static bool read_answer(struct record_json *j, struct record_field at,
                        json_t *v, const struct record_row *row, void *base)
{
    int8_t *const out = record_at(row, base);

    if (!json_is_null(v) && !json_is_boolean(v)) {
        return record_refuse(j, at, "true or false was expected");
    }
    *out = (int8_t)(json_is_null(v) ? -1 : json_is_true(v));
    return true;
}

static const struct record_type answer = {read_answer, NULL};

static struct probe_log_file *log_of(const struct record_json *j)
{
    return ((struct probe_parse *)j->context)->log;
}

/* ---- The first line ---- */

#define AT(member) RECORD_AT(struct probe_log_file, member)
static const struct record_row header_rows[] = {
    {"probe_log", &record_version, .most = PROBE_VERSION},
    {"source", &record_name, AT(source), .name = probe_source_name},
    {"library", &record_string, AT(library)},
    {"program", &record_string, AT(program)},
    {"pid", &record_u64, AT(pid)},
    {"parent", &known, AT(parent)},
    {"rank", &known, AT(rank)},
    {"world", &known, AT(world)},
    {"started", &record_u64, AT(started)},
};
#undef AT
const struct record_table probe_header = {RECORD_ROWS(header_rows),
                                          .prefix = ""};

/* ---- Communicators ---- */

#define AT(member) RECORD_AT(struct probe_run, member)
static const struct record_row run_rows[] = {
    {"first", &record_u64, AT(first)},
    {"stride", &record_u64, AT(stride)},
    {"n", &record_u64, AT(n)},
};
#undef AT
static const struct record_table run_table = {
    RECORD_ROWS(run_rows), .size = sizeof(struct probe_run), .tuple = true};

static bool check_members(struct record_json *j, const struct probe_comm *c)
{
    uint64_t size = 0;

    for (uint32_t i = 0; i < c->n_runs; i++) {
        const struct probe_run *r = &c->run[i];

        if (r->n == 0 || r->n > c->size - size ||
            (r->n > 1) != (r->stride > 0) || r->first > INT32_MAX ||
            r->stride > INT32_MAX) {
            return record_refuse(j, record_element("members", i),
                                 "no run of ranks, or more than the size");
        }
        size += r->n;
    }
    return c->n_runs == 0 || size == c->size ||
           record_refuse(j, record_field("members"),
                         "%" PRIu64 " ranks in a communicator of %" PRIu64,
                         size, c->size);
}

static void *begin_communicator(struct probe_parse *p)
{
    struct probe_log_file *log = p->log;
    struct probe_comm *c = probe_parse_room(p, &log->comm, log->n_comms,
                                            &p->room_comms, sizeof(*c));

    log->n_comms += c != NULL; /* so that it is released */
    return c;
}

static bool check_communicator(struct record_json *j, void *base)
{
    const struct probe_comm *c = base;

    if (c->comm != log_of(j)->n_comms - 1 ||
        (c->parent != PROBE_UNKNOWN && c->parent >= c->comm)) {
        return record_refuse(j, record_field("comm"),
                             "communicators are numbered from 0, after their "
                             "parents");
    }
    if (c->size > INT32_MAX || c->me >= c->size) {
        return record_refuse(j, record_field("me"),
                             "%" PRIu64 " in a communicator of %" PRIu64, c->me,
                             c->size);
    }
    return check_members(j, c);
}

#define AT(member) RECORD_AT(struct probe_comm, member)
static const struct record_row communicator_rows[] = {
    {"comm", &record_u64, AT(comm)},
    {"parent", &known, AT(parent)},
    {"size", &record_u64, AT(size)},
    {"me", &record_u64, AT(me)},
    {"members", &record_list, RECORD_LIST(struct probe_comm, run, n_runs),
     .table = &run_table, .least = 1, .most = PROBE_MAX_RUNS, .null = true},
    {"name", &record_string, AT(name)},
    {"id", &record_string, AT(id), .null = true},
};
#undef AT
static const struct record_table communicator = {
    RECORD_ROWS(communicator_rows), .prefix = "", .check = check_communicator};

/* ---- Collectives ---- */

static void *begin_collective(struct probe_parse *p)
{
    struct probe_log_file *log = p->log;

    return probe_parse_room(p, &log->call, log->n_calls, &p->room_calls,
                            sizeof(*log->call));
}

static bool check_sizes(struct record_json *j, const struct probe_collective *c)
{
    const uint64_t element = probe_dtype_bytes(c->dtype);

    if (c->n != PROBE_UNKNOWN && c->total != PROBE_UNKNOWN && c->total < c->n) {
        return record_refuse(j, record_field("total"), "it is less than n");
    }
    return element == 0 || c->n == PROBE_UNKNOWN ||
           (c->n <= INT64_MAX / element && c->bytes == c->n * element) ||
           record_refuse(j, record_field("bytes"),
                         "they are not those of n elements of %s",
                         probe_dtype_name(c->dtype));
}

static bool check_collective(struct record_json *j, void *base)
{
    const struct probe_collective *c = base;
    struct probe_log_file *log = log_of(j);

    if (c->seq != log->n_calls) {
        return record_refuse(j, record_field("seq"),
                             "%" PRIu64 "; the next call is %" PRIu64, c->seq,
                             log->n_calls);
    }
    if (c->comm >= log->n_comms) {
        return record_refuse(j, record_field("comm"),
                             "%" PRIu64 " was not told before", c->comm);
    }
    log->n_calls++;
    return check_sizes(j, c);
}

#define AT(member) RECORD_AT(struct probe_collective, member)
static const struct record_row collective_rows[] = {
    {"seq", &record_u64, AT(seq)},
    {"kind", &record_name, AT(kind), .name = probe_kind_name},
    {"comm", &record_u64, AT(comm)},
    {"dtype", &record_name, AT(dtype), .name = probe_dtype_name},
    {"n", &known, AT(n)},
    {"total", &known, AT(total)},
    {"bytes", &known, AT(bytes)},
    {"root", &known, AT(root)},
    {"op", &record_string, AT(op), .null = true},
    {"in_place", &answer, AT(in_place)},
    {"mode", &record_name, AT(mode), .name = probe_mode_name},
    {"call", &record_string, AT(call)},
};
#undef AT
static const struct record_table collective = {
    RECORD_ROWS(collective_rows), .prefix = "", .check = check_collective};

static bool check_failed(struct record_json *j, void *base)
{
    const struct probe_failed *f = base;
    struct probe_log_file *log = log_of(j);

    if (f->seq >= log->n_calls) {
        return record_refuse(j, record_field("seq"),
                             "there is no such call yet");
    }
    log->call[f->seq].failed = true;
    return true;
}

static const struct record_row failed_rows[] = {
    {"seq", &record_u64, RECORD_AT(struct probe_failed, seq)},
    {"code", &record_u64, RECORD_AT(struct probe_failed, code)},
};
static const struct record_table failed = {RECORD_ROWS(failed_rows),
                                           .prefix = "", .check = check_failed};

static bool check_launch(struct record_json *j, void *base)
{
    const struct probe_launch *l = base;
    struct probe_log_file *log = log_of(j);
    struct probe_collective *c;

    if (l->of == PROBE_UNKNOWN) {
        return true;
    }
    c = l->of < log->n_calls ? &log->call[l->of] : NULL;
    if (!c || c->kind != l->kind || c->n != l->n || c->comm != l->comm) {
        return record_refuse(j, record_field("of"), "there is no such call");
    }
    c->launches++;
    c->in_place = l->in_place;
    return true;
}

#define AT(member) RECORD_AT(struct probe_launch, member)
static const struct record_row launch_rows[] = {
    {"of", &known, AT(of)},
    {"comm", &record_u64, AT(comm)},
    {"kind", &record_name, AT(kind), .name = probe_kind_name},
    {"n", &record_u64, AT(n)},
    {"in_place", &answer, AT(in_place)},
    {"algo", &record_string, AT(algo)},
    {"proto", &record_string, AT(proto)},
};
#undef AT
static const struct record_table launch = {RECORD_ROWS(launch_rows),
                                           .prefix = "", .check = check_launch};

/* ---- Marks, peaks, ends ---- */

static void *begin_mark(struct probe_parse *p)
{
    struct probe_log_file *log = p->log;

    return probe_parse_room(p, &log->mark, log->n_marks, &p->room_marks,
                            sizeof(*log->mark));
}

static bool check_mark(struct record_json *j, void *base)
{
    const struct probe_mark *m = base;
    struct probe_log_file *log = log_of(j);

    log->n_marks++;
    return m->at == log->n_calls ||
           record_refuse(j, record_field("at"),
                         "%" PRIu64 " after %" PRIu64 " calls", m->at,
                         log->n_calls);
}

#define AT(member) RECORD_AT(struct probe_mark, member)
static const struct record_row mark_rows[] = {
    {"name", &record_string, AT(name)},
    {"at", &record_u64, AT(at)},
};
static const struct record_row heap_mark_rows[] = {
    {"name", &record_string, AT(name)},
    {"live", &record_u64, AT(live)},
    {"peak_since", &record_u64, AT(peak_since)},
};
#undef AT
static const struct record_table mark = {RECORD_ROWS(mark_rows), .prefix = "",
                                         .check = check_mark};
static const struct record_table heap_mark = {
    RECORD_ROWS(heap_mark_rows), .prefix = "", .check = check_mark};

static void *begin_other(struct probe_parse *p)
{
    memset(&p->line, 0, sizeof(p->line));
    return &p->line;
}

static bool check_peak(struct record_json *j, void *base)
{
    const uint64_t peak = ((const struct probe_peak *)base)->peak;

    if (peak <= log_of(j)->peak) {
        return record_refuse(j, record_field("peak"), "it does not grow");
    }
    log_of(j)->peak = peak;
    return true;
}

static const struct record_row peak_rows[] = {
    {"peak", &record_u64, RECORD_AT(struct probe_peak, peak)},
};
static const struct record_table peak = {RECORD_ROWS(peak_rows), .prefix = "",
                                         .check = check_peak};

static bool take_end(struct record_json *j, const struct probe_last *l)
{
    log_of(j)->end = l->end;
    log_of(j)->ended = true;
    return true;
}

static bool check_heap_end(struct record_json *j, void *base)
{
    const struct probe_last *l = base;
    struct probe_log_file *log = log_of(j);

    if (l->peak < log->peak || l->peak < l->end.live) {
        return record_refuse(j, record_field("peak"),
                             "it is less than there was before");
    }
    log->peak = l->peak;
    return take_end(j, l);
}

static bool check_calls_end(struct record_json *j, void *base)
{
    const struct probe_last *l = base;

    if (l->end.collectives != log_of(j)->n_calls) {
        return record_refuse(j, record_field("collectives"),
                             "%" PRIu64 ", but the log has %" PRIu64,
                             l->end.collectives, log_of(j)->n_calls);
    }
    return take_end(j, l);
}

#define AT(member) RECORD_AT(struct probe_last, member)
static const struct record_row heap_end_rows[] = {
    {"how", &record_name, AT(end.how), .name = probe_how_name},
    {"peak", &record_u64, AT(peak)},
    {"live", &record_u64, AT(end.live)},
    {"mapped", &record_u64, AT(end.mapped)},
    {"blocks", &record_u64, AT(end.blocks)},
    {"allocations", &record_u64, AT(end.allocations)},
    {"untracked", &record_u64, AT(end.untracked)},
};
static const struct record_row calls_end_rows[] = {
    {"how", &record_name, AT(end.how), .name = probe_how_name},
    {"collectives", &record_u64, AT(end.collectives)},
    {"sends", &record_u64, AT(end.sends)},
    {"send_bytes", &record_u64, AT(end.send_bytes)},
    {"puts", &record_u64, AT(end.puts)},
    {"put_bytes", &record_u64, AT(end.put_bytes)},
};
#undef AT
static const struct record_table heap_end = {
    RECORD_ROWS(heap_end_rows), .prefix = "", .check = check_heap_end};
static const struct record_table calls_end = {
    RECORD_ROWS(calls_end_rows), .prefix = "", .check = check_calls_end};

enum {
    MPI = 1 << PROBE_MPI,
    NCCL = 1 << PROBE_NCCL,
    HEAP = 1 << PROBE_HEAP,
    TORCH = 1 << PROBE_TORCH,
    STORAGES = 1 << PROBE_STORAGES,

    CALLS = MPI | NCCL | TORCH,
    MEMORY = HEAP | STORAGES,
};

const struct probe_line probe_lines[] = {
    {"communicator", CALLS, &communicator, begin_communicator},
    {"collective", CALLS, &collective, begin_collective},
    {"failed", MPI | TORCH, &failed, begin_other},
    {"launch", NCCL, &launch, begin_other},
    {"mark", CALLS, &mark, begin_mark},
    {"mark", MEMORY, &heap_mark, begin_mark},
    {"peak", MEMORY, &peak, begin_other},
    {"end", CALLS, &calls_end, begin_other},
    {"end", MEMORY, &heap_end, begin_other},
    {NULL, 0, NULL, NULL},
};
