/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scales.h - what ranks hold when they are weighed at points of rest
 * (rank_line.h), made into the numbers of a record.
 */
#ifndef FSDP_CTS_SCALES_H
#define FSDP_CTS_SCALES_H

#include "record/record.h"
#include "run/process/weigh.h"
#include "run/witness/rank_line.h"

enum {
    SCALES_RANKS = 128,
    SCALES_STEPS = 64 /* so many steps are told apart */
};

struct scales {
    const char *const *folders; /* that ranks can write to; ends with NULL */
    uint64_t files;             /* bytes in the folders before there was any
                                   rank */
    struct record_weight *weight;
    struct {
        uint64_t before, sharded;    /* private bytes before shard and after
                                        it */
        uint64_t gone;               /* bytes of files in no folder that it had
                                        then */
        bool forgot;                 /* its peak was forgotten, as it asked
                                        for */
        uint64_t held[SCALES_STEPS]; /* private bytes after each step */
    } of[SCALES_RANKS];
};

/* `weight` has a place for each rank, zeroed. */
void scales_begin(struct scales *s, const char *const *folders,
                  struct record_weight *weight);
/* Weighs a rank that says that it stands at a point. If the kernel does not say
 * at the first point what the rank holds, the rank counts as not weighed.
 * False: the kernel said it before, and no longer does. */
bool scales_weigh(struct scales *s, uint32_t rank, pid_t pid,
                  const struct rank_line_said *said);

#endif
