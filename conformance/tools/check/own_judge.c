/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_judge.c - asks all requirements, and proves those that hold.
 */
#include "tools/check/own_judge.h"

#include <stdlib.h>
#include <string.h>

const char *own_outcome_name(uint32_t outcome)
{
    static const char *const name[] = {"pass", "fail", "blocked",
                                       "not-applicable"};

    return outcome < OWN_N_OUTCOMES ? name[outcome] : NULL;
}

const char *own_verdict_name(uint32_t verdict)
{
    static const char *const name[] = {"CONFORMANT", "NON-CONFORMANT",
                                       "INCOMPLETE"};

    return verdict <= OWN_UNDECIDED ? name[verdict] : NULL;
}

static void prove(const struct own_requirement *q, struct own_set *s,
                  struct own_item *item)
{
    struct own_spoil undo = {NULL, 0, {0}};
    struct own_finding f = own_nowhere();

    item->damaged = q->spoil(q, s, &undo);
    if (item->damaged) {
        item->proved = !q->holds(q, s, &f);
        own_repair(&undo);
    }
}

static void ask(const struct own_requirement *q, struct own_set *s,
                struct own_item *item)
{
    item->finding = own_nowhere();
    if (q->applies && !q->applies(s)) {
        item->outcome = OWN_NOT_APPLICABLE;
    } else if (!q->holds(q, s, &item->finding)) {
        item->outcome = OWN_FAIL;
    } else {
        item->outcome = OWN_PASS;
        prove(q, s, item);
    }
}

/* A mistake before the first step has step -1. */
static bool is_before(const struct own_finding *a, const struct own_finding *b)
{
    return a->step != b->step ? a->step < b->step : a->unsynced && !b->unsynced;
}

/* Chooses the earliest failure as the one to look at first. */
static void choose_first(struct own_result *r)
{
    r->first = UINT32_MAX;
    for (uint32_t i = 0; i < own_n_requirements; i++) {
        if (r->item[i].outcome == OWN_FAIL &&
            (r->first == UINT32_MAX ||
             is_before(&r->item[i].finding, &r->item[r->first].finding))) {
            r->first = i;
        }
    }
}

static void look(const struct own_set *s, struct own_scope *scope)
{
    for (uint32_t p = 0; p < s->unsharded.n_parameters; p++) {
        scope->elements += s->unsharded.parameter[p].n;
    }
    for (uint32_t r = 0; r < s->world; r++) {
        scope->tensors += s->rank[r].n_tensors;
        for (uint32_t i = 0; i < s->rank[r].n_tensors; i++) {
            const struct own_tensor *t = &s->rank[r].tensor[i];

            if (own_stage_is(t, "reduced")) {
                scope->added += t->n_values;
                scope->added_all += t->n;
            }
        }
    }
}

int own_judge(struct own_set *s, struct own_result *out)
{
    bool basis = true;

    memset(out, 0, sizeof(*out));
    out->item = calloc(own_n_requirements, sizeof(*out->item));
    if (!out->item) {
        return FSDP_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < own_n_requirements; i++) {
        struct own_item *item = &out->item[i];

        if (basis) {
            ask(&own_requirements[i], s, item);
            basis = item->outcome != OWN_FAIL ||
                    !own_is_basis(&own_requirements[i]);
        } else {
            item->finding = own_nowhere();
            item->outcome = OWN_BLOCKED;
        }
        out->count[item->outcome]++;
        out->damaged += item->damaged;
        out->proved += item->proved;
    }
    choose_first(out);
    look(s, &out->scope);
    out->verdict = out->count[OWN_FAIL] > 0     ? OWN_NON_CONFORMANT
                   : out->proved < out->damaged ? OWN_UNDECIDED
                                                : OWN_CONFORMANT;
    return FSDP_OK;
}

void own_result_release(struct own_result *r)
{
    free(r->item);
    memset(r, 0, sizeof(*r));
}
