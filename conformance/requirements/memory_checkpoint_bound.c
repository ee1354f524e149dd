/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_checkpoint_bound.c - a model that could be trained can be saved and
 * loaded: neither gathers it.
 */
#include "judge/compare/compare.h"

#include <string.h>

static bool applies(const struct expect *e)
{
    return case_resumes(e->c);
}

/* A unit; where all is gathered, a tensor. */
static uint64_t bound_of(const struct expect *e)
{
    uint64_t most = 0;

    if (e->c->scenario != CASE_RESUME_FULL) {
        return e->largest * sizeof(float);
    }
    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        uint64_t numel = fsdp_numel(e->model, p);
        most = numel > most ? numel : most;
    }
    return most * sizeof(float);
}

static struct record_answer *find(const struct record_rank *rank,
                                  const char *name)
{
    for (uint32_t i = 0; i < rank->n_answers; i++) {
        if (strcmp(rank->answer[i].name, name) == 0) {
            return &rank->answer[i];
        }
    }
    return NULL;
}

static bool check_one(const struct expect *e, const struct record_rank *rank,
                      uint32_t k, const char *name, uint64_t bound,
                      struct finding *f)
{
    const struct record_answer *a = find(rank, name);
    struct finding at = finding_at("memory", -1, -1, k);

    (void)e;
    if (a == NULL || a->status < 0) {
        return finding_text(f, at, "the bytes above rest are not recorded");
    }
    return (uint64_t)a->status <= bound ||
           finding_bytes(f, at, (uint64_t)a->status, bound, name);
}

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    bool saves = e->c->scenario <= CASE_RESUME_LOCAL;

    return (!saves ||
            check_one(e, rank, k, "save-above-rest", bound_of(e), f)) &&
           check_one(e, rank, k, "load-above-rest", e->largest * sizeof(float),
                     f);
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_ranks(e, r, check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    struct record_rank *rank = compare_rank_to_spoil(r, r->n_ranks - 1);
    struct record_answer *a = rank ? find(rank, "load-above-rest") : NULL;

    if (a == NULL || e->largest * sizeof(float) >= INT32_MAX) {
        return false;
    }
    a->status = (int32_t)(e->largest * sizeof(float)) + 1;
    return true;
}

REQUIREMENT(memory_checkpoint_bound) = {
    .id = "memory.checkpoint-bound",
    .text = "A save or a load has at no moment more than the largest unit "
            "live above what rests; gathering for a full save, the largest "
            "tensor.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_MEMORY,
    .needs = "memory.rest-after-shard",
    .claim = "load",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
