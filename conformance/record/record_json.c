/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_json.c - a strict look at JSON: a value is of the type and in the
 * range that is asked for, or the file is refused with a sentence that says
 * where. Nothing is converted silently.
 */
#include "record/record_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
