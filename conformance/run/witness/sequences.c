/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sequences.c - keeps the sequence of collectives that is being recorded, and
 * those that are complete.
 */
#include "run/witness/sequences.h"

#include <assert.h>
#include <stdlib.h>

bool sequences_have_room(struct sequences_open *o)
{
    const uint32_t capacity = o->capacity ? 2 * o->capacity : 64;
    void *grown;

    if (o->now.n < o->capacity) {
        return true;
    }
    grown = realloc(o->now.c, capacity * sizeof(*o->now.c));
    if (!grown) {
        return false;
    }
    o->now.c = grown;
    o->capacity = capacity;
    return true;
}

void sequences_add(struct sequences_open *o, struct record_collective c)
{
    assert(o->now.n < o->capacity); /* sequences_have_room was called */
    o->now.c[o->now.n++] = c;
}

static bool same(const struct record_sequence *a,
                 const struct record_sequence *b)
{
    if (a->n != b->n) {
        return false;
    }
    for (uint32_t i = 0; i < a->n; i++) {
        const struct record_collective *x = &a->c[i];
        const struct record_collective *y = &b->c[i];

        if (x->kind != y->kind || x->dim != y->dim || x->dtype != y->dtype ||
            x->fold != y->fold || x->root != y->root || x->unit != y->unit ||
            x->n != y->n) {
            return false;
        }
    }
    return true;
}

int64_t sequences_mark(struct sequences_open *o, struct record_rank *out)
{
    struct record_sequence *grown;

    for (uint32_t i = 0; i < out->n_sequences; i++) {
        if (same(&out->sequence[i], &o->now)) {
            o->now.n = 0;
            return i;
        }
    }
    grown = realloc(out->sequence,
                    (out->n_sequences + 1u) * sizeof(*out->sequence));
    if (!grown) {
        return -1;
    }
    out->sequence = grown;
    out->sequence[out->n_sequences] = o->now;
    *o = (struct sequences_open){.capacity = 0};
    return out->n_sequences++;
}

void sequences_release(struct sequences_open *o)
{
    free(o->now.c);
    *o = (struct sequences_open){.capacity = 0};
}
