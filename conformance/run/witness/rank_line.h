/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_line.h - what a rank tells the notary, the process beside it (notary.h),
 * by a descriptor which the rank keeps; the rank waits until the notary has
 * done what it was told to. What needs no answer goes by another descriptor
 * (crossing.h).
 */
#ifndef FSDP_CTS_RANK_LINE_H
#define FSDP_CTS_RANK_LINE_H

#include <stdbool.h>
#include <stdint.h>

enum rank_line_word {
    RANK_LINE_BEFORE,     /* shard */
    RANK_LINE_BEFORE_OWN, /* the same, where the engine brings the device */
    RANK_LINE_SHARD,      /* it has been sharded */
    RANK_LINE_OPENED,     /* the model has what it needs */
    RANK_LINE_STEP,       /* a step has ended, all gradients are gone */
    RANK_LINE_FORGET,     /* forget what was resident before, once: a rank
                             cannot and must not do that by itself */
    RANK_LINE_DRAIN,      /* read so many bytes, which are in the pipe */
    RANK_LINE_WRITE,      /* write the record, which is whole: a struct
                             fsdp_error follows the answer */
    RANK_LINE_N_WORDS
};

/* `n`: for a rank that is weighed, the bytes that its engine has allocated from
 * the device. */
struct rank_line_said {
    uint32_t word, unused;
    uint64_t n;
};

/* Says the word and waits for the answer. False: the other end is closed. */
bool rank_line_ask(int line, uint32_t word, uint64_t n);

/* In the notary: hears a rank that has said something, and answers it. */
bool rank_line_hear(int line, struct rank_line_said *said);
bool rank_line_answer(int line, uint32_t word);

#endif
