/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffer_copies.h - a model's buffers, copied to host memory and back: what
 * mutants of buffers have in common.
 */
#ifndef FSDP_CTS_BUFFER_COPIES_H
#define FSDP_CTS_BUFFER_COPIES_H

#include "mutants/mutant_kit.h"

enum {
    BUFFERS_MOST = 8,
    BUFFERS_MOST_BYTES = 256 /* of one */
};

struct buffer_copies {
    unsigned char data[BUFFERS_MOST][BUFFERS_MOST_BYTES];
    bool made;
};

/* Of this rank: what a mutant keeps from one call to the next. */
extern _Thread_local struct buffer_copies buffers_before;
void buffers_forget(void); /* a mutant's `forget` */

/* Buffer b as the engine shows it, and how many bytes it has; INTERNAL: more
 * than there is room for. */
int buffers_find(struct fsdp_sharded *s, uint32_t b, struct fsdp_tensor *t,
                 uint64_t *bytes);
/* Behind all that the device was given before. */
int buffers_copy(void *to, const void *from, uint64_t bytes);
int buffers_take(struct fsdp_sharded *s, struct buffer_copies *to);
/* Those that are persisted, or the others; nothing if none were taken. */
int buffers_give(struct fsdp_sharded *s, struct buffer_copies *from,
                 bool persisted);
int buffers_give_all(struct fsdp_sharded *s, struct buffer_copies *from);
/* All ranks get what rank `from` has; in buffers_before, too. */
int buffers_meet(struct fsdp_sharded *s, uint32_t from);

#endif
