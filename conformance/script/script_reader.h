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
    /* The repeats that are open: the action that each began with, and how often
     * all in it is played. */
    uint32_t open[SCRIPT_MAX_DEPTH];
    uint64_t times[SCRIPT_MAX_DEPTH + 1];
    uint32_t depth;
    uint64_t played;
    struct fsdp_error *error;
};

/* Fails with FORMAT: error says where the reader is, which word stands there,
 * and what would be right. */
int reader_fail(struct reader *r, const char *wanted);
/* Skips spaces, and a comment up to the end of its line. */
void reader_skip(struct reader *r);
/* Goes on to the action's next word; it is empty where the action ends. */
void reader_next(struct reader *r);
bool reader_is(const struct reader *r, const char *word);
/* If the word is `word`, goes on to the next. */
bool reader_accept(struct reader *r, const char *word);
/* The index of the reader's word among these `n`, or n. */
uint32_t reader_which(const struct reader *r, const char *const *words,
                      uint32_t n);
/* Reads the digits at *at, a number of at most `most`, and moves *at behind
 * them. */
bool reader_count(const char **at, uint32_t most, uint32_t *out);
/* Takes the word as a count from `least` to `most`. */
int reader_take_count(struct reader *r, uint32_t least, uint32_t most,
                      const char *wanted, uint32_t *out);
/* Takes the word as numbers with commas between, `most` of them at most: each
 * is "inf", or a float32 as case_float_text writes it. */
int reader_take_numbers(struct reader *r, uint32_t most, const char *wanted,
                        uint32_t *n, float *out);

/* Makes room for one element more; NULL: no memory. */
void *reader_grow(void *array, uint32_t n, uint32_t *room, size_t bytes);

#endif
