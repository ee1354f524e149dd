/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_races.h - the part of a rank's record about accesses to the same
 * memory that nothing orders.
 */
#ifndef FSDP_CTS_RECORD_RACES_H
#define FSDP_CTS_RECORD_RACES_H

#include <fsdp/device.h>

enum {
    RECORD_RACES = 4, /* described; all are counted */
    RECORD_RACE_WORD_BYTES = 24,
    RECORD_RACE_EDGE_BYTES = 48,
};

/* "optimizer" or "all-gather" on stream "reduce" or on no stream, "host";
 * where it was given: "post-backward" of module 3. */
struct record_race_side {
    char what[RECORD_RACE_WORD_BYTES];
    char stream[RECORD_RACE_WORD_BYTES];
    char point[RECORD_RACE_WORD_BYTES];
    uint32_t step, module;
};

struct record_race {
    char edge[RECORD_RACE_EDGE_BYTES]; /* that is missing: "dead->reuse" */
    uint32_t kind; /* of what is live there; FSDP_N_KINDS: nothing */
    uint32_t unit; /* FSDP_NO_UNIT: unknown */
    struct record_race_side earlier, later;
};

struct record_races {
    uint64_t count;
    uint32_t unfollowed; /* streams beyond those that can be followed */
    uint32_t n;
    struct record_race race[RECORD_RACES];
};

#endif
