/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_prove.c - the checker proves itself. A requirement that held is shown
 * a copy of the same record with the least damage that it must notice; a
 * check that still holds, or fails without saying why, is worth nothing, and
 * then neither is any verdict.
 */
#include "judge/judge_internal.h"

#include "record/record_copy.h"
#include <stdio.h>

static void abandon(struct judge *j, const struct judge_view *v,
                    const struct requirement *q, const char *what)
{
    if (!j->out->abandoned) {
        j->out->abandoned = true;
        (void)snprintf(j->out->reason, sizeof(j->out->reason),
                       "the judge is wrong: %s %s (%.100s)", q->id, what,
                       v->summary->id);
    }
}

static bool says_something(const struct finding *f)
{
    return f->note[0] != '\0' || (f->stage != NULL && f->form >= FINDING_BITS &&
                                  f->form <= FINDING_BYTES);
}

static int prove(struct judge *j, const struct judge_view *v, uint32_t q)
{
    const struct requirement *requirement = j->out->requirement[q];
    struct finding f = {0};
    struct record copy;

    FSDP_TRY(record_copy(v->record, &copy));
    if (requirement_spoil(requirement, &v->expect, &copy)) {
        if (requirement_holds(requirement, &v->expect, &copy, &f)) {
            abandon(j, v, requirement, "does not notice a spoiled record");
        } else if (!says_something(&f)) {
            abandon(j, v, requirement, "fails without saying why");
        } else {
            j->out->n_proofs[q]++;
        }
    }
    record_release(&copy);
    return FSDP_OK;
}

int judge_prove(struct judge *j, const struct judge_view *v,
                const struct judge_item *items)
{
    for (uint32_t q = 0; q < j->out->n_requirements; q++) {
        if (items[q].outcome == JUDGE_PASS &&
            j->out->n_proofs[q] < JUDGE_PROOFS) {
            FSDP_TRY(prove(j, v, q));
        }
    }
    return FSDP_OK;
}
