/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffer_copies.h - copies a model's buffers to host memory and back, as many
 * mutants of buffers do.
 */
#ifndef FSDP_CTS_BUFFER_COPIES_H
#define FSDP_CTS_BUFFER_COPIES_H

#include "mutants/mutant_kit.h"

enum {
    BUFFERS_MOST = 8,
    BUFFERS_MOST_BYTES = 256 /* of one buffer */
};

struct buffer_copies {
    unsigned char data[BUFFERS_MOST][BUFFERS_MOST_BYTES];
    bool made;
};

/* This rank's copies, which a mutant keeps from one call to the next. */
extern _Thread_local struct buffer_copies buffers_before;
void buffers_forget(void); /* a mutant's `forget` */

/* Buffer b as the engine shows it, and how many bytes it has; INTERNAL: more
 * bytes than a copy has room for. */
int buffers_find(struct fsdp_sharded *s, uint32_t b, struct fsdp_tensor *t,
                 uint64_t *bytes);
/* Copies bytes behind all work that the device was given before; and all
 * buffers. */
int buffers_copy(void *to, const void *from, uint64_t bytes);
int buffers_take(struct fsdp_sharded *s, struct buffer_copies *to);
/* Gives back the persisted buffers, or the others, or all; does nothing if no
 * copies were taken. */
int buffers_give(struct fsdp_sharded *s, struct buffer_copies *from,
                 bool persisted);
int buffers_give_all(struct fsdp_sharded *s, struct buffer_copies *from);
/* Gives all ranks the buffers that rank `from` has, also in buffers_before. */
int buffers_meet(struct fsdp_sharded *s, uint32_t from);

#endif
