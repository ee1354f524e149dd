/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scribe.h - the other end of a crossing (crossing.h), in a process that never
 * runs an engine: it keeps what a rank tells it, and writes the rank's record.
 *
 * A rank runs an engine, so that anything may come from it: a rank whose words
 * have no meaning has no record.
 */
#ifndef FSDP_CTS_SCRIBE_H
#define FSDP_CTS_SCRIBE_H

#include "run/witness/crossing.h"
#include "run/witness/sequences.h"

/* What was communicated, according to all that was told, whether it is recorded
 * or not. */
struct scribe_told {
    uint32_t own; /* by a communicator that the engine brings */
    struct record_traffic of;
};

struct scribe {
    struct scribe_told told;
    struct record_rank r;
    struct sequences_open open;
    unsigned char *in; /* what has been read from the pipe and not been
                          decoded */
    uint64_t n_in, room;
    uint64_t taken; /* bytes decoded, in all */
    uint32_t length[CROSSING_LISTS];
    bool ended; /* the rank has told all */
    bool lost;  /* what the rank told has no meaning */
};

/* False: no memory. */
bool scribe_begin(struct scribe *s);
/* Reads so many bytes, which are in the pipe. False: no memory, and the scribe
 * cannot go on. */
bool scribe_drain(struct scribe *s, int pipe, uint64_t bytes);
/* Writes rank-R of that folder from what was told, if the rank has told all.
 * `error` says whether the file could be written. False: what was told has no
 * meaning. */
bool scribe_write(struct scribe *s, const char *folder, uint32_t rank,
                  struct fsdp_error *error);
void scribe_release(struct scribe *s);

#endif
