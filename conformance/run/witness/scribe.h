/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scribe.h - the other end of what crosses (crossing.h), in a process in which
 * no engine is: it keeps what it was told, and writes the record.
 *
 * What comes may be anything, as an engine is where it comes from: a rank whose
 * words have no meaning has no record.
 */
#ifndef FSDP_CTS_SCRIBE_H
#define FSDP_CTS_SCRIBE_H

#include "run/witness/crossing.h"
#include "run/witness/sequences.h"

/* What was communicated, of all that was told, recorded or not. */
struct scribe_told {
    uint32_t own; /* by a communicator of the engine's */
    struct record_traffic of;
};

struct scribe {
    struct scribe_told told;
    struct record_rank r;
    struct sequences_open open;
    unsigned char *in; /* what has come, and is not taken yet */
    uint64_t n_in, room;
    uint64_t taken; /* bytes, in all */
    uint32_t length[CROSSING_LISTS];
    bool ended; /* all of it is there */
    bool lost;  /* it has no meaning */
};

/* False: no memory. */
bool scribe_begin(struct scribe *s);
/* So many bytes are in the pipe. False: no memory, and nobody can go on. */
bool scribe_drain(struct scribe *s, int pipe, uint64_t bytes);
/* Writes what was told, if all of it was: rank-R of that folder. `error` says
 * whether it could be written. False: it has no meaning. */
bool scribe_write(struct scribe *s, const char *folder, uint32_t rank,
                  struct fsdp_error *error);
void scribe_release(struct scribe *s);

#endif
