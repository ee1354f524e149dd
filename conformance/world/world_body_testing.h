/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world_body_testing.h - test only: a body that tries every collective on a
 * mesh and compares what it gets with plain scalar loops, and one for exchange.
 * It runs in every kind of world, so it asserts nothing; it returns.
 */
#ifndef FSDP_CTS_WORLD_BODY_TESTING_H
#define FSDP_CTS_WORLD_BODY_TESTING_H

#include "world.h"

/* Context: the struct fsdp_mesh. */
int world_body_collectives(void *mesh, struct world_rank *rank);
int world_body_exchange(void *unused, struct world_rank *rank);

/* One collective of n floats in the world; `in` and `out` as it needs. */
int world_body_run(struct world_rank *rank, uint32_t kind, uint64_t n,
                   const void *in, void *out);

/* Calls no collective until another rank has waited too long. */
void world_body_dawdle(struct world_rank *rank);

/* Describes the first failure, for an assertion's message; "" if there is
 * none. */
const char *world_body_verdict(const struct world_result *result, uint32_t n);

#endif
