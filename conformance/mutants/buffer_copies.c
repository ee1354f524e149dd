/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffer_copies.c - a model's buffers, copied to host memory and back.
 */
#include "mutants/buffer_copies.h"

#include <string.h>

_Thread_local struct buffer_copies buffers_before;

void buffers_forget(void)
{
    buffers_before.made = false;
}

int buffers_find(struct fsdp_sharded *s, uint32_t b, struct fsdp_tensor *t,
                 uint64_t *bytes)
{
    FSDP_TRY(mutant_real.engine.buffer(s, b, t));
    *bytes = t->shape[0] * fsdp_dtype_bytes(t->dtype);
    return *bytes <= BUFFERS_MOST_BYTES && b < BUFFERS_MOST ? FSDP_OK
                                                            : FSDP_ERR_INTERNAL;
}

int buffers_copy(void *to, const void *from, uint64_t bytes)
{
    const struct fsdp_device *d = mutant_real.device;

    FSDP_TRY(d->sync(d->self, NULL));
    return d->copy(d->self, NULL, to, from, bytes);
}

int buffers_take(struct fsdp_sharded *s, struct buffer_copies *to)
{
    for (uint32_t b = 0; b < mutant_real.model->n_buffers; b++) {
        struct fsdp_tensor t;
        uint64_t bytes;

        FSDP_TRY(buffers_find(s, b, &t, &bytes));
        FSDP_TRY(buffers_copy(to->data[b], t.data, bytes));
    }
    to->made = true;
    return FSDP_OK;
}

int buffers_give(struct fsdp_sharded *s, struct buffer_copies *from,
                 bool persisted)
{
    for (uint32_t b = 0; from->made && b < mutant_real.model->n_buffers; b++) {
        const bool is =
            (mutant_real.model->buffer_flags[b] & FSDP_NOT_PERSISTED) == 0;
        struct fsdp_tensor t;
        uint64_t bytes;

        if (is == persisted) {
            FSDP_TRY(buffers_find(s, b, &t, &bytes));
            FSDP_TRY(buffers_copy(t.data, from->data[b], bytes));
        }
    }
    return FSDP_OK;
}

int buffers_give_all(struct fsdp_sharded *s, struct buffer_copies *from)
{
    FSDP_TRY(buffers_give(s, from, true));
    return buffers_give(s, from, false);
}

int buffers_meet(struct fsdp_sharded *s, uint32_t from)
{
    static _Thread_local void *room;
    unsigned char(*all)[BUFFERS_MOST][BUFFERS_MOST_BYTES] =
        mutant_room(&room, (size_t)16 * BUFFERS_MOST * BUFFERS_MOST_BYTES);

    if (!all || mutant_real.world > 16) {
        return FSDP_ERR_NOMEM;
    }
    FSDP_TRY(buffers_take(s, &buffers_before));
    FSDP_TRY(mutant_real.env->exchange(mutant_real.env->exchange_self,
                                       buffers_before.data,
                                       sizeof(buffers_before.data), all));
    memcpy(buffers_before.data, all[from % mutant_real.world],
           sizeof(buffers_before.data));
    return buffers_give_all(s, &buffers_before);
}
