/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_order.c - the strict profile leaves no freedom: a unit is gathered
 * where its window opens and reduced where it closes.
 */
#include "judge/compare.h"

static bool applies(const struct expect *e)
{
    return compare_case_communicates(e) && compare_case_strict(e);
}

static bool check(const struct expect *e,
                  const struct record_sequence *sequence, struct finding at,
                  struct finding *f)
{
    for (uint32_t i = 0; i < sequence->n && i < e->step.n; i++) {
        const struct record_collective *got = &sequence->c[i];
        const struct record_collective *want = &e->step.c[i];

        at.unit = got->unit;
        if (got->kind != want->kind) {
            return finding_count(f, at, got->kind, want->kind,
                                 "kind of a collective, out of order");
        }
        if (got->unit != want->unit) {
            return finding_count(f, at, got->unit, want->unit,
                                 "unit of a collective, out of order");
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
    struct record_sequence *s = compare_sequence_to_spoil(r);

    (void)e;
    for (uint32_t i = 0; s != NULL && i < s->n; i++) {
        if (true) {
            s->c[i].unit++;
            return true;
        }
    }
    return false;
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
