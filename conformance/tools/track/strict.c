/* SPDX-License-Identifier: Apache-2.0 */
/* strict.c - a strict look at JSON, and at files. */
#include "tools/track/strict.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int track_fail(struct fsdp_error *error, int status, const char *format, ...)
{
    if (error != NULL && error->status == FSDP_OK) {
        va_list arguments;

        error->status = status;
        (void)snprintf(error->where, sizeof(error->where), "track");
        va_start(arguments, format);
        (void)vsnprintf(error->message, sizeof(error->message), format,
                        arguments);
        va_end(arguments);
        for (char *c = error->message; *c != '\0'; c++) {
            if ((unsigned char)*c < 0x20 || *c == 0x7f) {
                *c = '?'; /* one line, whatever a file had in it */
            }
        }
    }
    return status;
}

int strict_refuse(const struct strict *s, const char *name, const char *format,
                  ...)
{
    const size_t length = strlen(s->file);
    const char *file = length > 70 ? s->file + length - 70 : s->file;
    char line[24] = "";
    char what[100];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    if (s->line > 0) {
        (void)snprintf(line, sizeof(line), ":%u", s->line);
    }
    return track_fail(s->error, FSDP_ERR_FORMAT, "%s%s: %.40s: %s", file, line,
                      name, what);
}

int strict_load(const struct strict *s, const char *text, size_t bytes,
                json_t **out)
{
    json_error_t error;

    *out = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    if (*out != NULL) {
        return FSDP_OK;
    }
    if (json_error_code(&error) == json_error_out_of_memory) {
        return track_fail(s->error, FSDP_ERR_NOMEM, "out of memory");
    }
    return strict_refuse(s, "no JSON", "%.90s", error.text);
}

static bool is_key(const char *const *keys, const char *name)
{
    for (; *keys != NULL; keys++) {
        if (strcmp(*keys + (**keys == '?' ? 1 : 0), name) == 0) {
            return true;
        }
    }
    return false;
}

int strict_object(const struct strict *s, const char *name, json_t *v,
                  const char *const *keys, json_t **value)
{
    const char *key;
    json_t *member;

    if (!json_is_object(v)) {
        return strict_refuse(s, name, "an object was expected");
    }
    for (size_t i = 0; keys[i] != NULL; i++) {
        bool may_lack = keys[i][0] == '?';

        value[i] = json_object_get(v, keys[i] + (may_lack ? 1 : 0));
        if (value[i] == NULL && !may_lack) {
            return strict_refuse(s, name, "\"%s\" is missing", keys[i]);
        }
    }
    json_object_foreach(v, key, member)
    {
        if (!is_key(keys, key)) {
            return strict_refuse(s, name, "\"%.40s\" is unknown", key);
        }
    }
    return FSDP_OK;
}

int strict_array(const struct strict *s, const char *name, const json_t *v,
                 size_t least, size_t most)
{
    if (!json_is_array(v)) {
        return strict_refuse(s, name, "an array was expected");
    }
    if (json_array_size(v) < least || json_array_size(v) > most) {
        return strict_refuse(s, name, "%zu elements, %zu to %zu were expected",
                             json_array_size(v), least, most);
    }
    return FSDP_OK;
}

int strict_text(const struct strict *s, const char *name, const json_t *v,
                char *out, size_t room)
{
    const char *text = json_string_value(v);

    if (text == NULL) {
        return strict_refuse(s, name, "a string was expected");
    }
    if (json_string_length(v) >= room || strlen(text) >= room) {
        return strict_refuse(s, name, "fewer than %zu bytes were expected",
                             room);
    }
    for (const char *c = text; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            return strict_refuse(s, name, "a control character in it");
        }
    }
    if (strlen(text) != json_string_length(v)) {
        return strict_refuse(s, name, "a control character in it");
    }
    memcpy(out, text, strlen(text) + 1);
    return FSDP_OK;
}

/* Digits without a sign or leading zeros, above 2^53. */
static bool large_number(const char *text, uint64_t *out)
{
    uint64_t x = 0;

    if (text == NULL || *text < '1' || *text > '9') {
        return false;
    }
    for (; *text >= '0' && *text <= '9'; text++) {
        uint64_t digit = (uint64_t)(*text - '0');

        if (x > (UINT64_MAX - digit) / 10) {
            return false;
        }
        x = 10 * x + digit;
    }
    *out = x;
    return *text == '\0' && x > UINT64_C(1) << 53;
}

int strict_count(const struct strict *s, const char *name, const json_t *v,
                 uint64_t most, uint64_t *out)
{
    bool ok = large_number(json_string_value(v), out);

    if (json_is_integer(v) && json_integer_value(v) >= 0 &&
        (uint64_t)json_integer_value(v) <= UINT64_C(1) << 53) {
        *out = (uint64_t)json_integer_value(v);
        ok = true;
    }
    return ok && *out <= most
               ? FSDP_OK
               : strict_refuse(s, name,
                               "a whole number from 0 to %llu was expected",
                               (unsigned long long)most);
}

int strict_number(const struct strict *s, const char *name, const json_t *v,
                  double *out)
{
    *out = json_number_value(v);
    return json_is_number(v) && isfinite(*out)
               ? FSDP_OK
               : strict_refuse(s, name, "a number was expected");
}

static int read_all(int f, char *text, size_t bytes, size_t *got)
{
    *got = 0;
    while (*got < bytes) {
        ssize_t n = read(f, text + *got, bytes - *got);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return errno;
        }
        if (n == 0) {
            break;
        }
        *got += (size_t)n;
    }
    return 0;
}

int track_read_file(const char *path, size_t most, char **out, size_t *bytes,
                    struct fsdp_error *error)
{
    struct stat s;
    int why = 0;
    int f = open(path, O_RDONLY | O_CLOEXEC);

    *out = NULL;
    if (f < 0 || fstat(f, &s) != 0) {
        why = errno;
    } else if (!S_ISREG(s.st_mode)) {
        why = S_ISDIR(s.st_mode) ? EISDIR : EINVAL;
    } else if ((uint64_t)s.st_size > most) {
        why = EFBIG;
    } else {
        *out = malloc((size_t)s.st_size + 1);
        why =
            *out != NULL ? read_all(f, *out, (size_t)s.st_size, bytes) : ENOMEM;
    }
    if (f >= 0) {
        (void)close(f);
    }
    if (why != 0 || *out == NULL) {
        free(*out);
        *out = NULL;
        return track_fail(error,
                          why == ENOMEM  ? FSDP_ERR_NOMEM
                          : why == EFBIG ? FSDP_ERR_FORMAT
                                         : FSDP_ERR_IO,
                          "cannot read %.150s: %s", path, strerror(why));
    }
    (*out)[*bytes] = '\0';
    return FSDP_OK;
}
