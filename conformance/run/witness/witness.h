/* SPDX-License-Identifier: Apache-2.0 */
/*
 * witness.h - one number (record_digest_add) for a unit's parameters as the
 * model of an isolated rank saw them in a forward, and one for its gradients as
 * the backward left them, in each whole pass; beside them, how often the unit
 * had been gathered and reduced by then. The process that carries collectives
 * has such numbers of what ranks have sent. So the judge can tell, for every
 * pass, whether the model computed with what was sent, and whether the
 * gradients that it left were sent; tensors are recorded of the first steps
 * alone.
 */
#ifndef FSDP_CTS_WITNESS_H
#define FSDP_CTS_WITNESS_H

#include "record/record.h"
#include "run/witness/wire.h"

/* The witness of a rank; all 0: there is none. */
struct witness {
    struct wire *wire; /* NULL: there is no witness */
    const struct fsdp_units *units;
    uint32_t me; /* index of this rank's shard */
    /* [n_parameters]: counts of this pass. */
    struct witness_parameter {
        uint32_t lent, left; /* how often */
    } * parameter;
    /* [n_units]: what this pass has shown so far. */
    struct witness_unit {
        struct record_pass seen;
        uint32_t lent, left; /* parameters */
        bool mixed;          /* gathered anew between two parameters, or they
                                have two dtypes */
        bool several;        /* a parameter has several gradients, or they have
                                two dtypes */
    } * unit;
};

/* Borrows all. To be used where ranks are isolated and pointers point into
 * memory. NOMEM. */
int witness_make(struct wire *wire, const struct fsdp_units *units, uint32_t me,
                 struct witness *out);
void witness_release(struct witness *w); /* any state */
/* Drops what was seen so far: the collectives of shard belong to no pass. */
void witness_forget(struct witness *w);

void witness_begin(struct witness *w, uint32_t step, uint32_t microbatch);
/* witness_wants says whether witness_lent is to be called for p, in the
 * forward, when the model's stream has been waited for. */
bool witness_wants(const struct witness *w, uint32_t p);
void witness_lent(struct witness *w, uint32_t p, const struct fsdp_tensor *t);
/* The same for the gradients, when the backward of their module has been
 * computed. */
void witness_left(struct witness *w, uint32_t p, const struct fsdp_tensor *t);
/* The pass was whole. NOMEM. */
int witness_end(struct witness *w, struct record_rank *out);

#endif
