/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_slope.c - one block more costs what its shards take at rest: what is
 * held until the end of a pass would cost more with every block.
 */
#include "judge/compare/compare.h"

#include <string.h>

/* The same model with one block less. */
static void change(struct run_case *c)
{
    memset(c->size, 0, sizeof(c->size));
    memcpy(c->size, "tiny", sizeof("tiny"));
}

static bool applies(const struct expect *e)
{
    return strcmp(e->c->workload, "gpt") == 0 &&
           strcmp(e->c->size, "tall") == 0 && compare_case_strict(e) &&
           e->shards > 1 && e->options.reshard_after_forward != 0 &&
           (e->c->wrap == CASE_WRAP_LAYER || e->c->wrap == CASE_WRAP_BLOCK) &&
           compare_companion(e, change) != NULL;
}

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    const struct record *other = compare_companion(e, change);
    const struct record_rank *there =
        other == NULL ? NULL : compare_rank(other, k);
    uint64_t got;
    uint64_t want;

    if (there == NULL) {
        return finding_missing(f, finding_at("memory", -1, -1, k),
                               "there is no record to compare with");
    }
    got = rank->memory.peak_parameters - there->memory.peak_parameters;
    want = rank->memory.after_shard.live[FSDP_PARAM_SHARD] -
           there->memory.after_shard.live[FSDP_PARAM_SHARD];
    return (got == want && want > 0) ||
           finding_bytes(f, finding_at("parameters", -1, -1, k), got, want,
                         "more at the peak with one block more; want: what "
                         "its shards take at rest");
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_ranks(e, r, check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    struct record_rank *rank = compare_rank_to_spoil(r, r->n_ranks - 1);

    (void)e;
    if (rank == NULL) {
        return false;
    }
    rank->memory.peak_parameters++;
    return true;
}

REQUIREMENT(memory_slope) = {
    .id = "memory.slope",
    .text = "One block more raises the peak of parameters by what its shards "
            "take at rest, no more.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_MEMORY,
    .needs = "memory.peak-parameters memory.rest-after-shard",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
