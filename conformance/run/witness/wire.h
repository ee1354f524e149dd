/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.h - what lies where in what a unit's collectives move, and what is
 * looked at there: that padding is +0, that the places of frozen parameters in
 * a gradient are, and that what is gathered first is the initial value of every
 * element, at its place.
 *
 * An engine could pack a unit in an order of its own, unpack it in the same,
 * and no value would show it: here its messages are opened.
 */
#ifndef FSDP_CTS_WIRE_H
#define FSDP_CTS_WIRE_H

#include <fsdp/engine.h>

/* Elements [first, first + n) of a parameter, at `place` among its unit's
 * shards, one behind the other. */
struct wire_block {
    uint32_t parameter;
    uint64_t place, first, n;
};

/* What all shards of each unit together are made of. */
struct wire_places {
    struct wire_block *block; /* of unit u: [begin[u], begin[u + 1]), places
                               * ascending */
    uint32_t *begin;          /* [n_units + 1] */
    uint64_t *padded;         /* [n_units]: elements of all shards */
};

struct wire {
    const struct fsdp_model *model;
    uint32_t n_units, shards;
    struct wire_places values;
    struct wire_places gradients; /* by rows: of trainable parameters alone; of
                                   * a unit without one: nothing */
    bool *gathered;               /* [n_units]: has been looked at */
    struct wire_calls {
        uint32_t gathers, reductions;
    } * calls;          /* [n_units]: collectives of whole shards so far */
    uint32_t *aside;    /* scratch: as many as a unit has at most of places that
                         * are +0, of 16 bits two in one */
    uint64_t dirty;     /* elements of padding that were not +0 */
    uint64_t frozen;    /* elements of gradients in the places of what is
                         * frozen that were not +0 */
    uint64_t misplaced; /* elements that were not where they belong */
};

/* The places of a layout; model and units are borrowed. NOMEM. With `values`
 * the first gather of each unit is compared with initial values. */
int wire_make(const struct fsdp_model *model, const struct fsdp_units *units,
              uint32_t layout, uint32_t shards, bool values, struct wire *out);
/* The flags of parameters are other ones: places in gradients. NOMEM. Of what
 * was not made: no effect. */
int wire_change(struct wire *w, const struct fsdp_units *units,
                uint32_t layout);
void wire_release(struct wire *w); /* any state */

/* Looks at `whole`, what all shards give or are given in `c`. A message of
 * another size is another fault. */
int wire_look(struct wire *w, const struct fsdp_device *d,
              struct fsdp_stream *stream, const struct fsdp_collective *c,
              const void *whole);

#endif
