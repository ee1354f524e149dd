/* SPDX-License-Identifier: Apache-2.0 */
/*
 * witness.h - what the model of an isolated rank saw in each whole pass: of a
 * unit's parameters as they were lent in the forward, and of its gradients as
 * the backward left them, a number each (record_digest_add), beside how often
 * the unit was gathered and reduced by then. Who carries has such numbers of
 * what ranks have sent, so that the judge can tell whether the model computed
 * with that, and whether what it left was sent, in every pass: of tensors only
 * the first steps are recorded.
 */
#ifndef FSDP_CTS_WITNESS_H
#define FSDP_CTS_WITNESS_H

#include "record/record.h"
#include "run/witness/wire.h"

/* Of a rank; all 0: nobody looks. */
struct witness {
    struct wire *wire; /* NULL: nobody looks */
    const struct fsdp_units *units;
    uint32_t me; /* of the shards */
    /* [n_parameters]: in this pass. */
    struct witness_parameter {
        uint32_t lent, left; /* how often */
    } * parameter;
    /* [n_units]: of this pass so far. */
    struct witness_unit {
        struct record_pass seen;
        uint32_t lent, left; /* parameters */
        bool mixed;          /* gathered anew in between, or of two dtypes */
        bool several;        /* gradients of one parameter, or two dtypes */
    } * unit;
};

/* Borrows all. Where ranks are isolated and pointers point into memory. NOMEM.
 */
int witness_make(struct wire *wire, const struct fsdp_units *units, uint32_t me,
                 struct witness *out);
void witness_release(struct witness *w); /* any state */
/* Drops what was seen so far: the collectives of shard belong to no pass. */
void witness_forget(struct witness *w);

void witness_begin(struct witness *w, uint32_t step, uint32_t microbatch);
/* In the forward; the model's stream has been waited for. */
bool witness_wants(const struct witness *w, uint32_t p);
void witness_lent(struct witness *w, uint32_t p, const struct fsdp_tensor *t);
/* The same when its module's backward has been computed. */
void witness_left(struct witness *w, uint32_t p, const struct fsdp_tensor *t);
/* The pass was whole. NOMEM. */
int witness_end(struct witness *w, struct record_rank *out);

#endif
