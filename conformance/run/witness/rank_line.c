/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_line.c - how a rank stands still: it sends a word, and waits for the
 * same word back.
 */
#include "run/witness/rank_line.h"
#include "run/process/whole_io.h"

bool rank_line_ask(int line, uint32_t word, uint64_t n)
{
    const struct rank_line_said said = {word, 0, n};
    uint32_t back = RANK_LINE_N_WORDS;

    return whole_write(line, &said, sizeof(said)) &&
           whole_read(line, &back, sizeof(back)) && back == word;
}

bool rank_line_hear(int line, struct rank_line_said *said)
{
    return whole_read(line, said, sizeof(*said)) &&
           said->word < RANK_LINE_N_WORDS;
}

bool rank_line_answer(int line, uint32_t word)
{
    return whole_write(line, &word, sizeof(word));
}
