/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout_empty_shards.c - a rank without an element still takes part in every
 * step.
 */
#include "judge/compare/compare.h"

#include <stdlib.h>

static bool owns_nothing(const struct expect *e, uint32_t shard)
{
    struct expect_part *part = NULL;
    uint32_t n = 0;
    bool none = expect_parts(e, shard, &part, &n) == FSDP_OK && n == 0;

    free(part);
    return none;
}

/* The last shard is the first to be empty. */
static bool applies(const struct expect *e)
{
    return compare_case_staged(e) && owns_nothing(e, e->shards - 1);
}

static bool is_owned_stage(uint32_t stage)
{
    return stage != RECORD_UNSHARDED && stage != RECORD_LOCAL_GRADIENT &&
           stage != RECORD_SUMMONED;
}

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    if (!owns_nothing(e, k % e->shards)) {
        return true;
    }
    for (uint32_t i = 0; rank->tensor != NULL && i < rank->n_tensors; i++) {
        const struct record_tensor *t = &rank->tensor[i];

        if (t->n > 0 && is_owned_stage(t->stage)) {
            return finding_count(
                f, finding_at(record_stage_name(t->stage), t->step, -1, k),
                t->n, 0, "elements of a rank whose shards are empty");
        }
    }
    return rank->n_losses == compare_n_losses(e) ||
           finding_count(f, finding_at("run", -1, -1, k), rank->n_losses,
                         compare_n_losses(e),
                         "losses of a rank whose shards are empty");
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_ranks(e, r, check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    struct record_rank *rank = compare_rank_to_spoil(r, e->c->ranks - 1);

    if (rank == NULL || rank->n_losses == 0) {
        return false;
    }
    rank->n_losses--;
    return true;
}

REQUIREMENT(layout_empty_shards) = {
    .id = "layout.empty-shards",
    .text = "A rank whose shards are all padding owns nothing at any "
            "stage and still completes every microbatch.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_LAYOUT,
    .needs = "layout.chunk-rule run.shows-every-step",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
