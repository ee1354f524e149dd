/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_rank.c - rank-R.json: what one rank showed, but for tensors. Counts
 * have to be those that the case asks for: a judge walks these arrays by the
 * case's numbers.
 */
#include "record/record_internal.h"

#include <math.h>
#include <string.h>

/* What the file has: the rank's number, and what the rank showed. */
struct rank_file {
    uint32_t rank, n_tensors;
    struct record_rank r;
    /* The rank and the case that it must belong to. */
    uint32_t wanted;
    const struct run_case *c;
};

/* ---- How many there must be ---- */

static const struct record_rank *rank_of(const struct record_json *j)
{
    return &((const struct rank_file *)j->context)->r;
}

/* Bounds of a list: n elements; fewer only if the rank did not end well. */
static void so_many(const struct record_json *j, uint64_t n, uint64_t *least,
                    uint64_t *most)
{
    *least = rank_of(j)->status == FSDP_OK ? n : 0;
    *most = n;
}

static uint64_t steps_of(const struct record_json *j)
{
    const struct run_case *const c = ((const struct rank_file *)j->context)->c;

    return case_trains(c) ? c->steps : 0;
}

static void a_loss_a_microbatch(const struct record_json *j, uint64_t *least,
                                uint64_t *most)
{
    const struct run_case *const c = ((const struct rank_file *)j->context)->c;

    so_many(j, steps_of(j) * case_losses_a_step(c), least, most);
}

static void other_losses(const struct record_json *j, uint64_t *least,
                         uint64_t *most)
{
    const struct run_case *const c = ((const struct rank_file *)j->context)->c;
    const uint64_t steps = steps_of(j);

    if (case_resumes(c)) { /* of steps that were trained beside a save */
        *least = 0;
        *most = (steps - steps / 2) * c->microbatches;
        return;
    }
    so_many(j,
            c->scenario == CASE_EVAL    ? steps
            : c->scenario == CASE_AGAIN ? steps * c->microbatches
                                        : 0,
            least, most);
}

static void one_a_step(const struct record_json *j, uint64_t *least,
                       uint64_t *most)
{
    so_many(j, steps_of(j), least, most);
}

static void as_many_as_steps(const struct record_json *j, uint64_t *least,
                             uint64_t *most)
{
    *least = *most = rank_of(j)->n_steps;
}

static void one_of_the_sequences(const struct record_json *j, uint64_t *least,
                                 uint64_t *most)
{
    (void)least;
    *most = rank_of(j)->n_sequences - 1;
}

/* ---- Errors and losses ---- */

#define AT(member) RECORD_AT(struct fsdp_error, member)
static const struct record_row error_rows[] = {
    {"status", &record_i32, AT(status)},
    {"rank", &record_i32, AT(rank)},
    {"native", &record_i32, AT(native)},
    {"where", &record_string, AT(where)},
    {"message", &record_string, AT(message)},
};
#undef AT
static bool check_error(struct record_json *j, void *base)
{
    return ((const struct fsdp_error *)base)->status != FSDP_OK ||
           record_refuse(j, record_field("error.status"), "no error has it");
}

static const struct record_table error_table = {RECORD_ROWS(error_rows),
                                                .check = check_error};

static void write_error(struct record_text *t, const struct record_row *row,
                        const void *base)
{
    const struct fsdp_error *const e = record_at(row, base);

    if (e->status == FSDP_OK) {
        record_text_add(t, "null");
    } else {
        record_object.write(t, row, base);
    }
}

static const struct record_row loss = {.type = &record_float,
                                       .room = sizeof(float)};

/* The losses of one step stand on one line. */
static void write_losses(struct record_text *t, const struct record_row *row,
                         const void *base)
{
    const struct record_rank *const r = &((const struct rank_file *)base)->r;
    const bool even = r->n_steps != 0 && r->n_losses % r->n_steps == 0 &&
                      r->n_losses >= r->n_steps;
    const uint32_t per_line = even ? r->n_losses / r->n_steps : 1;

    record_text_add(t, "[");
    for (uint32_t i = 0; i < r->n_losses; i++) {
        record_text_add(t, "%s%s", i == 0 ? "" : ",",
                        i % per_line == 0 ? row->line : " ");
        record_float.write(t, row->each, &r->loss[i]);
    }
    record_text_add(t, "]");
}

/* ---- Sequences of collectives ---- */

#define AT(member) RECORD_AT(struct record_collective, member)
static const struct record_row collective_rows[] = {
    {"kind", &record_name_or_number, AT(kind), .name = record_collective_name},
    {"dim", &record_name_or_number, AT(dim), .name = record_dim_name},
    {"dtype", &record_name_or_number, AT(dtype), .name = record_dtype_name},
    {"fold", &record_name_or_number, AT(fold), .name = case_fold_name},
    {"root", &record_u32, AT(root)},
    {"unit", &record_name_or_number, AT(unit), .name = record_unit_name},
    {"n", &record_u64, AT(n)},
};
#undef AT
static const struct record_table collective_table = {
    RECORD_ROWS(collective_rows), .size = sizeof(struct record_collective),
    .tuple = true};

/* An element of the list of sequences, which is itself a list. */
static const struct record_row sequence = {
    .type = &record_list,
    RECORD_LIST(struct record_sequence, c, n),
    .room = sizeof(struct record_sequence),
    .table = &collective_table,
    .line = "\n   ",
    .hangs = true};

/* A rank that communicated nothing has one empty sequence. */
static void write_sequences(struct record_text *t, const struct record_row *row,
                            const void *base)
{
    if (((const struct rank_file *)base)->r.n_sequences == 0) {
        record_text_add(t, "[[]]");
    } else {
        record_list.write(t, row, base);
    }
}

static const struct record_row step_sequence = {.type = &record_u32,
                                                .room = sizeof(uint32_t),
                                                .bounds = one_of_the_sequences};

/* ---- Memory ---- */

static const struct record_row number = {.type = &record_u64,
                                         .room = sizeof(uint64_t)};
static const struct record_row rest = {.type = &record_array,
                                       .room = sizeof(struct record_rest),
                                       .least = RECORD_KINDS,
                                       .most = RECORD_N_KINDS,
                                       .each = &number};

#define AT(member) RECORD_AT(struct record_moment, member)
static const struct record_row moment_rows[] = {
    {"point", &record_name, AT(point), .name = record_point_name},
    {"module", &record_u32, AT(module)},
    {"live", &record_array, AT(live), .least = RECORD_KINDS,
     .most = RECORD_N_KINDS, .each = &number},
};
#undef AT
static const struct record_table moment_table = {
    RECORD_ROWS(moment_rows), .size = sizeof(struct record_moment),
    .tuple = true};

#define AT(member) RECORD_AT(struct record_hosted, member)
static const struct record_row hosted_rows[] = {
    {"to_device", &record_u64, AT(to_device)},
    {"to_device_bytes", &record_u64, AT(to_device_bytes)},
    {"to_host", &record_u64, AT(to_host)},
    {"to_host_bytes", &record_u64, AT(to_host_bytes)},
    {"stepped_on_device", &record_u64, AT(stepped_on_device)},
    {"stepped_on_host", &record_u64, AT(stepped_on_host)},
};
#undef AT
static const struct record_table hosted_table = {
    RECORD_ROWS(hosted_rows), .size = sizeof(struct record_hosted),
    .tuple = true};

static bool hosts_nothing(const void *base)
{
    const struct record_rank *const r = base;

    for (uint32_t t = 0; r->memory.hosted && t < r->n_steps; t++) {
        const struct record_hosted *const h = &r->memory.hosted[t];

        if (h->to_device || h->to_host || h->stepped_on_host) {
            return false;
        }
    }
    return true;
}

static bool freezes_cleanly(const void *base)
{
    return ((const struct record_rank *)base)->memory.dirty_frozen == 0;
}

#define AT(member)      RECORD_AT(struct record_rank, member)
#define LIST(member, n) RECORD_LIST(struct record_rank, member, n)
static const struct record_row memory_rows[] = {
    {"peak", &record_array, AT(memory.peak), .least = RECORD_KINDS,
     .most = RECORD_N_KINDS, .each = &number},
    {"peak_parameters", &record_u64, AT(memory.peak_parameters)},
    {"peak_engine", &record_u64, AT(memory.peak_engine)},
    {"peak_storage", &record_u64, AT(memory.peak_storage)},
    {"peak_live_over_storage", &record_u64, AT(memory.peak_live_over_storage)},
    {"dirty_padding", &record_u64, AT(memory.dirty_padding)},
    {"dirty_frozen", &record_u64, AT(memory.dirty_frozen), .optional = true,
     .absent = freezes_cleanly},
    {"misplaced", &record_u64, AT(memory.misplaced)},
    {"bad_ranges", &record_u64, AT(memory.bad_ranges)},
    {"left_live", &record_u64, AT(memory.left_live)},
    {"left_storage", &record_u64, AT(memory.left_storage)},
    {"process_growth", &record_u64, AT(memory.process_growth)},
    {"new_channels", &record_u32, AT(memory.new_channels)},
    {"after_shard", &record_array, AT(memory.after_shard.live),
     .least = RECORD_KINDS, .most = RECORD_N_KINDS, .each = &number},
    {"after_step", &record_list, LIST(memory.after_step, n_steps),
     .bounds = as_many_as_steps, .each = &rest, .line = "\n   "},
    {"allocations", &record_list, LIST(memory.allocations, n_steps),
     .bounds = as_many_as_steps, .each = &number},
    {"launches", &record_list, LIST(memory.launches, n_steps),
     .bounds = as_many_as_steps, .each = &number},
    {"hosted", &record_list, LIST(memory.hosted, n_steps),
     .bounds = as_many_as_steps, .table = &hosted_table, .line = "\n   ",
     .optional = true, .absent = hosts_nothing},
    {"timeline", &record_list, LIST(memory.moment, memory.n_moments),
     .most = RECORD_MAX_MOMENTS, .table = &moment_table, .line = "\n   "},
};
static const struct record_table memory_table = {
    RECORD_ROWS(memory_rows), .prefix = "memory.", .line = "\n  ",
    .check = record_memory_agrees};
#undef AT
#undef LIST

/* ---- Races ---- */

/* "nothing" beside the names of kinds. */
static const char *record_race_kind_name(uint32_t kind)
{
    return kind == FSDP_N_KINDS ? "nothing" : record_kind_name(kind);
}

#define AT(member) RECORD_AT(struct record_race_side, member)
static const struct record_row side_rows[] = {
    {"what", &record_string, AT(what)},  {"stream", &record_string, AT(stream)},
    {"step", &record_u32, AT(step)},     {"point", &record_string, AT(point)},
    {"module", &record_u32, AT(module)},
};
#undef AT
static const struct record_table side_table = {RECORD_ROWS(side_rows),
                                               .tuple = true};

#define AT(member) RECORD_AT(struct record_race, member)
static const struct record_row race_rows[] = {
    {"edge", &record_string, AT(edge)},
    {"kind", &record_name, AT(kind), .name = record_race_kind_name},
    {"unit", &record_name_or_number, AT(unit), .name = record_unit_name},
    {"earlier", &record_object, AT(earlier), .table = &side_table},
    {"later", &record_object, AT(later), .table = &side_table},
};
#undef AT
static const struct record_table race_table = {
    RECORD_ROWS(race_rows), .size = sizeof(struct record_race), .tuple = true};

static bool check_races(struct record_json *j, void *base)
{
    const struct record_races *const r = base;

    return r->n <= r->count || record_refuse(j, record_field("races.first"),
                                             "more races than were counted");
}

#define AT(member) RECORD_AT(struct record_races, member)
static const struct record_row races_rows[] = {
    {"count", &record_u64, AT(count)},
    {"unfollowed", &record_u32, AT(unfollowed)},
    {"first", &record_short_list, RECORD_LIST(struct record_races, race, n),
     .most = RECORD_RACES, .table = &race_table, .line = "\n  "},
};
#undef AT
static const struct record_table races_table = {
    RECORD_ROWS(races_rows), .prefix = "races.", .check = check_races};

/* ---- When collectives were given out ---- */

static const char *position_name(uint32_t position)
{
    return position == RECORD_NO_POSITION ? "none" : NULL;
}

#define AT(member) RECORD_AT(struct record_flight, member)
static const struct record_row flight_rows[] = {
    {"kind", &record_name_or_number, AT(kind), .name = record_collective_name},
    {"unit", &record_name_or_number, AT(unit), .name = record_unit_name},
    {"issued", &record_u32, AT(issued), .most = UINT32_MAX - 1},
    {"behind", &record_u32, AT(behind), .most = UINT32_MAX - 1},
    {"awaited", &record_name_or_number, AT(awaited), .name = position_name},
    {"on_stream", &record_flag, AT(on_stream)},
};
#undef AT
static const struct record_table flight_table = {
    RECORD_ROWS(flight_rows), .size = sizeof(struct record_flight),
    .tuple = true};

/* ---- Answers ---- */

#define AT(member) RECORD_AT(struct record_answer, member)
static const struct record_row answer_rows[] = {
    {"name", &record_string, AT(name)},
    {"status", &record_i32, AT(status)},
};
#undef AT
static const struct record_table answer_table = {
    RECORD_ROWS(answer_rows), .size = sizeof(struct record_answer),
    .tuple = true};

/* ---- Dtypes at the edges of units ---- */

#define AT(member) RECORD_AT(struct record_edge, member)
static const struct record_row edge_rows[] = {
    {"side", &record_name, AT(side), .name = record_side_name},
    {"unit", &record_u32, AT(unit)},
    {"dtype", &record_name, AT(dtype), .name = record_dtype_name},
};
#undef AT
static const struct record_table edge_table = {
    RECORD_ROWS(edge_rows), .size = sizeof(struct record_edge), .tuple = true};

static bool has_no_edges(const void *base)
{
    return ((const struct rank_file *)base)->r.n_edges == 0;
}

/* ---- What was lent, and left, in passes ---- */

#define AT(member) RECORD_AT(struct record_pass, member)
static const struct record_row pass_rows[] = {
    {"step", &record_u32, AT(step)},
    {"microbatch", &record_u32, AT(microbatch)},
    {"unit", &record_u32, AT(unit)},
    {"lent_dtype", &record_name, AT(lent_dtype), .name = record_dtype_name},
    {"lent", &record_u64, AT(lent)},
    {"gathers", &record_u32, AT(gathers)},
    {"left_dtype", &record_name, AT(left_dtype), .name = record_dtype_name},
    {"left", &record_u64, AT(left)},
    {"reductions", &record_u32, AT(reductions)},
    {"reduced", &record_u32, AT(reduced)},
};
#undef AT
static const struct record_table pass_table = {
    RECORD_ROWS(pass_rows), .size = sizeof(struct record_pass), .tuple = true};

static bool has_no_passes(const void *base)
{
    return ((const struct rank_file *)base)->r.n_passes == 0;
}

/* ---- What calls have changed ---- */

#define AT(member) RECORD_AT(struct record_change, member)
static const struct record_row change_rows[] = {
    {"call", &record_string, AT(call)},
    {"step", &record_u32, AT(step)},
    {"what", &record_string, AT(what)},
};
#undef AT
static const struct record_table change_table = {
    RECORD_ROWS(change_rows), .size = sizeof(struct record_change),
    .tuple = true};

static bool changes_nothing(const void *base)
{
    return ((const struct rank_file *)base)->r.n_changes == 0;
}

/* ---- The file ---- */

#define AT(member)      RECORD_AT(struct rank_file, member)
#define LIST(member, n) RECORD_LIST(struct rank_file, member, n)
static const struct record_row rank_rows[] = {
    {"version", &record_version, .most = RECORD_VERSION},
    {"rank", &record_u32, AT(rank)},
    {"status", &record_i32, AT(r.status)},
    {"error", &record_object, AT(r.error), .table = &error_table, .null = true,
     .write = write_error},
    {"losses", &record_list, LIST(r.loss, r.n_losses), .each = &loss,
     .write = write_losses, .bounds = a_loss_a_microbatch, .line = "\n  "},
    {"other_losses", &record_list, LIST(r.other_loss, r.n_other_losses),
     .each = &loss, .bounds = other_losses, .line = "\n  "},
    {"sequences", &record_list, LIST(r.sequence, r.n_sequences),
     .write = write_sequences, .each = &sequence, .least = 1, .line = "\n  "},
    {"shard_sequence", &record_u32, AT(r.shard_sequence),
     .bounds = one_of_the_sequences},
    {"step_sequences", &record_list, LIST(r.step_sequence, r.n_steps),
     .each = &step_sequence, .bounds = one_a_step},
    {"end_sequence", &record_u32, AT(r.end_sequence),
     .bounds = one_of_the_sequences},
    {"memory", &record_object, AT(r), .table = &memory_table},
    {"races", &record_object, AT(r.races), .table = &races_table},
    {"flights", &record_list, LIST(r.flights.flight, r.flights.n),
     .table = &flight_table, .line = "\n  ", .hangs = true},
    {"answers", &record_list, LIST(r.answer, r.n_answers), .most = 1 << 20,
     .table = &answer_table, .line = "\n  "},
    {"edges", &record_list, LIST(r.edge, r.n_edges), .most = 1 << 16,
     .table = &edge_table, .line = "\n  ", .hangs = true, .optional = true,
     .absent = has_no_edges},
    {"passes", &record_list, LIST(r.pass, r.n_passes), .most = RECORD_PASSES,
     .table = &pass_table, .line = "\n  ", .hangs = true, .optional = true,
     .absent = has_no_passes},
    {"changes", &record_short_list, LIST(r.change, r.n_changes),
     .most = RECORD_CHANGES, .table = &change_table, .line = "\n  ",
     .optional = true, .absent = changes_nothing},
    {"tensors", &record_u32, AT(n_tensors)},
    {"seconds", &record_seconds, AT(r.seconds)},
};
#undef AT
#undef LIST

static bool check_rank(struct record_json *j, void *base)
{
    const struct rank_file *const f = base;

    return f->rank == f->wanted
               ? record_rank_agrees(j, &f->r)
               : record_refuse(j, record_field("rank"),
                               "%u in the file of rank %u", f->rank, f->wanted);
}

const struct record_table record_rank_table = {
    RECORD_ROWS(rank_rows), .prefix = "", .line = "\n ", .check = check_rank};

int record_parse_rank(const char *text, size_t bytes, const char *file,
                      const struct run_case *c, uint32_t rank,
                      struct record_rank *out, uint32_t *n_tensors,
                      struct fsdp_error *error)
{
    struct rank_file f = {.r = *out, .wanted = rank, .c = c};
    const int status =
        record_parse(text, bytes, file, &record_rank_table, &f, &f, error);

    *out = f.r;
    *n_tensors = f.n_tensors;
    return status;
}

int record_write_rank_text(const char *path, uint32_t rank,
                           const struct record_rank *r,
                           struct fsdp_error *error)
{
    const struct rank_file f = {
        .rank = rank, .n_tensors = r->n_tensors, .r = *r};

    return record_save(&record_rank_table, &f, path, error);
}
