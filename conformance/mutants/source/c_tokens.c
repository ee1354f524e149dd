/* SPDX-License-Identifier: Apache-2.0 */
/*
 * c_tokens.c - cuts a C source into tokens; comments, blanks and preprocessor
 * lines are none.
 */
#include "c_tokens.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Behind a comment, a preprocessor line or blanks that begin at i; i itself
 * if none does. */
static size_t skip(const struct tokens *s, size_t i, bool line_begins)
{
    const char *t = s->text;
    const char *end;

    if (isspace((unsigned char)t[i])) {
        return i + 1;
    }
    if (t[i] == '/' && t[i + 1] == '*') {
        end = strstr(t + i + 2, "*/");
        return end ? (size_t)(end - t) + 2 : s->n;
    }
    if ((t[i] == '/' && t[i + 1] == '/') || (t[i] == '#' && line_begins)) {
        while (i < s->n && (t[i] != '\n' || t[i - 1] == '\\')) {
            i++;
        }
    }
    return i;
}

static size_t end_of_text(const struct tokens *s, size_t i)
{
    char quote = s->text[i++];

    while (i < s->n && s->text[i] != quote) {
        i += s->text[i] == '\\' && i + 1 < s->n ? 2 : 1;
    }
    return i < s->n ? i + 1 : s->n;
}

static size_t end_of_sign(const struct tokens *s, size_t i)
{
    static const char *const sign[] = {
        "...", "<<=", ">>=", "->", "++", "--", "<<", ">>", "<=", ">=", "==",
        "!=",  "&&",  "||",  "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^="};

    for (size_t k = 0; k < sizeof(sign) / sizeof(*sign); k++) {
        size_t n = strlen(sign[k]);
        if (strncmp(s->text + i, sign[k], n) == 0) {
            return i + n;
        }
    }
    return i + 1;
}

static struct token token_at(const struct tokens *s, size_t i)
{
    unsigned char c = (unsigned char)s->text[i];
    struct token t = {TOKEN_SIGN, i, i};

    if (c == '"' || c == '\'') {
        t.kind = TOKEN_TEXT;
        t.end = end_of_text(s, i);
    } else if (isalnum(c) || c == '_' ||
               (c == '.' && isdigit((unsigned char)s->text[i + 1]))) {
        t.kind = isdigit(c) || c == '.' ? TOKEN_NUMBER : TOKEN_WORD;
        while (isalnum((unsigned char)s->text[t.end]) ||
               s->text[t.end] == '_' ||
               (t.kind == TOKEN_NUMBER && s->text[t.end] == '.')) {
            t.end++;
        }
    } else {
        t.end = end_of_sign(s, i);
    }
    return t;
}

bool tokens_cut(const char *text, size_t n, struct tokens *out)
{
    bool line_begins = true;

    *out = (struct tokens){.text = text, .n = n};
    out->token = malloc((n + 1) * sizeof(*out->token));
    for (size_t i = 0; i < n && out->token;) {
        size_t next = skip(out, i, line_begins);
        if (next > i) {
            line_begins = text[i] == '\n' || (line_begins && next == i + 1);
            i = next;
            continue;
        }
        line_begins = false;
        out->token[out->n_tokens] = token_at(out, i);
        i = out->token[out->n_tokens++].end;
    }
    return out->token != NULL;
}

struct token tokens_at(const struct tokens *s, size_t i)
{
    return i < s->n_tokens ? s->token[i]
                           : (struct token){TOKEN_NONE, s->n, s->n};
}

bool tokens_is(const struct tokens *s, size_t i, const char *text)
{
    struct token t = tokens_at(s, i);

    return t.kind != TOKEN_TEXT && t.kind != TOKEN_NONE &&
           t.end - t.begin == strlen(text) &&
           memcmp(s->text + t.begin, text, t.end - t.begin) == 0;
}

bool tokens_is_any(const struct tokens *s, size_t i, const char *const *texts)
{
    while (*texts && !tokens_is(s, i, *texts)) {
        texts++;
    }
    return *texts != NULL;
}

size_t tokens_closing(const struct tokens *s, size_t i)
{
    static const char *const open[] = {"(", "[", "{", NULL};
    static const char *const close[] = {")", "]", "}", NULL};
    size_t depth = 0;

    for (; i < s->n_tokens; i++) {
        depth += tokens_is_any(s, i, open);
        if (tokens_is_any(s, i, close) && --depth == 0) {
            return i;
        }
    }
    return s->n_tokens;
}
