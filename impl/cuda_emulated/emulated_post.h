/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated_post.h - TEST ONLY: mailboxes in shared memory, one from each rank
 * to each other one, and the communicator that has them.
 */
#ifndef EMULATED_POST_H
#define EMULATED_POST_H

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
    struct mail mail[MOST_RANKS][MOST_RANKS]; /* from, to */
};

struct ncclComm {
    struct post *post;
    int n, me, fd; /* -1: the memory is another rank's */
    ncclResult_t error;
    bool aborted;
    unsigned int users; /* the owner, and work that is not done */
};

/* One user less. */
void emulated_comm_release(struct ncclComm *comm);

#endif
