/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_no_private_channel.c - what goes around the communicator is not
 * counted.
 */
#include "judge/compare/compare.h"

#include <string.h>

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    (void)e;
    return rank->memory.new_channels == 0 ||
           finding_count(f, finding_at("run", -1, -1, k),
                         rank->memory.new_channels, 0,
                         "sockets, pipes or shared mappings opened");
}

/* Only the local world looks. */
static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return strcmp(r->world, "local") != 0 || compare_ranks(e, r, check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    struct record_rank *rank = compare_rank_to_spoil(r, r->n_ranks - 1);

    (void)e;
    if (rank == NULL || strcmp(r->world, "local") != 0) {
        return false;
    }
    rank->memory.new_channels++;
    return true;
}

REQUIREMENT(comm_no_private_channel) = {
    .id = "comm.no-private-channel",
    .text = "Where ranks are processes of their own, an engine opens no "
            "socket, pipe or shared mapping.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_COMM,
    .needs = "run.completes",
    .applies = compare_case_trains,
    .holds = holds,
    .spoil = spoil,
};
