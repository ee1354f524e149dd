/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.h - opens the messages of a unit's collectives, knows which element lies
 * where in them, and checks three things: padding is +0; the places of frozen
 * parameters in a gradient are +0; and the first gather of a unit has the
 * initial value of every element, at its place.
 *
 * An engine could pack a unit in an order of its own and unpack it in the same
 * order, and no value outside of its messages would show it.
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

/* What all shards of each unit together consist of. */
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
    struct wire_places gradients; /* by rows: trainable parameters alone;
                                     nothing for a unit without one */
    bool *gathered;               /* [n_units]: the first gather has been
                                     checked */
    struct wire_calls {
        uint32_t gathers, reductions;
    } * calls;          /* [n_units]: collectives of whole shards so far */
    uint32_t *aside;    /* scratch, for the most places of one unit that have to
                           be +0; two of 16 bits share one */
    uint64_t dirty;     /* elements of padding that were not +0 */
    uint64_t frozen;    /* elements of gradients that were not +0 in the places
                           of frozen parameters */
    uint64_t misplaced; /* elements that were not where they belong */
};

/* Computes the places of a layout; model and units are borrowed. With `values`
 * the first gather of each unit is compared with initial values. NOMEM. */
int wire_make(const struct fsdp_model *model, const struct fsdp_units *units,
              uint32_t layout, uint32_t shards, bool values, struct wire *out);
/* The flags of parameters have changed: computes the places in gradients anew.
 * No effect on a wire that was not made. NOMEM. */
int wire_change(struct wire *w, const struct fsdp_units *units,
                uint32_t layout);
void wire_release(struct wire *w); /* any state */

/* Looks at `whole`, which is what all shards together give or are given in `c`.
 * A message of another size is not looked at: that is another fault. */
int wire_look(struct wire *w, const struct fsdp_device *d,
              struct fsdp_stream *stream, const struct fsdp_collective *c,
              const void *whole);

#endif
