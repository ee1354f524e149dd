/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error_says_why.c - a refusal without a sentence costs its user an afternoon.
 */
#include "judge/compare/compare.h"

#include <string.h>

/* The driver notes each refusal that left env->error without its status, its
 * rank, a place or a message. */
static const char silent[] = "said-nothing";

static bool applies(const struct expect *e)
{
    uint32_t scenario = e->c->scenario;

    return scenario == CASE_MISUSE || scenario == CASE_OPTIONS ||
           scenario == CASE_DISAGREE || scenario == CASE_CANCEL ||
           case_resumes(e->c);
}

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    (void)e;
    for (uint32_t i = 0; i < rank->n_answers; i++) {
        if (strcmp(rank->answer[i].name, silent) == 0) {
            return finding_note(
                f, finding_at("answers", -1, -1, k),
                "%.31s: refused, but env->error lacks that status, this rank, "
                "a where or a message",
                i > 0 ? rank->answer[i - 1].name : "a call");
        }
    }
    return true;
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
    if (rank == NULL || rank->n_answers == 0) {
        return false;
    }
    memcpy(rank->answer[rank->n_answers - 1].name, silent, sizeof(silent));
    return true;
}

REQUIREMENT(error_says_why) = {
    .id = "error.says-why",
    .text = "Every refusal leaves its status, rank, place and a message in "
            "env->error.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_ERRORS,
    .needs = "run.survives run.ranks-present",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
