/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_line.h - what a rank tells the process beside it (notary.h), by a
 * descriptor which the rank keeps; it waits until that process has done what it
 * was told to. What needs no answer goes by another one (crossing.h).
 */
#ifndef FSDP_CTS_RANK_LINE_H
#define FSDP_CTS_RANK_LINE_H

#include <stdbool.h>
#include <stdint.h>

enum rank_line_word {
    RANK_LINE_BEFORE,     /* shard */
    RANK_LINE_BEFORE_OWN, /* the same; the device is the engine's own */
    RANK_LINE_SHARD,      /* it has been sharded */
    RANK_LINE_OPENED,     /* the model has what it needs */
    RANK_LINE_STEP,       /* a step has ended, all gradients are gone */
    RANK_LINE_FORGET,     /* what was resident before, once: a rank cannot do
                             that by itself, and is not to */
    RANK_LINE_DRAIN,      /* so many bytes have been written to the pipe */
    RANK_LINE_WRITE,      /* the record is whole: a struct fsdp_error follows
                             the answer */
    RANK_LINE_N_WORDS
};

/* `n`: of a rank that is weighed, bytes that its engine has allocated of the
 * device. */
struct rank_line_said {
    uint32_t word, unused;
    uint64_t n;
};

/* The rank stands still meanwhile. False: nobody has heard. */
bool rank_line_ask(int line, uint32_t word, uint64_t n);

/* In the process beside it, of a rank that has said something. */
bool rank_line_hear(int line, struct rank_line_said *said);
bool rank_line_answer(int line, uint32_t word);

#endif
