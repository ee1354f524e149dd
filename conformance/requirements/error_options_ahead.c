/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error_options_ahead.c - how far to run ahead is a number of units: more than
 * there are is a mistake of the caller's, who wants to know where.
 */
#include "judge/compare/compare.h"

#include <string.h>

static const struct compare_answer answers[] = {
    {"prefetch-forward-beyond", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
    {"prefetch-backward-beyond", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
    {"reduces-beyond", FSDP_ERR_INVALID, FSDP_ERR_INVALID},
};

enum {
    N_ANSWERS = sizeof(answers) / sizeof(answers[0])
};

/* The driver notes each such refusal whose message does not name the option. */
static const char unnamed[] = "unnamed-option";

static bool applies(const struct expect *e)
{
    return e->c->scenario == CASE_OPTIONS;
}

static bool names_them(const struct expect *e, const struct record_rank *rank,
                       uint32_t k, struct finding *f)
{
    (void)e;
    for (uint32_t i = 0; i < rank->n_answers; i++) {
        if (strcmp(rank->answer[i].name, unnamed) == 0) {
            return finding_count(f, finding_at("refusal", -1, -1, k), i, 0,
                                 "a message that does not name the option; "
                                 "got: place among the answers");
        }
    }
    return true;
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_answers(e, r, answers, N_ANSWERS, f) &&
           compare_ranks(e, r, names_them, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    (void)e;
    return compare_spoil_answers(r, answers, N_ANSWERS);
}

REQUIREMENT(error_options_ahead) = {
    .id = "error.options-ahead",
    .text = "Prefetch and reductions in flight beyond the number of units "
            "are refused as INVALID, and the message names the option.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_ERRORS,
    .needs = "run.survives run.ranks-present",
    .claim = "prefetch",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
