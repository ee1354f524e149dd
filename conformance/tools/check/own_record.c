/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_record.c - reads records of a user's own model: the tables of their
 * fields, and the rules for values beside their types.
 */
#include "tools/check/own_record.h"

#include "record/record_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char where[] = "own_record";

/* ---- Values ---- */

/* Digits of each value, one behind the other. The tensor's dtype stands before
 * it. */
static bool read_bits(struct record_json *j, struct record_field at, json_t *v,
                      const struct record_row *row, void *base)
{
    struct own_tensor *t = base;
    const size_t width = 2 * (size_t)own_dtype_bytes(t->dtype);
    const char *text = json_string_value(v);
    const size_t length = text ? strlen(text) : 0;

    (void)row;
    if (!text || width == 0 || length % width != 0 ||
        length / width > OWN_SAMPLES ||
        strspn(text, "0123456789abcdef") != length) {
        return record_refuse(j, at,
                             "at most %d values of %zu digits were "
                             "expected",
                             OWN_SAMPLES, width);
    }
    t->n_values = (uint32_t)(length / width);
    for (uint32_t i = 0; i < t->n_values; i++) {
        char digits[17] = "";

        memcpy(digits, text + i * width, width);
        t->value[i] = strtoull(digits, NULL, 16);
    }
    return true;
}

static const struct record_type bits = {read_bits, NULL};

static const struct own_record *record_of(const struct record_json *j)
{
    return j->context;
}

/* The bounds of a number of a parameter, a rank, a step ... of this record. */
#define BELOW(function, member)                                      \
    static void function(const struct record_json *j, uint64_t *low, \
                         uint64_t *high)                             \
    {                                                                \
        const struct own_record *r = record_of(j);                   \
        *low = r->member == 0 ? 1 : 0; /* of none there is none */   \
        *high = r->member == 0 ? 0 : (uint64_t)r->member - 1;        \
    }
BELOW(below_parameters, n_parameters)
BELOW(below_steps, steps)
BELOW(below_microbatches, microbatches)
BELOW(below_world, world)
BELOW(below_units, n_units)

#define PARAMETER(owner)                                \
    {                                                   \
        "parameter", &record_u32, AT(owner, parameter), \
            .bounds = below_parameters                  \
    }
#define PLACE_OF(owner, microbatches)                               \
    {"step", &record_u32, AT(owner, step), .bounds = below_steps},  \
        {"microbatch", &record_u32, AT(owner, microbatch),          \
         .bounds = (microbatches)},                                 \
    {                                                               \
        "rank", &record_u32, AT(owner, rank), .bounds = below_world \
    }
#define PLACE(owner)      PLACE_OF(owner, below_microbatches)
#define AT(owner, member) RECORD_AT(struct owner, member)

static const struct record_row end_rows[] = {
    {"how", &record_name, AT(own_end, how), .name = own_how_name},
    {"place", &record_string, AT(own_end, place)},
    {"message", &record_string, AT(own_end, message)},
};
static const struct record_table end_table = {RECORD_ROWS(end_rows),
                                              .prefix = ""};

static bool check_parameter(struct record_json *j, void *base)
{
    const struct own_parameter *p = base;

    return (p->n == 0 || (p->rows > 0 && p->n % p->rows == 0)) ||
           record_refuse(j, j->at, "%" PRIu64 " elements in %" PRIu64 " rows",
                         p->n, p->rows);
}

static const struct record_row parameter_rows[] = {
    {"name", &record_string, AT(own_parameter, name), .least = 1},
    {"rows", &record_u64, AT(own_parameter, rows), .most = INT64_MAX},
    {"n", &record_u64, AT(own_parameter, n), .most = (uint64_t)1 << 50},
    {"dtype", &record_name, AT(own_parameter, dtype), .name = own_dtype_name},
    {"trainable", &record_bool, AT(own_parameter, trainable)},
};
static const struct record_row name_rows[] = {
    {"name", &record_string, AT(own_name, name), .least = 1},
    PARAMETER(own_name),
};
static const struct record_row unit_rows[] = {
    {"name", &record_string, AT(own_unit, name)},
    {"reshard", &record_bool, AT(own_unit, reshard)},
    {"parameters", &record_list,
     RECORD_LIST(struct own_unit, parameter, n_parameters),
     .most = OWN_MAX_ROWS,
     .each = &(const struct record_row){.type = &record_u32,
                                        .room = sizeof(uint32_t),
                                        .bounds = below_parameters}},
};

/* Elements [first, first + n) of a parameter. */
static bool check_range(struct record_json *j, uint32_t parameter,
                        uint64_t first, uint64_t n)
{
    const uint64_t all = record_of(j)->parameter[parameter].n;

    return (n > 0 && first < all && n <= all - first) ||
           record_refuse(j, j->at,
                         "elements from %" PRIu64 " on, %" PRIu64
                         " of them, of a parameter of %" PRIu64,
                         first, n, all);
}

static bool check_piece(struct record_json *j, void *base)
{
    const struct own_piece *p = base;

    return check_range(j, p->parameter, p->first, p->n);
}

static const struct record_row piece_rows[] = {
    PARAMETER(own_piece),
    {"first", &record_u64, AT(own_piece, first)},
    {"n", &record_u64, AT(own_piece, n)},
};

static bool check_held(struct record_json *j, void *base)
{
    const struct own_held *h = base;

    return (h->parameter >= -1 &&
            h->parameter < (int64_t)record_of(j)->n_parameters) ||
           record_refuse(j, j->at, "there is no parameter %" PRId32,
                         h->parameter);
}

static const struct record_row held_rows[] = {
    {"parameter", &record_i32, AT(own_held, parameter)},
    {"group", &record_u32, AT(own_held, group)},
};
static const struct record_row pass_rows[] = {
    PLACE(own_pass),
    {"loss", &record_float, AT(own_pass, loss)},
    {"batch", &record_sha256, AT(own_pass, batch)},
    {"random", &record_sha256, AT(own_pass, random)},
};

static const struct record_row buffer_rows[] = {
    {"step", &record_u32, AT(own_buffer, step), .bounds = below_steps},
    {"rank", &record_u32, AT(own_buffer, rank), .bounds = below_world},
    {"name", &record_string, AT(own_buffer, name), .least = 1},
    {"dtype", &record_name, AT(own_buffer, dtype), .name = own_dtype_name},
    {"digest", &record_sha256, AT(own_buffer, digest)},
};

static bool check_tensor(struct record_json *j, void *base)
{
    const struct own_tensor *t = base;
    const uint64_t all = record_of(j)->parameter[t->parameter].n;
    uint32_t want;

    if (!check_range(j, t->parameter, t->first, t->n)) {
        return false;
    }
    want = own_places_before(all, t->first + t->n) -
           own_places_before(all, t->first);
    return t->n_values == want ||
           record_refuse(j, j->at, "bits of %u elements, %u expected",
                         t->n_values, want);
}

static const struct record_row tensor_rows[] = {
    {"stage", &record_string, AT(own_tensor, stage), .least = 1},
    PLACE(own_tensor),
    PARAMETER(own_tensor),
    {"first", &record_u64, AT(own_tensor, first)},
    {"n", &record_u64, AT(own_tensor, n)},
    {"dtype", &record_name, AT(own_tensor, dtype), .name = own_dtype_name},
    {"digest", &record_sha256, AT(own_tensor, digest)},
    {"bits", &bits, AT(own_tensor, value)},
};

static bool check_event(struct record_json *j, void *base)
{
    const struct own_event *e = base;

    return (e->unit >= -1 && e->unit < OWN_MAX_ROWS &&
            e->microbatch <= record_of(j)->microbatches) ||
           record_refuse(j, j->at,
                         "there is no unit %" PRId32 ", or microbatch %u",
                         e->unit, e->microbatch);
}

static const struct record_row event_rows[] = {
    PLACE_OF(own_event, NULL),
    {"backward", &record_bool, AT(own_event, backward)},
    {"what", &record_name, AT(own_event, kind), .name = own_event_name},
    {"unit", &record_i32, AT(own_event, unit)},
    {"dtype", &record_name, AT(own_event, dtype), .name = own_dtype_name},
    {"n", &record_u64, AT(own_event, n), .most = (uint64_t)1 << 50},
};
#undef AT

#define TABLE(of, function)                                      \
    static const struct record_table of##_table = {              \
        RECORD_ROWS(of##_rows), .size = sizeof(struct own_##of), \
        .tuple = true, .check = (function)}
TABLE(parameter, check_parameter);
TABLE(name, NULL);
TABLE(unit, NULL);
TABLE(piece, check_piece);
TABLE(held, check_held);
TABLE(pass, NULL);
TABLE(buffer, NULL);
TABLE(tensor, check_tensor);
TABLE(event, check_event);

static bool fills_nothing(const void *base)
{
    return ((const struct own_record *)base)->n_filled == 0;
}

static bool check_record(struct record_json *j, void *base)
{
    struct own_record *r = base;

    for (uint32_t i = 0; i < r->n_filled; i++) {
        r->unit[r->filled[i]].fills = true;
    }
    return (r->role == OWN_RANK ? r->rank < r->world : r->rank == 0) ||
           record_refuse(j, record_field("rank"), "%u in a world of %u",
                         r->rank, r->world);
}

#define AT(member) RECORD_AT(struct own_record, member)
#define LIST(key, member)                                                \
    {                                                                    \
        key, &record_list,                                               \
            RECORD_LIST(struct own_record, member, n_##member##s),       \
            .most = OWN_MAX_ROWS, .table = &member##_table, .line = "\n" \
    }
#define n_passs n_passes
#define n_helds n_held
static const struct record_row rows[] = {
    {"version", &record_version, .most = OWN_VERSION},
    {"role", &record_name, AT(role), .name = own_role_name},
    {"rank", &record_u32, AT(rank)},
    {"world", &record_u32, AT(world), .least = 1, .most = OWN_MAX_RANKS},
    {"library", &record_string, AT(library)},
    {"wrapper", &record_string, AT(wrapper)},
    {"optimizer", &record_string, AT(optimizer)},
    {"steps", &record_u32, AT(steps), .least = 1, .most = OWN_MAX_STEPS},
    {"microbatches", &record_u32, AT(microbatches), .least = 1,
     .most = OWN_MAX_STEPS},
    {"compute", &record_name, AT(compute), .name = own_dtype_name},
    {"reduce", &record_name, AT(reduce), .name = own_dtype_name},
    {"end", &record_object, .table = &end_table,
     .offset = offsetof(struct own_record, end)},
    {"saved", &record_object, .table = &end_table,
     .offset = offsetof(struct own_record, saved)},
    LIST("parameters", parameter),
    LIST("names", name),
    LIST("units", unit),
    LIST("pieces", piece),
    LIST("held", held),
    LIST("passes", pass),
    LIST("buffers", buffer),
    LIST("tensors", tensor),
    LIST("events", event),
    {"filled", &record_list, RECORD_LIST(struct own_record, filled, n_filled),
     .most = OWN_MAX_ROWS,
     .each = &(const struct record_row){.type = &record_u32,
                                        .room = sizeof(uint32_t),
                                        .bounds = below_units},
     .optional = true, .absent = fills_nothing},
};
#undef AT
const struct record_table own_record_table = {RECORD_ROWS(rows), .prefix = "",
                                              .check = check_record};

/* ---- Order ---- */

static int order_numbers(const uint64_t *a, const uint64_t *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (a[i] != b[i]) {
            return a[i] < b[i] ? -1 : 1;
        }
    }
    return 0;
}

static int order_tensors(const void *a, const void *b)
{
    const struct own_tensor *x = a;
    const struct own_tensor *y = b;
    const uint64_t m[] = {x->step,      x->microbatch, x->rank,
                          x->parameter, x->first,      x->n};
    const uint64_t n[] = {y->step,      y->microbatch, y->rank,
                          y->parameter, y->first,      y->n};
    const int stage = strcmp(x->stage, y->stage);

    return stage != 0 ? stage : order_numbers(m, n, 6);
}

static int order_passes(const void *a, const void *b)
{
    const struct own_pass *x = a;
    const struct own_pass *y = b;
    const uint64_t m[] = {x->step, x->microbatch, x->rank};
    const uint64_t n[] = {y->step, y->microbatch, y->rank};

    return order_numbers(m, n, 3);
}

/* Sorts, and refuses what is there twice. */
static int sort(void *base, size_t n, size_t size,
                int (*order)(const void *, const void *), const char *file,
                const char *what, struct fsdp_error *error)
{
    if (n > 0) {
        qsort(base, n, size, order);
    }
    for (size_t i = 1; i < n; i++) {
        const char *at = (const char *)base + i * size;

        if (order(at - size, at) == 0) {
            return record_fail(error, FSDP_ERR_FORMAT, where,
                               "%s: %s: one of them is there twice",
                               record_path_tail(file), what);
        }
    }
    return FSDP_OK;
}

int own_parse(const char *text, size_t bytes, const char *file,
              struct own_record *out, struct fsdp_error *error)
{
    FSDP_TRY(
        record_parse(text, bytes, file, &own_record_table, out, out, error));
    FSDP_TRY(sort(out->pass, out->n_passes, sizeof(*out->pass), order_passes,
                  file, "passes", error));
    return sort(out->tensor, out->n_tensors, sizeof(*out->tensor),
                order_tensors, file, "tensors", error);
}

void own_record_release(struct own_record *r)
{
    for (uint32_t i = 0; r->unit && i < r->n_units; i++) {
        free(r->unit[i].parameter);
    }
    free(r->parameter);
    free(r->name);
    free(r->unit);
    free(r->piece);
    free(r->held);
    free(r->pass);
    free(r->buffer);
    free(r->tensor);
    free(r->event);
    free(r->filled);
    memset(r, 0, sizeof(*r));
}

const struct own_tensor *own_find(const struct own_record *r,
                                  const struct own_tensor *like)
{
    return r->n_tensors == 0 ? NULL
                             : bsearch(like, r->tensor, r->n_tensors,
                                       sizeof(*r->tensor), order_tensors);
}

const struct own_pass *own_find_pass(const struct own_record *r, uint32_t step,
                                     uint32_t microbatch, uint32_t rank)
{
    const struct own_pass like = {
        .step = step, .microbatch = microbatch, .rank = rank};

    return r->n_passes == 0 ? NULL
                            : bsearch(&like, r->pass, r->n_passes,
                                      sizeof(*r->pass), order_passes);
}

/* ---- A folder ---- */

static int read_one(const char *path, struct own_record *out,
                    struct fsdp_error *error)
{
    static const struct record_source file = {.where = where,
                                              .most = RECORD_MAX_JSON_BYTES};
    char *text = NULL;
    size_t bytes = 0;
    int status = record_read_file(path, &file, &text, &bytes, error);

    if (status == FSDP_OK) {
        status = own_parse(text, bytes, path, out, error);
    }
    free(text);
    return status;
}

/* Files of one run. */
static int check_same(const struct own_record *a, const struct own_record *b,
                      uint32_t role, uint32_t rank, const char *path,
                      struct fsdp_error *error)
{
    return b->role == role && b->rank == rank && a->world == b->world &&
                   a->steps == b->steps && a->microbatches == b->microbatches &&
                   a->compute == b->compute && a->reduce == b->reduce
               ? FSDP_OK
               : record_fail(error, FSDP_ERR_FORMAT, where,
                             "%s: of another run, or another rank's, than its "
                             "name says",
                             record_path_tail(path));
}

int own_read(const char *folder, struct own_set *out, struct fsdp_error *error)
{
    struct own_record *const alone = &out->unsharded;
    char path[RECORD_PATH_BYTES];

    memset(out, 0, sizeof(*out));
    FSDP_TRY(record_path(path, folder, "unsharded.json", error));
    FSDP_TRY(read_one(path, alone, error));
    FSDP_TRY(check_same(alone, alone, OWN_UNSHARDED, 0, path, error));
    out->rank = calloc(alone->world, sizeof(*out->rank));
    if (!out->rank) {
        return record_fail(error, FSDP_ERR_NOMEM, where, "out of memory");
    }
    out->world = alone->world;
    for (uint32_t r = 0; r < out->world; r++) {
        FSDP_TRY(record_rank_path(path, folder, r, ".json", error));
        FSDP_TRY(read_one(path, &out->rank[r], error));
        FSDP_TRY(check_same(alone, &out->rank[r], OWN_RANK, r, path, error));
    }
    return FSDP_OK;
}

void own_release(struct own_set *s)
{
    own_record_release(&s->unsharded);
    for (uint32_t r = 0; r < s->world; r++) {
        own_record_release(&s->rank[r]);
    }
    free(s->rank);
    memset(s, 0, sizeof(*s));
}
