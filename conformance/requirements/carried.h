/* SPDX-License-Identifier: Apache-2.0 */
/*
 * carried.h - what a rank has sent in each of its collectives, as the process
 * knows it that carried them, beside what the record says that they were: for
 * the families of requirements that compare the two.
 */
#ifndef FSDP_CTS_CARRIED_H
#define FSDP_CTS_CARRIED_H

#include "judge/requirement.h"

/* A collective of a rank, and a hash of what it has sent in it. */
struct carried {
    const struct expect *e;
    const struct record *r;
    const struct record_sequence *q; /* what the step communicated, */
    uint32_t index;                  /* and which of it this is */
    const struct record_collective *c;
    uint64_t payload;
    uint32_t at;          /* among all of the rank's */
    uint32_t rank, shard; /* shard: the rank's in its group */
    uint32_t step;        /* or action; as many as there are: behind the last */
};

/* For `looked_at`: ranks were isolated, and have sent something. */
bool carried_is_known(const struct record *r);
/* Collectives that were carried, and those that the rank's file has. */
void carried_count(const struct record_rank *rank, uint64_t *carried,
                   uint64_t *shown);

/* Calls `visit` for each of rank k's, from the first step on, until it is
 * false. None, if the file does not have all that were carried, so that nobody
 * knows which is which: another life, say. */
bool carried_each(const struct expect *e, const struct record *r, uint32_t k,
                  bool (*visit)(const struct carried *x, void *context,
                                struct finding *f),
                  void *context, struct finding *f);
/* Changes the last rank's first payload of which `is` is true. */
bool carried_spoil(const struct expect *e, struct record *r,
                   bool (*is)(const struct carried *x, void *context),
                   void *context);

/* Of the unit's shards, of as many elements as they have. */
bool carried_is_gather(const struct carried *x);
bool carried_is_reduction(const struct carried *x);
/* The same between replicas, of what a reduction has left. */
bool carried_is_across(const struct carried *x);
/* Whether an evaluation behind each step asks for anything of the unit. */
bool carried_is_evaluated(const struct expect *e, uint32_t unit);
struct finding carried_place(const struct carried *x, const char *kind);

/* Whether the payload is that of these values: its shard, of c->n elements, to
 * all alike; in a reduction a part to each of the others, which lie behind each
 * other; between replicas c->n elements, of which each gets a block. False,
 * too, if there is no memory. */
bool carried_is(const struct carried *x, const float *value);
/* The payload in which all that is given is +0; 0: there is no memory. */
uint64_t carried_nothing(const struct carried *x);
/* Whether it gives the shard that the record shows in this stage and step.
 * *missing, if not NULL: not all of it is shown, and that is no answer. */
bool carried_is_shard(const struct carried *x, uint32_t stage, uint32_t step,
                      bool *missing);

/* `carried` holds of each collective of each rank. */
extern const struct requirement_check check_carried;

#endif
