/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_buffers.c - what a model has beside its parameters. Each rank has its
 * own: the unsharded run keeps a set of them for each.
 */
#include "tools/check/own_requirement.h"

#include <string.h>

static const struct own_buffer *find(const struct own_record *r,
                                     const struct own_buffer *like)
{
    for (uint32_t i = 0; i < r->n_buffers; i++) {
        const struct own_buffer *b = &r->buffer[i];

        if (b->step == like->step && b->rank == like->rank &&
            strcmp(b->name, like->name) == 0) {
            return b;
        }
    }
    return NULL;
}

static bool buffer_holds(const struct own_set *s, const struct own_buffer *want,
                         struct own_finding *f)
{
    const struct own_buffer *got = find(&s->rank[want->rank], want);

    *f = own_nowhere();
    f->step = want->step;
    f->rank = want->rank;
    if (!got) {
        return own_fail(f, "buffer %s is not there", want->name);
    }
    if (got->dtype != want->dtype) {
        return own_fail(f, "buffer %s is %s, unsharded %s", want->name,
                        own_dtype_name(got->dtype),
                        own_dtype_name(want->dtype));
    }
    return strcmp(got->digest, want->digest) == 0 ||
           own_fail(f,
                    "buffer %s has other values than unsharded: digest "
                    "%.12s..., unsharded %.12s...",
                    want->name, got->digest, want->digest);
}

bool own_buffers_holds(const struct own_requirement *q, const struct own_set *s,
                       struct own_finding *f)
{
    (void)q;
    for (uint32_t i = 0; i < s->unsharded.n_buffers; i++) {
        if (!buffer_holds(s, &s->unsharded.buffer[i], f)) {
            return false;
        }
    }
    return true;
}

bool own_buffers_spoil(const struct own_requirement *q, struct own_set *s,
                       struct own_spoil *undo)
{
    struct own_record *last = &s->rank[s->world - 1];

    (void)q;
    if (last->n_buffers == 0) {
        return false;
    }
    own_damage(undo, &last->buffer[0].dtype, sizeof(last->buffer[0].dtype));
    last->buffer[0].dtype = OWN_NO_DTYPE;
    return true;
}
