/* SPDX-License-Identifier: Apache-2.0 */
/*
 * carried.h - what a rank has sent in each of its collectives, as the process
 * knows that carried them. Families of requirements compare this with what the
 * rank's record says of its collectives.
 */
#ifndef FSDP_CTS_CARRIED_H
#define FSDP_CTS_CARRIED_H

#include "judge/requirement.h"

/* A collective of a rank, and a hash of what it has sent in it. */
struct carried {
    const struct expect *e;
    const struct record *r;
    const struct record_sequence *q; /* the collectives of the step, */
    uint32_t index;                  /* and the number of this one there */
    const struct record_collective *c;
    uint64_t payload;
    uint32_t at;          /* among all of the rank's */
    uint32_t rank, shard; /* shard: the rank's in its group */
    uint32_t step;        /* or action; the number of steps: behind the last */
};

/* For `looked_at`: whether ranks were isolated, so that it is known what they
 * sent. */
bool carried_is_known(const struct record *r);
/* How many collectives were carried, and how many the rank's file has. */
void carried_count(const struct record_rank *rank, uint64_t *carried,
                   uint64_t *shown);

/* Calls `visit` for each collective of rank k, from the first step on, until it
 * returns false. Visits none if the file lacks some that were carried, those of
 * another life, say: then it is unknown which is which. */
bool carried_each(const struct expect *e, const struct record *r, uint32_t k,
                  bool (*visit)(const struct carried *x, void *context,
                                struct finding *f),
                  void *context, struct finding *f);
/* For spoils: changes the payload of the last rank's first collective for which
 * `is` is true. */
bool carried_spoil(const struct expect *e, struct record *r,
                   bool (*is)(const struct carried *x, void *context),
                   void *context);

/* Whether it gathers a unit's shards, or reduces a unit's gradients to shards,
 * with as many elements as these have. */
bool carried_is_gather(const struct carried *x);
bool carried_is_reduction(const struct carried *x);
/* Whether it all-reduces between replicas what a reduction has left. */
bool carried_is_across(const struct carried *x);
/* Whether the case evaluates behind each step, and the evaluation needs the
 * unit. */
bool carried_is_evaluated(const struct expect *e, uint32_t unit);
struct finding carried_place(const struct carried *x, const char *kind);

/* Whether the payload is that of these values. A gather sends its shard of c->n
 * elements to all alike; a reduction sends a different part to each of the
 * others, and `value` has these one behind the other; between replicas `value`
 * has c->n elements, of which each gets a block. False, too, if there is no
 * memory. */
bool carried_is(const struct carried *x, const float *value);
/* The payload of values that are all +0; 0: there is no memory. */
uint64_t carried_nothing(const struct carried *x);
/* Whether it sends the shard that the record shows in this stage and step.
 * *missing, if not NULL, is true where the record does not show all of the
 * shard, so that the result says nothing. */
bool carried_is_shard(const struct carried *x, uint32_t stage, uint32_t step,
                      bool *missing);

/* The row's `carried.holds` must hold for each collective of each rank. */
extern const struct requirement_check check_carried;

#endif
