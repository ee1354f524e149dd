/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout_covers_once.c - the shards are the parameter, cut up: nothing twice,
 * nothing lost.
 */
#include "judge/compare/compare.h"

#include <stdlib.h>

/* Counts the owners of each element of parameter p in ranks [from, from + S);
 * a part that does not fit is layout.no-padding's to report. */
static void count_owners(const struct expect *e, const struct record *r,
                         uint32_t from, uint32_t p, uint64_t numel,
                         uint8_t *owners)
{
    for (uint32_t k = from; k < from + e->shards; k++) {
        const struct record_rank *rank = compare_rank(r, k);
        uint32_t i = 0;
        uint32_t n = 0;

        if (rank != NULL && rank->tensor != NULL) {
            n = record_parts(rank, RECORD_INITIAL, 0, 0, p, &i);
        }
        for (; n > 0 && i < rank->n_tensors; n--, i++) {
            const struct record_tensor *t = &rank->tensor[i];

            for (uint64_t x = t->first; x < numel && x - t->first < t->n; x++) {
                owners[x] = (uint8_t)(owners[x] + (owners[x] < 2));
            }
        }
    }
}

static bool parameter_holds(const struct expect *e, const struct record *r,
                            uint32_t from, uint32_t p, struct finding *f)
{
    uint64_t numel = fsdp_numel(e->model, p);
    uint64_t x = 0;
    uint8_t *owners = calloc(numel > 0 ? numel : 1, 1);
    struct finding at = finding_at("initial", 0, -1, -1);
    bool once;

    at.parameter = p;
    if (owners == NULL) {
        return finding_text(f, at, "the judge has no memory to count owners");
    }
    count_owners(e, r, from, p, numel, owners);
    while (x < numel && owners[x] == 1) {
        x++;
    }
    once = x == numel;
    if (!once) {
        at.element = (int64_t)x;
        at.unit = e->unit_of_parameter[p];
        finding_count(f, at, owners[x], 1,
                      owners[x] == 0 ? "owners of this element: none"
                                     : "owners of this element: more than one");
    }
    free(owners);
    return once;
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    for (uint32_t from = 0; from < e->c->ranks; from += e->shards) {
        for (uint32_t p = 0; p < e->model->n_parameters; p++) {
            if (e->model->parameter_alias[p] < 0 &&
                !parameter_holds(e, r, from, p, f)) {
                return false;
            }
        }
    }
    return true;
}

static bool spoil(const struct expect *e, struct record *r)
{
    struct record_tensor *t = compare_tensor_to_spoil(r, RECORD_INITIAL, 0);

    (void)e;
    if (t == NULL) {
        return false;
    }
    t->n--;
    return true;
}

REQUIREMENT(layout_covers_once) = {
    .id = "layout.covers-once",
    .text = "In each replica every element of every parameter is owned "
            "by exactly one rank.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_LAYOUT,
    .needs = "layout.no-padding layout.whole-rows",
    .applies = compare_case_staged,
    .holds = holds,
    .spoil = spoil,
};
