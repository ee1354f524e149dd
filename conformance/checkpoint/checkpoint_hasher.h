/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_hasher.h - SHA-256 behind the writing: blocks are hashed by a
 * thread of their own while the caller writes them and fills the next.
 */
#ifndef FSDP_CTS_CHECKPOINT_HASHER_H
#define FSDP_CTS_CHECKPOINT_HASHER_H

#include "checkpoint.h"

enum {
    CHECKPOINT_BLOCK = 1 << 20
};

struct checkpoint_hasher;

/* NULL: out of memory. The thread is started with the second block: a smaller
 * file is hashed at the end. */
struct checkpoint_hasher *checkpoint_hasher_open(void);
/* The place for the next CHECKPOINT_BLOCK bytes, which begins on a page. */
unsigned char *checkpoint_hasher_block(struct checkpoint_hasher *h);
/* The block now has so many bytes, and the caller no longer changes it. It may
 * read it until it asks for the next block but one. */
void checkpoint_hasher_push(struct checkpoint_hasher *h, size_t bytes);
/* Waits until all blocks are hashed; frees h. False: SHA-256 failed. */
bool checkpoint_hasher_close(struct checkpoint_hasher *h,
                             unsigned char sha[CHECKPOINT_SHA_BYTES]);

#endif
