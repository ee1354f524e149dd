/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_text.c - the JSON of records as it is written: by hand, since a
 * record is read by people too, and wants one line an entry.
 */
#include "record/record_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool make_room(struct record_text *t, size_t more)
{
    size_t room = t->room != 0 ? t->room : 4096;
    char *text;

    if (t->failed) {
        return false;
    }
    while (room - t->length < more) {
        room *= 2;
    }
    if (room != t->room) {
        text = realloc(t->text, room);
        if (!text) {
            t->failed = true;
            return false;
        }
        t->text = text;
        t->room = room;
    }
    return true;
}

void record_text_add(struct record_text *t, const char *format, ...)
{
    va_list arguments;
    int n;

    for (size_t guess = 128; make_room(t, guess); guess = (size_t)n + 1) {
        va_start(arguments, format);
        n = vsnprintf(t->text + t->length, guess, format, arguments);
        va_end(arguments);
        if (n < 0) {
            t->failed = true;
            return;
        }
        if ((size_t)n < guess) {
            t->length += (size_t)n;
            return;
        }
    }
}

/* Bytes of the UTF-8 sequence at s, of which `left` may be looked at; 0: it is
 * none. (Table 3-7 of the Unicode standard.) */
static size_t utf8_bytes(const unsigned char *s, size_t left)
{
    size_t n = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

    if (n == 1) {
        return 1;
    }
    if (s[0] < 0xc2 || s[0] > 0xf4 || n > left) {
        return 0;
    }
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f)) {
        return 0;
    }
    return n;
}

/* Bytes of the character at s; 0: it is none, or one that nobody prints. */
static size_t printable_bytes(const unsigned char *s, size_t left)
{
    return s[0] < 0x20 || s[0] == 0x7f ? 0 : utf8_bytes(s, left);
}

bool record_is_text(const char *s, size_t most)
{
    const unsigned char *const p = (const unsigned char *)s;
    const size_t length = strnlen(s, most);
    size_t n = 1;

    for (size_t i = 0; i < length && n > 0; i += n) {
        n = printable_bytes(p + i, length - i);
    }
    return length > 0 && length < most && n > 0;
}

void record_text_string(struct record_text *t, const char *s, size_t most)
{
    const unsigned char *const p = (const unsigned char *)s;
    const size_t length = strnlen(s, most);
    size_t n;

    record_text_add(t, "\"");
    for (size_t i = 0; i < length; i += n) {
        n = printable_bytes(p + i, length - i);
        if (n == 0) {
            n = 1;
            record_text_add(t, "?");
        } else if (p[i] == '"' || p[i] == '\\') {
            record_text_add(t, "\\%c", p[i]);
        } else {
            record_text_add(t, "%.*s", (int)n, s + i);
        }
    }
    record_text_add(t, "\"");
}

void record_text_name(struct record_text *t, const char *name, uint32_t value)
{
    if (name) {
        record_text_add(t, "\"%s\"", name);
    } else {
        record_text_add(t, "%u", value);
    }
}

static int write_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        const ssize_t done = write(fd, p, n);

        if (done < 0 && errno != EINTR) {
            return -1;
        }
        if (done > 0) {
            p += done;
            n -= (size_t)done;
        }
    }
    return 0;
}

/* Not synchronised: after a power cut a suite is run again. */
static int save(const struct record_text *t, const char *path)
{
    char partial[RECORD_PATH_BYTES + sizeof(".partial")];
    int fd;
    int status;

    (void)snprintf(partial, sizeof(partial), "%s.partial", path);
    fd = open(partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) {
        return -1;
    }
    status = write_all(fd, t->text, t->length);
    if (close(fd) != 0) {
        status = -1;
    }
    if (status == 0) {
        status = rename(partial, path);
    }
    if (status != 0) {
        const int why = errno;

        (void)unlink(partial);
        errno = why;
    }
    return status;
}

int record_text_save(struct record_text *t, const char *path,
                     struct fsdp_error *error)
{
    int status = FSDP_OK;

    if (t->failed) {
        status = record_fail(error, FSDP_ERR_NOMEM, RECORD_WRITE_WHERE,
                             "%.150s: out of memory", path);
    } else if (save(t, path) != 0) {
        status = record_fail(error, FSDP_ERR_IO, RECORD_WRITE_WHERE,
                             "%.150s: %s", path, strerror(errno));
    }
    free(t->text);
    memset(t, 0, sizeof(*t));
    return status;
}
