/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sequences.h - collectives that follow each other, until a mark ends them;
 * equal ones are kept once.
 */
#ifndef FSDP_CTS_SEQUENCES_H
#define FSDP_CTS_SEQUENCES_H

#include "record/record.h"

struct sequences_open {
    struct record_sequence now; /* since the last mark */
    uint32_t capacity;
};

/* Room for one more, before it is made. False: no memory. */
bool sequences_have_room(struct sequences_open *o);
/* There is room. */
void sequences_add(struct sequences_open *o, struct record_collective c);
/* It becomes one of those of a rank: its index, or -1: no memory. */
int64_t sequences_mark(struct sequences_open *o, struct record_rank *out);
void sequences_release(struct sequences_open *o);

#endif
