/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_reader.h - the words of a script's text, one after the other; for
 * script_parse.c.
 */
#ifndef FSDP_CTS_SCRIPT_READER_H
#define FSDP_CTS_SCRIPT_READER_H

#include "script/script.h"

struct reader {
    const char *at;
    uint32_t line;
    char word[CASE_ID_BYTES + 8]; /* empty: the action has ended */
    struct script *s;
    uint32_t room_actions, room_inside, room_edits;
    /* The repeats that are open: their actions, and how often all in them is
     * played. */
    uint32_t open[SCRIPT_MAX_DEPTH];
    uint64_t times[SCRIPT_MAX_DEPTH + 1];
    uint32_t depth;
    uint64_t played;
    struct fsdp_error *error;
};

/* FORMAT, with where the reader is, its word, and what would be right. */
int reader_fail(struct reader *r, const char *wanted);
/* Spaces, and a comment up to the end of its line. */
void reader_skip(struct reader *r);
/* The action's next word; empty at its end. */
void reader_next(struct reader *r);
bool reader_is(const struct reader *r, const char *word);
/* If the word is this one, goes on to the next. */
bool reader_accept(struct reader *r, const char *word);
/* Which of `n` words this is, or n. */
uint32_t reader_which(const struct reader *r, const char *const *words,
                      uint32_t n);
/* Digits at *at, at most `most`. */
bool reader_count(const char **at, uint32_t most, uint32_t *out);
/* The word is a count. */
int reader_take_count(struct reader *r, uint32_t least, uint32_t most,
                      const char *wanted, uint32_t *out);
/* The word is numbers with commas between, up to `most`: each a float32 as
 * case_float_text writes it, or "inf". */
int reader_take_numbers(struct reader *r, uint32_t most, const char *wanted,
                        uint32_t *n, float *out);

/* The array, with room for one element more; NULL: no memory. */
void *reader_grow(void *array, uint32_t n, uint32_t *room, size_t bytes);

#endif
