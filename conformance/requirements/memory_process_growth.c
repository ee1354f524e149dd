/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_process_growth.c - an engine that maps memory behind the device is
 * seen from outside.
 */
#include "judge/compare/compare.h"

#include <string.h>

/* For stacks, the C library, the batch, the communicator's buffers, and a
 * device's own workspace (the packed panels of a matrix product, say). */
enum {
    SLACK_BYTES = 5 << 20
};

/* Only a large model stands out from the slack. */
static bool applies(const struct expect *e)
{
    return compare_case_trains(e) && strcmp(e->c->workload, "linear") == 0 &&
           strcmp(e->c->size, "large") == 0;
}

static uint64_t bound_of(const struct record_memory *m)
{
    return m->peak_storage + m->peak[FSDP_ACTIVATION] + SLACK_BYTES;
}

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    const struct record_memory *m = &rank->memory;

    (void)e;
    return m->process_growth <= bound_of(m) ||
           finding_bytes(
               f, finding_at("process", -1, -1, k), m->process_growth,
               bound_of(m),
               "grown at peak; recorded storage, activations and slack");
}

/* Only the local world knows. */
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
    rank->memory.process_growth = bound_of(&rank->memory) + 1;
    return true;
}

REQUIREMENT(memory_process_growth) = {
    .id = "memory.process-growth",
    .text = "In a world of processes none grows by more than the "
            "recorded storage, activations and a fixed slack.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_MEMORY,
    .needs = "memory.live-within-storage",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
