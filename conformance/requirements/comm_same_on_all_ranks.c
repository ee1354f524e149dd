/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_same_on_all_ranks.c - ranks that disagree on the next collective hang,
 * or mix their data.
 */
#include "judge/compare/compare.h"

#include <stdio.h>

static bool same_sequence(const struct record_rank *a, uint32_t i,
                          const struct record_rank *b, uint32_t j,
                          struct finding at, struct finding *f)
{
    const struct record_sequence *x = compare_sequence(a, i);
    const struct record_sequence *y = compare_sequence(b, j);

    if (x == NULL || y == NULL) {
        return finding_text(f, at, "these collectives are not recorded");
    }
    for (uint32_t c = 0; c < x->n && c < y->n; c++) {
        if (!compare_same_collective(&x->c[c], &y->c[c])) {
            char note[sizeof(f->note)];

            at.unit = y->c[c].unit;
            snprintf(note, sizeof(note),
                     "collective %u of the step is another one than rank 0's",
                     c);
            return finding_text(f, at, note);
        }
    }
    return x->n == y->n ||
           finding_count(f, at, y->n, x->n,
                         "collectives; rank 0 made another number (want)");
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    const struct record_rank *first = compare_rank(r, 0);

    for (uint32_t k = 1; k < e->c->ranks; k++) {
        const struct record_rank *rank = compare_rank(r, k);

        for (uint32_t t = 0; t < e->c->steps; t++) {
            struct finding at = finding_at("collectives", t, -1, k);

            if (first == NULL || rank == NULL || first->step_sequence == NULL ||
                rank->step_sequence == NULL || t >= first->n_steps ||
                t >= rank->n_steps) {
                return finding_text(f, at,
                                    "this step's collectives are not recorded");
            }
            if (!same_sequence(first, first->step_sequence[t], rank,
                               rank->step_sequence[t], at, f)) {
                return false;
            }
        }
    }
    return true;
}

static bool spoil(const struct expect *e, struct record *r)
{
    struct record_collective *c = compare_collective_to_spoil(r);

    (void)e;
    if (c == NULL) {
        return false;
    }
    c->root++;
    return true;
}

REQUIREMENT(comm_same_on_all_ranks) = {
    .id = "comm.same-on-all-ranks",
    .text = "All ranks make the same collectives in the same order, in "
            "every field.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_COMM,
    .needs = "comm.bytes comm.dims comm.fold-declared comm.order",
    .applies = compare_case_communicates,
    .holds = holds,
    .spoil = spoil,
};
