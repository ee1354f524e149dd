/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated_post.h - TEST ONLY: mailboxes in shared memory, one from each rank
 * to each other one, and the communicator that has them.
 */
#ifndef FSDP_CTS_EMULATED_POST_H
#define FSDP_CTS_EMULATED_POST_H

#include "nccl.h"

#include <stdatomic.h>
#include <stdbool.h>

enum {
    MOST_RANKS = 16,
    MAIL_BYTES = 16 * 1024,
};

struct mail {
    _Atomic uint32_t full;
    char data[MAIL_BYTES];
};

struct post {
    _Atomic uint32_t joined;
    uint64_t place[MOST_RANKS];               /* host and GPU of each */
    struct mail mail[MOST_RANKS][MOST_RANKS]; /* from, to */
};

/* A communicator is kept when it is destroyed, so that its later use is
 * seen. */
struct ncclComm {
    struct post *post;
    int n, me, fd; /* -1: the memory is another rank's */
    int device;
    ncclResult_t error; /* IN_PROGRESS: while the library is busy */
    unsigned int looks; /* how many until it is done */
    unsigned int fails; /* how many until it fails; 0: never */
    bool alive, aborted, finalized;
    _Atomic unsigned int users;     /* the owner, and all work that is not
                                     * done */
    unsigned int hanging;           /* work that will never be done, */
    _Atomic unsigned int *of_owner; /* and all such work of the thread that made
                                     * it */
};

/* One user less. */
void emulated_comm_release(struct ncclComm *comm);
/* Whether the communicator can be given work: INVALID_ARGUMENT while something
 * is in progress. */
ncclResult_t emulated_comm_ready(struct ncclComm *comm);
/* Something has begun; a communicator that does not block says so. */
ncclResult_t emulated_comm_begin(struct ncclComm *comm);

#endif
