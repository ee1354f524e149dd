/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_order.c - the strict profile leaves no freedom: a unit is gathered
 * where its window opens and reduced where it closes.
 */
#include "judge/compare/compare.h"

static bool applies(const struct expect *e)
{
    return compare_case_communicates(e) && compare_case_strict(e);
}

static bool out_of_order(const struct expect *e, uint32_t i,
                         const struct record_collective *got, struct finding at,
                         struct finding *f)
{
    char is[COMPARE_WORDS_BYTES];
    char expected[COMPARE_WORDS_BYTES];

    compare_collective_words(e, got, is);
    compare_collective_words(e, &e->step.c[i], expected);
    at.unit = got->unit == FSDP_NO_UNIT ? -1 : (int64_t)got->unit;
    return finding_note(f, at, "collective %u of the step is %s, expected %s",
                        i + 1, is, expected);
}

static bool check(const struct expect *e,
                  const struct record_sequence *sequence, struct finding at,
                  struct finding *f)
{
    for (uint32_t i = 0; i < sequence->n && i < e->step.n; i++) {
        const struct record_collective *got = &sequence->c[i];
        const struct record_collective *want = &e->step.c[i];

        if (got->kind != want->kind || got->unit != want->unit) {
            return out_of_order(e, i, got, at, f);
        }
    }
    return sequence->n == e->step.n ||
           finding_count(f, at, sequence->n, e->step.n,
                         "collectives in this step");
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_steps(e, r, check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    struct record_collective *c = compare_collective_to_spoil(r);

    (void)e;
    if (c == NULL) {
        return false;
    }
    c->unit++;
    return true;
}

REQUIREMENT(comm_order) = {
    .id = "comm.order",
    .text = "Without prefetch a step gathers and reduces its units "
            "exactly in the order in which their windows open and "
            "close.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_COMM,
    .needs = "comm.all-gather-count comm.reduce-scatter-count "
             "comm.all-reduce-count",
    .claim = "strict-memory",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
