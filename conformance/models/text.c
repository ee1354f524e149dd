/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.c - the built-in text is part of the program, so that no path has to
 * be found at run time.
 */
#include "models/text.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__asm__(".section .rodata\n"
        ".global fsdp_cts_text\n"
        "fsdp_cts_text:\n"
        ".incbin \"" FSDP_TEXT_FILE "\"\n"
        ".global fsdp_cts_text_end\n"
        "fsdp_cts_text_end:\n"
        ".byte 0\n"
        ".previous\n");

extern const char fsdp_cts_text[];
extern const char fsdp_cts_text_end[];

enum {
    TEXT_LEAST = 1024,
    TEXT_MOST = 1 << 28
};

static int refuse_text(struct fsdp_error *error, int status, const char *path,
                       const char *why)
{
    error->status = status;
    snprintf(error->message, sizeof(error->message), "text %.120s: %s", path,
             why);
    return status;
}

static int read_all(FILE *f, const char *path, struct text *out,
                    struct fsdp_error *error)
{
    size_t capacity = 1 << 16;
    size_t n = 0;
    char *bytes = malloc(capacity);

    while (bytes) {
        char *grown;
        n += fread(bytes + n, 1, capacity - n, f);
        if (n < capacity) {
            break;
        }
        grown = n < TEXT_MOST ? realloc(bytes, 2 * capacity) : NULL;
        if (!grown) {
            free(bytes);
        }
        bytes = grown;
        capacity *= 2;
    }
    if (!bytes) {
        return refuse_text(error, FSDP_ERR_NOMEM, path, "is too large");
    }
    if (ferror(f) || n < TEXT_LEAST) {
        bool failed = ferror(f) != 0;
        int why = errno;
        free(bytes);
        return failed
                   ? refuse_text(error, FSDP_ERR_IO, path, strerror(why))
                   : refuse_text(error, FSDP_ERR_INVALID, path,
                                 "is too short: gpt needs 1024 bytes or more");
    }
    *out = (struct text){bytes, n, bytes};
    return FSDP_OK;
}

int text_load(const char *path, struct text *out, struct fsdp_error *error)
{
    FILE *f;
    int status;

    *out = (struct text){fsdp_cts_text,
                         (uint64_t)(fsdp_cts_text_end - fsdp_cts_text), NULL};
    if (!path) {
        return FSDP_OK;
    }
    f = fopen(path, "rbe");
    if (!f) {
        return refuse_text(error, FSDP_ERR_IO, path, strerror(errno));
    }
    status = read_all(f, path, out, error);
    fclose(f);
    return status;
}

void text_release(struct text *text)
{
    free(text->owned);
    text->owned = NULL;
}
