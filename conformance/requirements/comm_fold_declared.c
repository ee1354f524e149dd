/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_fold_declared.c - the order of a fold is part of the result, so the
 * reduction must ask for it.
 */
#include "judge/compare/compare.h"

static bool check(const struct expect *e, const struct record_collective *c,
                  uint32_t index, struct finding at, struct finding *f)
{
    const struct compare_wording wording = {
        "asks for fold", case_fold_name(c->fold), case_fold_name(e->c->fold)};

    return c->kind == FSDP_ALL_GATHER || c->fold == e->c->fold ||
           finding_collective(e, f, at, c, index, &wording);
}

static bool applies(const struct expect *e)
{
    return compare_case_communicates(e) && !e->any_fold;
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    return compare_collectives(e, r, check, f);
}

static bool spoil(const struct expect *e, struct record *r)
{
    struct record_sequence *s = compare_sequence_to_spoil(r);

    (void)e;
    for (uint32_t i = 0; s != NULL && i < s->n; i++) {
        if (s->c[i].kind != FSDP_ALL_GATHER) {
            s->c[i].fold++;
            return true;
        }
    }
    return false;
}

REQUIREMENT(comm_fold_declared) = {
    .id = "comm.fold-declared",
    .text = "Every reduction asks the communicator for the fold of the "
            "options.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_COMM,
    .needs = "comm.nothing-else",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
