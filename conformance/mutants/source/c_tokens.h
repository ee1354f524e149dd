/* SPDX-License-Identifier: Apache-2.0 */
/*
 * c_tokens.h - the tokens of a C source, for mutate.c. They are told by their
 * spelling alone: a keyword is a word, an operator a sign.
 */
#ifndef FSDP_CTS_C_TOKENS_H
#define FSDP_CTS_C_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

enum token_kind {
    TOKEN_WORD,
    TOKEN_NUMBER,
    TOKEN_SIGN,
    TOKEN_TEXT, /* a string or a character */
    TOKEN_NONE, /* before the first token, and behind the last */
};

struct token {
    enum token_kind kind;
    size_t begin, end; /* [begin, end) of the source */
};

struct tokens {
    const char *text; /* n bytes and a '\0' */
    size_t n;
    struct token *token; /* free() it */
    size_t n_tokens;
};

/* Cuts text, which must outlive the tokens. False: out of memory. */
bool tokens_cut(const char *text, size_t n, struct tokens *out);

/* Token i; NONE if there is none, also below 0 (by wrapping). */
struct token tokens_at(const struct tokens *t, size_t i);

/* Whether token i is spelled so, or like one of a NULL-ended list. */
bool tokens_is(const struct tokens *t, size_t i, const char *text);
bool tokens_is_any(const struct tokens *t, size_t i, const char *const *texts);

/* The bracket that closes the one at i; n_tokens if none does. */
size_t tokens_closing(const struct tokens *t, size_t i);

#endif
