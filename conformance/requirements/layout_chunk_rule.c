/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout_chunk_rule.c - which elements a shard holds is specified, since folds
 * and checkpoints depend on it.
 */
#include "judge/compare.h"

#include <stdlib.h>

static bool check(const struct expect *e, const struct record *r,
                  const struct compare_part *part, struct finding *f)
{
    (void)e;
    if (compare_values(r, RECORD_INITIAL, part) == NULL) {
        return compare_missing(part, RECORD_INITIAL, f);
    }
    return true;
}

/* All wanted parts are there; now none may be there besides. */
static bool check_number(const struct expect *e, const struct record_rank *rank,
                         uint32_t k, struct finding *f)
{
    struct expect_part *part = NULL;
    uint32_t n_parts = 0, got = 0, want = 0;

    if (expect_parts(e, k % e->shards, &part, &n_parts) != FSDP_OK) {
        return finding_text(f, finding_at("initial", 0, -1, k),
                            "the judge has no memory for this rank's parts");
    }
    for (uint32_t i = 0; i < n_parts; i++) {
        want += part[i].n > 0;
    }
    free(part);
    for (uint32_t i = 0; rank->tensor != NULL && i < rank->n_tensors; i++) {
        got += rank->tensor[i].stage == RECORD_INITIAL && rank->tensor[i].n > 0;
    }
    return got == want ||
           finding_count(f, finding_at("initial", 0, -1, k), got, want,
                         "parts of parameters that this rank owns");
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_parts(e, r, 0, 1, check, f) &&
           compare_ranks(e, r, check_number, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    struct record_tensor *t = compare_tensor_to_spoil(r, RECORD_INITIAL, 0);

    (void)e;
    if (t == NULL) {
        return false;
    }
    t->n--;
    return true;
}

REQUIREMENT(layout_chunk_rule) = {
    .id = "layout.chunk-rule",
    .text = "Rank s of the shard dimension owns the s-th of S equal "
            "parts of each padded flat parameter, no more and no less.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_LAYOUT,
    .needs = "layout.covers-once",
    .applies = compare_case_staged,
    .holds = holds,
    .spoil = spoil,
};
