/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_prove.c - the checker proves itself. A requirement that held is shown
 * a copy of the same record with the least damage that it must notice; a
 * check that still holds, or fails without saying why, is worth nothing on this
 * record. Whether the requirement holds there is then open. All others are
 * judged as ever: no record ends the judge.
 */
#include "judge/judge_internal.h"

#include "record/record.h"
#include "record/record_spill.h"
#include <stdio.h>
#include <stdlib.h>

/* What passed is open; why is said there, and of the first also in the run's
 * reason. */
static int abandon(struct judge *j, const struct judge_view *v, uint32_t q,
                   const char *what, struct judge_item *item)
{
    struct finding f = judge_nowhere();

    if (!j->out->abandoned) {
        j->out->abandoned = true;
        (void)snprintf(j->out->reason, sizeof(j->out->reason),
                       "the check of %s %s (%.100s)",
                       j->out->requirement[q]->id, what, v->summary->id);
    }
    f.form = FINDING_MISSING;
    (void)snprintf(f.note, sizeof(f.note),
                   "this check %s, made of this one: whether it holds here "
                   "cannot be told",
                   what);
    free(item->detail);
    item->outcome = JUDGE_INCOMPLETE;
    return judge_keep(v, &f, item);
}

static bool says_something(const struct finding *f)
{
    return f->note[0] != '\0' ||
           (f->stage && f->form >= FINDING_BITS && f->form <= FINDING_BYTES);
}

static int prove(struct judge *j, const struct judge_view *v, uint32_t q,
                 struct judge_item *item)
{
    const struct requirement *requirement = j->out->requirement[q];
    struct finding f = {0};
    struct record copy;
    int status = FSDP_OK;

    FSDP_TRY(record_copy(v->record, &copy));
    if (requirement_spoil(requirement, &v->expect, &copy)) {
        status = record_spill_settle(v->record, &copy);
        if (status != FSDP_OK) {
            /* nothing can be told of it */
        } else if (requirement_holds(requirement, &v->expect, &copy, &f)) {
            status = abandon(j, v, q, "does not notice a spoiled record", item);
        } else if (!says_something(&f)) {
            status = abandon(
                j, v, q, "fails without saying why on a spoiled record", item);
        } else {
            j->out->n_proofs[q]++;
        }
    }
    record_release(&copy);
    return status;
}

int judge_prove(struct judge *j, const struct judge_view *v,
                struct judge_item *items)
{
    for (uint32_t q = 0; q < j->out->n_requirements; q++) {
        if (items[q].outcome == JUDGE_PASS &&
            j->out->n_proofs[q] < JUDGE_PROOFS) {
            const double began = judge_seconds(j);

            FSDP_TRY(prove(j, v, q, &items[q]));
            j->out->seconds[q] += judge_seconds(j) - began;
        }
    }
    return FSDP_OK;
}
