/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_reader.c - the words of a script's text.
 */
#include "script/script_reader.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int reader_fail(struct reader *r, const char *wanted)
{
    struct fsdp_error *e = r->error;

    e->status = FSDP_ERR_FORMAT;
    (void)snprintf(e->where, sizeof(e->where), "script");
    if (r->word[0]) {
        (void)snprintf(e->message, sizeof(e->message),
                       "line %u, action %u: '%.60s': %s", r->line,
                       r->s->n_actions, r->word, wanted);
    } else {
        (void)snprintf(e->message, sizeof(e->message),
                       "line %u, action %u ends too early: %s", r->line,
                       r->s->n_actions, wanted);
    }
    return FSDP_ERR_FORMAT;
}

void reader_skip(struct reader *r)
{
    while (*r->at == ' ' || *r->at == '\t' || *r->at == '\r') {
        r->at++;
    }
    if (*r->at == '#') {
        r->at += strcspn(r->at, "\n");
    }
}

void reader_next(struct reader *r)
{
    size_t n;

    reader_skip(r);
    n = strcspn(r->at, " \t\r\n;{}#");
    if (n >= sizeof(r->word)) {
        n = sizeof(r->word) - 1; /* no word is as long: it will be unknown */
    }
    memcpy(r->word, r->at, n);
    r->word[n] = '\0';
    r->at += n;
}

bool reader_is(const struct reader *r, const char *word)
{
    return strcmp(r->word, word) == 0;
}

bool reader_accept(struct reader *r, const char *word)
{
    bool found = reader_is(r, word);

    if (found) {
        reader_next(r);
    }
    return found;
}

uint32_t reader_which(const struct reader *r, const char *const *words,
                      uint32_t n)
{
    uint32_t i = 0;

    while (i < n && (words[i][0] == '\0' || !reader_is(r, words[i]))) {
        i++;
    }
    return i;
}

bool reader_count(const char **at, uint32_t most, uint32_t *out)
{
    uint64_t n = 0;
    const char *p = *at;

    for (; *p >= '0' && *p <= '9' && n <= most; p++) {
        n = 10 * n + (uint64_t)(*p - '0');
    }
    if (p == *at || n > most) {
        return false;
    }
    *at = p;
    *out = (uint32_t)n;
    return true;
}

int reader_take_count(struct reader *r, uint32_t least, uint32_t most,
                      const char *wanted, uint32_t *out)
{
    const char *p = r->word;

    if (!reader_count(&p, most, out) || *p != '\0' || *out < least) {
        return reader_fail(r, wanted);
    }
    reader_next(r);
    return FSDP_OK;
}

/* A float32 as case_float_text writes it, or "inf". */
static bool read_number(const char **at, float *out)
{
    char text[CASE_FLOAT_BYTES + 8];
    size_t n = strspn(*at, "0123456789.e-");
    char *end;

    if (strncmp(*at, "inf", 3) == 0) {
        *at += 3;
        *out = INFINITY;
        return true;
    }
    if (n == 0 || n >= sizeof(text)) {
        return false;
    }
    memcpy(text, *at, n);
    text[n] = '\0';
    *out = strtof(text, &end);
    *at += n;
    return *end == '\0' && isfinite(*out);
}

int reader_take_numbers(struct reader *r, uint32_t most, const char *wanted,
                        uint32_t *n, float *out)
{
    const char *p = r->word;

    for (*n = 0; *n < most && read_number(&p, &out[*n]);) {
        ++*n;
        if (*p != ',') {
            break;
        }
        p++;
    }
    if (*n == 0 || *p != '\0' || p[-1] == ',') {
        return reader_fail(r, wanted);
    }
    reader_next(r);
    return FSDP_OK;
}

void *reader_grow(void *array, uint32_t n, uint32_t *room, size_t bytes)
{
    uint32_t more = *room == 0 ? 16 : 2 * *room;
    void *p = n < *room ? array : realloc(array, more * bytes);

    if (p && n >= *room) {
        *room = more;
    }
    return p;
}
