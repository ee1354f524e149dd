/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_fields.c - reads and writes objects and lists by their tables.
 */
#include "record/record_internal.h"

#include <string.h>

/* Finds the values of an object's fields; the object may have no others. */
static bool take_members(struct record_json *j, struct record_field at,
                         json_t *v, const struct record_table *table,
                         json_t **value)
{
    const char *name;
    json_t *member;
    size_t n = 0;

    if (!json_is_object(v)) {
        return record_refuse(j, at, "an object was expected");
    }
    for (size_t i = 0; i < table->n; i++) {
        value[i] = json_object_get(v, table->row[i].key);
        if (!value[i] && !table->row[i].optional) {
            return record_refuse(j, at, "field \"%s\" is missing",
                                 table->row[i].key);
        }
        n += value[i] != NULL;
    }
    if (json_object_size(v) == n) {
        return true;
    }
    json_object_foreach(v, name, member)
    {
        size_t i = 0;

        while (i < table->n && strcmp(name, table->row[i].key) != 0) {
            i++;
        }
        if (i == table->n) {
            return record_refuse(j, at, "unknown field \"%.60s\"", name);
        }
    }
    return record_refuse(j, at, "unknown field");
}

static bool check_length(struct record_json *j, struct record_field at,
                         const json_t *v, uint64_t least, uint64_t most)
{
    const size_t n = json_array_size(v);

    if (!json_is_array(v)) {
        return record_refuse(j, at, "an array was expected");
    }
    if (n < least || n > most) {
        return record_refuse(j, at, "%zu elements, %zu to %zu expected", n,
                             (size_t)least, (size_t)most);
    }
    return true;
}

static bool take_columns(struct record_json *j, struct record_field at,
                         const json_t *v, const struct record_table *table,
                         json_t **value)
{
    if (!check_length(j, at, v, table->n, table->n)) {
        return false;
    }
    for (size_t i = 0; i < table->n; i++) {
        value[i] = json_array_get(v, i);
    }
    return true;
}

bool record_read_fields(struct record_json *j, struct record_field at,
                        json_t *v, const struct record_table *table, void *base)
{
    json_t *value[RECORD_MAX_ROWS];

    if (!(table->tuple ? take_columns(j, at, v, table, value)
                       : take_members(j, at, v, table, value))) {
        return false;
    }
    for (size_t i = 0; i < table->n; i++) {
        const struct record_row *const row = &table->row[i];
        const struct record_field place =
            !table->prefix ? at
                           : (struct record_field){row->key, -1, table->prefix};

        /* As many were taken as there are rows.
         * NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult) */
        if (value[i] && !(row->null && json_is_null(value[i])) &&
            !row->type->read(j, place, value[i], row, base)) {
            return false;
        }
    }
    j->at = at;
    return !table->check || table->check(j, base);
}

bool record_read_root(struct record_json *j, json_t *root,
                      const struct record_table *table, void *base)
{
    const struct record_row *const first = &table->row[0];

    /* Before all other fields, because another version may have others. */
    return (first->type != &record_version ||
            first->type->read(j, record_field(first->key),
                              json_object_get(root, first->key), first,
                              base)) &&
           record_read_fields(j, record_field("the file"), root, table, base);
}

int record_parse(const char *text, size_t bytes, const char *file,
                 const struct record_table *table, void *context, void *out,
                 struct fsdp_error *error)
{
    struct record_json j = {.file = file, .error = error, .context = context};
    json_t *const root = record_json_load(&j, text, bytes);

    if (root) {
        (void)record_read_root(&j, root, table, out);
    }
    json_decref(root);
    return j.status;
}

/* Writes "key": value for each field, one behind the other. */
static void record_write_members(struct record_text *t,
                                 const struct record_table *table,
                                 const void *base)
{
    for (size_t i = 0; i < table->n; i++) {
        const struct record_row *const row = &table->row[i];

        if (row->absent && row->absent(base)) {
            continue;
        }
        if (i > 0) {
            record_text_add(t, table->line ? "," : ", ");
        }
        if (table->line) {
            record_text_add(t, "%s", table->line);
        }
        if (!table->tuple) {
            record_text_add(t, "\"%s\": ", row->key);
        }
        (row->write ? row->write : row->type->write)(t, row, base);
    }
}

void record_write_fields(struct record_text *t,
                         const struct record_table *table, const void *base)
{
    record_text_add(t, table->tuple ? "[" : "{");
    record_write_members(t, table, base);
    record_text_add(t, table->tuple ? "]" : "}");
}

int record_save(const struct record_table *table, const void *base,
                const char *path, struct fsdp_error *error)
{
    struct record_text t = {0};

    record_text_add(&t, "{");
    record_write_members(&t, table, base);
    record_text_add(&t, "\n}\n");
    return record_text_save(&t, path, error);
}

/* ---- Objects and lists as values ---- */

static bool read_object(struct record_json *j, struct record_field at,
                        json_t *v, const struct record_row *row, void *base)
{
    return record_read_fields(j, at, v, row->table, record_at(row, base));
}

static void write_object(struct record_text *t, const struct record_row *row,
                         const void *base)
{
    record_write_fields(t, row->table, record_at(row, base));
}

const struct record_type record_object = {read_object, write_object};

static size_t element_size(const struct record_row *row)
{
    return row->each ? row->each->room : row->table->size;
}

static bool read_element(struct record_json *j, struct record_field at,
                         json_t *v, const struct record_row *row, void *to)
{
    return row->each ? row->each->type->read(j, at, v, row->each, to)
                     : record_read_fields(j, at, v, row->table, to);
}

/* A refusal of an element in a list of lists names the index in the outer
 * list. */
static bool read_elements(struct record_json *j, struct record_field at,
                          const json_t *v, const struct record_row *row,
                          void *to)
{
    const size_t n = json_array_size(v);

    for (size_t i = 0; i < n; i++) {
        const struct record_field place =
            at.index >= 0
                ? at
                : (struct record_field){at.name, (int64_t)i, at.prefix};

        if (!read_element(j, place, json_array_get(v, i), row,
                          (char *)to + i * element_size(row))) {
            return false;
        }
    }
    return true;
}

static bool check_list(struct record_json *j, struct record_field at,
                       const json_t *v, const struct record_row *row)
{
    uint64_t least = row->least;
    uint64_t most = row->most != 0 ? row->most : UINT32_MAX;

    if (row->bounds) {
        row->bounds(j, &least, &most);
    }
    return check_length(j, at, v, least, most);
}

static void set_count(const struct record_row *row, void *base, const json_t *v)
{
    const uint32_t n = (uint32_t)json_array_size(v);

    memcpy((char *)base + row->count, &n, sizeof(n));
}

static bool read_list(struct record_json *j, struct record_field at, json_t *v,
                      const struct record_row *row, void *base)
{
    void *room;

    if (!check_list(j, at, v, row)) {
        return false;
    }
    room = record_json_room(j, json_array_size(v), element_size(row));
    if (!room) {
        return false;
    }
    memcpy(record_at(row, base), &room, sizeof(room));
    set_count(row, base, v);
    return read_elements(j, at, v, row, room);
}

static bool read_short_list(struct record_json *j, struct record_field at,
                            json_t *v, const struct record_row *row, void *base)
{
    if (!check_list(j, at, v, row)) {
        return false;
    }
    set_count(row, base, v);
    return read_elements(j, at, v, row, record_at(row, base));
}

static bool read_array(struct record_json *j, struct record_field at, json_t *v,
                       const struct record_row *row, void *base)
{
    char *const to = record_at(row, base);

    if (!check_length(j, at, v, row->least > 0 ? row->least : row->most,
                      row->most)) {
        return false;
    }
    for (size_t i = 0; i < json_array_size(v); i++) {
        if (!read_element(j, at, json_array_get(v, i), row,
                          to + i * element_size(row))) {
            return false;
        }
    }
    return true;
}

static void write_elements(struct record_text *t, const struct record_row *row,
                           const void *from, uint64_t n)
{
    const void *at;

    record_text_add(t, "[");
    for (uint64_t i = 0; i < n; i++) {
        if (i > 0) {
            record_text_add(t, row->line ? "," : ", ");
        }
        if (row->line && (i > 0 || !row->hangs)) {
            record_text_add(t, "%s", row->line);
        }
        at = (const char *)from + i * element_size(row);
        if (row->each) {
            row->each->type->write(t, row->each, at);
        } else {
            record_write_fields(t, row->table, at);
        }
    }
    record_text_add(t, "]");
}

static uint32_t count_of(const struct record_row *row, const void *base)
{
    uint32_t n;

    memcpy(&n, (const char *)base + row->count, sizeof(n));
    return n;
}

static void write_list(struct record_text *t, const struct record_row *row,
                       const void *base)
{
    const void *from;

    memcpy(&from, record_at(row, base), sizeof(from));
    write_elements(t, row, from, count_of(row, base));
}

static void write_short_list(struct record_text *t,
                             const struct record_row *row, const void *base)
{
    write_elements(t, row, record_at(row, base), count_of(row, base));
}

static bool is_zero(const char *p, size_t bytes)
{
    while (bytes > 0 && p[bytes - 1] == 0) {
        bytes--;
    }
    return bytes == 0;
}

static void write_array(struct record_text *t, const struct record_row *row,
                        const void *base)
{
    const char *const from = record_at(row, base);
    const size_t size = element_size(row);
    uint64_t n = row->most;

    while (row->least > 0 && n > row->least &&
           is_zero(from + (n - 1) * size, size)) {
        n--;
    }
    write_elements(t, row, from, n);
}

const struct record_type record_list = {read_list, write_list};
const struct record_type record_short_list = {read_short_list,
                                              write_short_list};
const struct record_type record_array = {read_array, write_array};
