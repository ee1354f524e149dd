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
    SCALES_STEPS = 64 /* of which is known what was held at each */
};

struct scales {
    const char *const *folders; /* that ranks can write to, up to NULL */
    uint64_t files;             /* bytes in there before there was any rank */
    struct record_weight *weight;
    struct {
        uint64_t before, sharded;    /* private bytes before and behind shard */
        uint64_t gone;               /* files that it had then, in no folder */
        bool forgot;                 /* a peak, as it asked for */
        uint64_t held[SCALES_STEPS]; /* private bytes after each step */
    } of[SCALES_RANKS];
};

/* `weight` has a place for each rank, zeroed. */
void scales_begin(struct scales *s, const char *const *folders,
                  struct record_weight *weight);
/* A rank says that it stands at a point. Where the kernel does not
 * say what it holds, from the first point on, it counts as not weighed. False:
 * it says it no more. */
bool scales_weigh(struct scales *s, uint32_t rank, pid_t pid,
                  const struct rank_line_said *said);

#endif
