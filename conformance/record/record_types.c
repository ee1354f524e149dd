/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_types.c - single values of JSON: each is of the type and in the range
 * that its row asks for, or the file is refused.
 */
#include "record/record_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct record_field record_field(const char *name)
{
    return (struct record_field){name, -1, NULL};
}

struct record_field record_element(const char *name, size_t index)
{
    return (struct record_field){name, (int64_t)index, NULL};
}

bool record_refuse(struct record_json *j, struct record_field at,
                   const char *format, ...)
{
    const size_t length = strlen(j->file);
    /* The end of a long path says more than its beginning. */
    const char *const file = length > 80 ? j->file + length - 80 : j->file;
    char name[64];
    char index[24] = "";
    char what[120];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    snprintf(name, sizeof(name), "%s%s", at.prefix ? at.prefix : "", at.name);
    if (at.index >= 0) {
        snprintf(index, sizeof(index), "[%" PRId64 "]", at.index);
    }
    if (j->status == FSDP_OK) {
        j->status = FSDP_ERR_FORMAT;
        (void)record_fail(j->error, FSDP_ERR_FORMAT, "record_read",
                          "%s: %.40s%s: %s", file, name, index, what);
    }
    return false;
}

json_t *record_json_load(struct record_json *j, const char *text, size_t bytes)
{
    json_error_t error;
    json_t *const root =
        json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);

    if (!root) {
        if (json_error_code(&error) == json_error_out_of_memory) {
            j->status = record_fail(j->error, FSDP_ERR_NOMEM, "record_read",
                                    "%.150s: out of memory", j->file);
        } else {
            char where[32];

            snprintf(where, sizeof(where), "line %d", error.line);
            (void)record_refuse(j, record_field(where), "%s", error.text);
        }
    }
    return root;
}

void *record_json_room(struct record_json *j, size_t n, size_t bytes)
{
    void *const p = calloc(n + (n == 0), bytes);

    if (!p) {
        j->status = record_fail(j->error, FSDP_ERR_NOMEM, "record_read",
                                "%.150s: out of memory", j->file);
    }
    return p;
}

static bool read_u32(struct record_json *j, struct record_field at, json_t *v,
                     const struct record_row *row, void *base)
{
    uint64_t least = row->least;
    uint64_t most = row->most != 0 ? row->most : UINT32_MAX;

    if (row->bounds) {
        row->bounds(j, &least, &most);
    }
    if (!json_is_integer(v) || json_integer_value(v) < (json_int_t)least ||
        json_integer_value(v) > (json_int_t)most) {
        return record_refuse(j, at, "a number from %u to %u was expected",
                             (unsigned)least, (unsigned)most);
    }
    *(uint32_t *)record_at(row, base) = (uint32_t)json_integer_value(v);
    return true;
}

static void write_u32(struct record_text *t, const struct record_row *row,
                      const void *base)
{
    record_text_add(t, "%u", *(const uint32_t *)record_at(row, base));
}

const struct record_type record_u32 = {read_u32, write_u32};

static bool read_version(struct record_json *j, struct record_field at,
                         json_t *v, const struct record_row *row, void *base)
{
    static const struct record_row number = {.type = &record_u32};
    uint32_t version = 0;

    (void)base;
    if (!v) {
        return record_refuse(j, at, "an object with this field was expected");
    }
    if (!read_u32(j, at, v, &number, &version)) {
        return false;
    }
    return version == row->most ||
           record_refuse(j, at, "%u; this reader knows %u", version,
                         (unsigned)row->most);
}

static void write_version(struct record_text *t, const struct record_row *row,
                          const void *base)
{
    (void)base;
    record_text_add(t, "%u", (unsigned)row->most);
}

const struct record_type record_version = {read_version, write_version};

static bool read_u64(struct record_json *j, struct record_field at, json_t *v,
                     const struct record_row *row, void *base)
{
    uint64_t *const out = record_at(row, base);
    const char *const text = json_string_value(v);
    char again[24];

    if (text) {
        *out = strtoull(text, NULL, 10);
        snprintf(again, sizeof(again), "%" PRIu64, *out);
        if (*out > RECORD_MAX_EXACT && strcmp(text, again) == 0) {
            return true;
        }
    } else if (json_is_integer(v) && json_integer_value(v) >= 0 &&
               (uint64_t)json_integer_value(v) <= RECORD_MAX_EXACT) {
        *out = (uint64_t)json_integer_value(v);
        return row->most == 0 || *out <= row->most ||
               record_refuse(j, at, "a number from 0 to %llu was expected",
                             (unsigned long long)row->most);
    }
    return record_refuse(j, at,
                         "a number from 0 to 2^53, or above it as a "
                         "string, was expected");
}

static void write_u64(struct record_text *t, const struct record_row *row,
                      const void *base)
{
    const uint64_t x = *(const uint64_t *)record_at(row, base);

    record_text_add(t, x <= RECORD_MAX_EXACT ? "%llu" : "\"%llu\"",
                    (unsigned long long)x);
}

const struct record_type record_u64 = {read_u64, write_u64};

static bool read_i32(struct record_json *j, struct record_field at, json_t *v,
                     const struct record_row *row, void *base)
{
    if (!json_is_integer(v) || json_integer_value(v) < INT32_MIN ||
        json_integer_value(v) > INT32_MAX) {
        return record_refuse(j, at, "a 32-bit number was expected");
    }
    *(int32_t *)record_at(row, base) = (int32_t)json_integer_value(v);
    return true;
}

static void write_i32(struct record_text *t, const struct record_row *row,
                      const void *base)
{
    record_text_add(t, "%d", *(const int32_t *)record_at(row, base));
}

const struct record_type record_i32 = {read_i32, write_i32};

static bool read_ignored(struct record_json *j, struct record_field at,
                         json_t *v, const struct record_row *row, void *base)
{
    (void)j;
    (void)at;
    (void)v;
    (void)row;
    (void)base;
    return true;
}

const struct record_type record_ignored = {read_ignored, NULL};

static bool read_bool(struct record_json *j, struct record_field at, json_t *v,
                      const struct record_row *row, void *base)
{
    if (!json_is_boolean(v)) {
        return record_refuse(j, at, "true or false was expected");
    }
    *(bool *)record_at(row, base) = json_is_true(v);
    return true;
}

static void write_bool(struct record_text *t, const struct record_row *row,
                       const void *base)
{
    record_text_add(t, *(const bool *)record_at(row, base) ? "true" : "false");
}

const struct record_type record_bool = {read_bool, write_bool};

static bool read_flag(struct record_json *j, struct record_field at, json_t *v,
                      const struct record_row *row, void *base)
{
    static const struct record_row value = {.type = &record_bool};
    bool flag = false;

    if (!read_bool(j, at, v, &value, &flag)) {
        return false;
    }
    *(uint32_t *)record_at(row, base) = flag;
    return true;
}

static void write_flag(struct record_text *t, const struct record_row *row,
                       const void *base)
{
    const uint32_t flag = *(const uint32_t *)record_at(row, base);

    record_text_add(t, flag != 0 ? "true" : "false");
}

const struct record_type record_flag = {read_flag, write_flag};

static bool read_string(struct record_json *j, struct record_field at,
                        json_t *v, const struct record_row *row, void *base)
{
    const char *const text = json_string_value(v);
    char *const out = record_at(row, base);

    if (!text) {
        return record_refuse(j, at, "a string was expected");
    }
    if (json_string_length(v) >= row->room) {
        return record_refuse(j, at,
                             "a string of fewer than %zu bytes was "
                             "expected",
                             row->room);
    }
    for (const char *p = text; *p != '\0'; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7f) {
            return record_refuse(j, at, "a control character in a string");
        }
    }
    if (row->least > 0 && text[0] == '\0') {
        return record_refuse(j, at, "must not be empty");
    }
    memset(out, 0, row->room);
    memcpy(out, text, json_string_length(v));
    return true;
}

static void write_string(struct record_text *t, const struct record_row *row,
                         const void *base)
{
    record_text_string(t, record_at(row, base), row->room - 1);
}

const struct record_type record_string = {read_string, write_string};

static bool read_sha256(struct record_json *j, struct record_field at,
                        json_t *v, const struct record_row *row, void *base)
{
    const char *const hex = record_at(row, base);

    return read_string(j, at, v, row, base) &&
           ((strlen(hex) == 64 && strspn(hex, "0123456789abcdef") == 64) ||
            record_refuse(j, at, "64 digits of 0-9a-f were expected"));
}

const struct record_type record_sha256 = {read_sha256, write_string};

/* The float32 that a number rounds to; false: it is none, or too large. */
static bool round_number(const json_t *v, float *out)
{
    const double x = json_number_value(v);

    if (!json_is_number(v) || !(fabs(x) < 0x1.ffffffp127)) {
        return false;
    }
    *out = (float)x;
    return true;
}

static bool read_real(struct record_json *j, struct record_field at, json_t *v,
                      const struct record_row *row, void *base)
{
    return round_number(v, record_at(row, base)) ||
           record_refuse(j, at, "a number was expected");
}

static void write_real(struct record_text *t, const struct record_row *row,
                       const void *base)
{
    char text[CASE_FLOAT_BYTES];

    case_float_text(*(const float *)record_at(row, base), text);
    record_text_add(t, "%s", text);
}

const struct record_type record_real = {read_real, write_real};

static bool read_double(struct record_json *j, struct record_field at,
                        json_t *v, const struct record_row *row, void *base)
{
    double *const out = record_at(row, base);

    *out = json_number_value(v);
    return (json_is_number(v) && isfinite(*out)) ||
           record_refuse(j, at, "a number was expected");
}

const struct record_type record_double = {read_double, NULL};

/* Whether the decimal has the value of the float, with the sign of a 0. */
static bool agrees(const json_t *decimal, float x)
{
    const char *const text = json_string_value(decimal);
    float y;

    if (text) {
        return isnan(x)   ? strcmp(text, "nan") == 0
               : isinf(x) ? strcmp(text, x < 0.0f ? "-inf" : "inf") == 0
                          : false;
    }
    return round_number(decimal, &y) && x == y && !signbit(x) == !signbit(y);
}

static bool read_float(struct record_json *j, struct record_field at, json_t *v,
                       const struct record_row *row, void *base)
{
    float *const out = record_at(row, base);
    const char *text;
    char again[16];
    uint32_t bits;

    if (!json_is_array(v) || json_array_size(v) != 2 ||
        !(text = json_string_value(json_array_get(v, 1)))) {
        return record_refuse(j, at, "[decimal, \"0xbits\"] was expected");
    }
    bits = (uint32_t)strtoul(text, NULL, 16);
    snprintf(again, sizeof(again), "0x%08" PRIx32, bits);
    if (strcmp(text, again) != 0) {
        return record_refuse(j, at, "bits are 0x and 8 digits of 0-9a-f");
    }
    memcpy(out, &bits, sizeof(*out));
    if (!agrees(json_array_get(v, 0), *out)) {
        return record_refuse(j, at, "the decimal is not that of bits %s", text);
    }
    return true;
}

static void write_float(struct record_text *t, const struct record_row *row,
                        const void *base)
{
    const float x = *(const float *)record_at(row, base);
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    if (isnan(x)) {
        record_text_add(t, "[\"nan\", \"0x%08x\"]", bits);
    } else if (isinf(x)) {
        record_text_add(t, "[\"%s\", \"0x%08x\"]", x < 0.0f ? "-inf" : "inf",
                        bits);
    } else if (bits == 0x80000000u) {
        /* JSON reads -0 as an integer, which has no sign. */
        record_text_add(t, "[-0.0, \"0x80000000\"]");
    } else {
        record_text_add(t, "[%.9g, \"0x%08x\"]", (double)x, bits);
    }
}

const struct record_type record_float = {read_float, write_float};

static bool read_named(struct record_json *j, struct record_field at,
                       const char *text, const struct record_row *row,
                       void *base)
{
    /* Only small values, and the largest one, have names. */
    const uint32_t last = 64;

    for (uint32_t i = 0; i <= last; i++) {
        const uint32_t value = i < last ? i : UINT32_MAX;

        if (row->name(value) && strcmp(row->name(value), text) == 0) {
            *(uint32_t *)record_at(row, base) = value;
            return true;
        }
    }
    return record_refuse(j, at, "\"%.40s\" is not in its list", text);
}

static bool read_name(struct record_json *j, struct record_field at, json_t *v,
                      const struct record_row *row, void *base)
{
    return json_is_string(v)
               ? read_named(j, at, json_string_value(v), row, base)
               : record_refuse(j, at, "a name was expected");
}

static void write_name(struct record_text *t, const struct record_row *row,
                       const void *base)
{
    const uint32_t value = *(const uint32_t *)record_at(row, base);

    record_text_name(t, row->name(value), value);
}

const struct record_type record_name = {read_name, write_name};

static bool read_name_or_number(struct record_json *j, struct record_field at,
                                json_t *v, const struct record_row *row,
                                void *base)
{
    const uint32_t *const out = record_at(row, base);

    if (json_is_string(v)) {
        return read_named(j, at, json_string_value(v), row, base);
    }
    return read_u32(j, at, v, row, base) &&
           (!row->name(*out) || record_refuse(j, at, "%u is spelled \"%s\"",
                                              *out, row->name(*out)));
}

const struct record_type record_name_or_number = {read_name_or_number,
                                                  write_name};

static bool read_seconds(struct record_json *j, struct record_field at,
                         json_t *v, const struct record_row *row, void *base)
{
    if (!json_is_number(v) || !(json_number_value(v) >= 0.0)) {
        return record_refuse(j, at, "a number from 0 was expected");
    }
    *(double *)record_at(row, base) = json_number_value(v);
    return true;
}

static void write_seconds(struct record_text *t, const struct record_row *row,
                          const void *base)
{
    const double x = *(const double *)record_at(row, base);

    record_text_add(t, "%.17g", isfinite(x) && x > 0.0 ? x : 0.0);
}

const struct record_type record_seconds = {read_seconds, write_seconds};
