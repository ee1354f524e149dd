/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_json.c - a strict look at JSON: a value is of the type and in the
 * range that is asked for, or the file is refused with a sentence that says
 * where. Nothing is converted silently.
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
    return (struct record_field){name, -1};
}

struct record_field record_element(const char *name, size_t index)
{
    return (struct record_field){name, (int64_t)index};
}

bool record_refuse(struct record_json *j, struct record_field at,
                   const char *format, ...)
{
    const size_t length = strlen(j->file);
    /* Of a long path the end says more. */
    const char *const file = length > 80 ? j->file + length - 80 : j->file;
    char index[24] = "";
    char what[120];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    if (at.index >= 0) {
        (void)snprintf(index, sizeof(index), "[%" PRId64 "]", at.index);
    }
    if (j->status == FSDP_OK) {
        j->status = FSDP_ERR_FORMAT;
        (void)record_fail(j->error, FSDP_ERR_FORMAT, "record_read",
                          "%s: %.40s%s: %s", file, at.name, index, what);
    }
    return false;
}

json_t *record_json_load(struct record_json *j, const char *text, size_t bytes)
{
    json_error_t error;
    json_t *const root =
        json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);

    if (root == NULL) {
        if (json_error_code(&error) == json_error_out_of_memory) {
            j->status = record_fail(j->error, FSDP_ERR_NOMEM, "record_read",
                                    "%.150s: out of memory", j->file);
        } else {
            char where[32];

            (void)snprintf(where, sizeof(where), "line %d", error.line);
            (void)record_refuse(j, record_field(where), "%s", error.text);
        }
    }
    return root;
}

void *record_json_room(struct record_json *j, size_t n, size_t bytes)
{
    void *const p = calloc(n + (n == 0), bytes);

    if (p == NULL) {
        j->status = record_fail(j->error, FSDP_ERR_NOMEM, "record_read",
                                "%.150s: out of memory", j->file);
    }
    return p;
}

bool record_json_version(struct record_json *j, const json_t *root,
                         uint32_t known)
{
    const json_t *const v = json_object_get(root, "version");
    uint32_t version = 0;

    if (v == NULL) {
        return record_refuse(j, record_field("version"),
                             "an object with this field was expected");
    }
    if (!record_json_u32(j, record_field("version"), v, UINT32_MAX, &version)) {
        return false;
    }
    return version == known ||
           record_refuse(j, record_field("version"), "%u; this reader knows %u",
                         version, known);
}

bool record_json_object(struct record_json *j, struct record_field at,
                        json_t *v, const char *const *key, size_t n,
                        json_t **value)
{
    const char *name;
    json_t *member;

    if (!json_is_object(v)) {
        return record_refuse(j, at, "an object was expected");
    }
    for (size_t i = 0; i < n; i++) {
        value[i] = json_object_get(v, key[i]);
        if (value[i] == NULL) {
            return record_refuse(j, at, "field \"%s\" is missing", key[i]);
        }
    }
    if (json_object_size(v) == n) {
        return true;
    }
    json_object_foreach(v, name, member)
    {
        size_t i = 0;

        while (i < n && strcmp(name, key[i]) != 0) {
            i++;
        }
        if (i == n) {
            return record_refuse(j, at, "unknown field \"%.60s\"", name);
        }
    }
    return record_refuse(j, at, "unknown field");
}

bool record_json_array(struct record_json *j, struct record_field at,
                       const json_t *v, size_t least, size_t most)
{
    const size_t n = json_array_size(v);

    if (!json_is_array(v)) {
        return record_refuse(j, at, "an array was expected");
    }
    if (n < least || n > most) {
        return record_refuse(j, at, "%zu elements, %zu to %zu expected", n,
                             least, most);
    }
    return true;
}

bool record_json_u64(struct record_json *j, struct record_field at,
                     const json_t *v, uint64_t *out)
{
    const char *const text = json_string_value(v);
    char again[24];

    if (text != NULL) {
        *out = strtoull(text, NULL, 10);
        (void)snprintf(again, sizeof(again), "%" PRIu64, *out);
        if (*out > RECORD_MAX_EXACT && strcmp(text, again) == 0) {
            return true;
        }
    } else if (json_is_integer(v) && json_integer_value(v) >= 0 &&
               (uint64_t)json_integer_value(v) <= RECORD_MAX_EXACT) {
        *out = (uint64_t)json_integer_value(v);
        return true;
    }
    return record_refuse(j, at,
                         "a number from 0 to 2^53, or above it as a "
                         "string, was expected");
}

bool record_json_u32(struct record_json *j, struct record_field at,
                     const json_t *v, uint32_t most, uint32_t *out)
{
    if (!json_is_integer(v) || json_integer_value(v) < 0 ||
        json_integer_value(v) > (json_int_t)most) {
        return record_refuse(j, at, "a number from 0 to %u was expected", most);
    }
    *out = (uint32_t)json_integer_value(v);
    return true;
}

bool record_json_i32(struct record_json *j, struct record_field at,
                     const json_t *v, int32_t *out)
{
    if (!json_is_integer(v) || json_integer_value(v) < INT32_MIN ||
        json_integer_value(v) > INT32_MAX) {
        return record_refuse(j, at, "a 32-bit number was expected");
    }
    *out = (int32_t)json_integer_value(v);
    return true;
}

bool record_json_flag(struct record_json *j, struct record_field at,
                      const json_t *v, uint32_t *out)
{
    if (!json_is_boolean(v)) {
        return record_refuse(j, at, "true or false was expected");
    }
    *out = json_is_true(v) ? 1 : 0;
    return true;
}

bool record_json_text(struct record_json *j, struct record_field at,
                      const json_t *v, char *out, size_t room)
{
    const char *const text = json_string_value(v);

    if (text == NULL) {
        return record_refuse(j, at, "a string was expected");
    }
    if (json_string_length(v) >= room) {
        return record_refuse(j, at,
                             "a string of fewer than %zu bytes was "
                             "expected",
                             room);
    }
    for (const char *p = text; *p != '\0'; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7f) {
            return record_refuse(j, at, "a control character in a string");
        }
    }
    memset(out, 0, room);
    memcpy(out, text, json_string_length(v));
    return true;
}

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

bool record_json_real(struct record_json *j, struct record_field at,
                      const json_t *v, float *out)
{
    return round_number(v, out) ||
           record_refuse(j, at, "a number was expected");
}

/* Whether the decimal says the same as the float, the sign of 0 too. */
static bool agrees(const json_t *decimal, float x)
{
    const char *const text = json_string_value(decimal);
    float y;

    if (text != NULL) {
        return isnan(x)   ? strcmp(text, "nan") == 0
               : isinf(x) ? strcmp(text, x < 0.0f ? "-inf" : "inf") == 0
                          : false;
    }
    return round_number(decimal, &y) && x == y && !signbit(x) == !signbit(y);
}

bool record_json_float(struct record_json *j, struct record_field at,
                       const json_t *v, float *out)
{
    const char *text;
    char again[16];
    uint32_t bits;

    if (!json_is_array(v) || json_array_size(v) != 2 ||
        (text = json_string_value(json_array_get(v, 1))) == NULL) {
        return record_refuse(j, at, "[decimal, \"0xbits\"] was expected");
    }
    bits = (uint32_t)strtoul(text, NULL, 16);
    (void)snprintf(again, sizeof(again), "0x%08" PRIx32, bits);
    if (strcmp(text, again) != 0) {
        return record_refuse(j, at, "bits are 0x and 8 digits of 0-9a-f");
    }
    memcpy(out, &bits, sizeof(*out));
    if (!agrees(json_array_get(v, 0), *out)) {
        return record_refuse(j, at, "the decimal is not that of bits %s", text);
    }
    return true;
}

bool record_json_name(struct record_json *j, struct record_field at,
                      const json_t *v, const char *(*name)(uint32_t),
                      bool numbers, uint32_t *out)
{
    /* Names are given to small values, and to the largest one. */
    const uint32_t last = 64;
    const char *const text = json_string_value(v);

    if (text != NULL) {
        for (uint32_t i = 0; i <= last; i++) {
            const uint32_t value = i < last ? i : UINT32_MAX;

            if (name(value) != NULL && strcmp(name(value), text) == 0) {
                *out = value;
                return true;
            }
        }
        return record_refuse(j, at, "\"%.40s\" is not in its list", text);
    }
    if (!numbers) {
        return record_refuse(j, at, "a name was expected");
    }
    if (!record_json_u32(j, at, v, UINT32_MAX, out)) {
        return false;
    }
    return name(*out) == NULL ||
           record_refuse(j, at, "%u is spelled \"%s\"", *out, name(*out));
}
