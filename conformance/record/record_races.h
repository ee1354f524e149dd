/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_races.h - the part of a rank's record about two accesses to the same
 * memory of which nothing says which one comes first.
 */
#ifndef FSDP_CTS_RECORD_RACES_H
#define FSDP_CTS_RECORD_RACES_H

#include <fsdp/device.h>

enum {
    RECORD_RACES = 4, /* so many are described; all are counted */
    RECORD_RACE_WORD_BYTES = 24,
    RECORD_RACE_EDGE_BYTES = 48,
};

/* One of the two accesses: what made it ("optimizer", "all-gather"), on which
 * stream ("reduce", "host", or none), and the point at which it was given out
 * ("post-backward" of `module`). */
struct record_race_side {
    char what[RECORD_RACE_WORD_BYTES];
    char stream[RECORD_RACE_WORD_BYTES];
    char point[RECORD_RACE_WORD_BYTES];
    uint32_t step, module;
};

struct record_race {
    char edge[RECORD_RACE_EDGE_BYTES]; /* the order that is missing:
                                          "dead->reuse" */
    uint32_t kind; /* the kind that is live there; FSDP_N_KINDS: nothing is */
    uint32_t unit; /* FSDP_NO_UNIT: unknown */
    struct record_race_side earlier, later;
};

struct record_races {
    uint64_t count;
    uint32_t unfollowed; /* how many streams were too many to be followed */
    uint32_t n;
    struct record_race race[RECORD_RACES];
};

#endif
