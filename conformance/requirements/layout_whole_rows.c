/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout_whole_rows.c - what is sharded by rows can be told apart by rows: an
 * optimizer that works on matrices, or a checkpoint of slices, needs no
 * other rank to find where a row begins.
 */
#include "judge/compare/compare.h"

static bool applies(const struct expect *e)
{
    return compare_case_staged(e) && e->packs;
}

/* Elements of a row of dimension 0; 1 where there are no rows. */
static uint64_t row_of(const struct expect *e, uint32_t p)
{
    uint64_t row = 1;

    for (uint32_t d = 1; d < e->model->parameter_n_dims[p]; d++) {
        row *= e->model->parameter_shape[p][d];
    }
    return row > 0 ? row : 1;
}

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    for (uint32_t i = 0; rank->tensor != NULL && i < rank->n_tensors; i++) {
        const struct record_tensor *t = &rank->tensor[i];
        struct finding at = finding_at("initial", 0, -1, k);
        uint64_t row;

        if (t->stage != RECORD_INITIAL ||
            t->parameter >= e->model->n_parameters) {
            continue;
        }
        row = row_of(e, t->parameter);
        at.parameter = t->parameter;
        if (t->first % row != 0) {
            at.element = (int64_t)t->first;
            return finding_count(f, at, t->first % row, 0,
                                 "elements into its row a part begins");
        }
        if (t->n % row != 0) {
            at.element = (int64_t)t->first;
            return finding_count(f, at, t->n % row, 0,
                                 "elements of a row that a part has of its "
                                 "last one, and not the rest");
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
    for (uint32_t k = r->n_ranks; k > 0; k--) {
        struct record_rank *rank = compare_rank_to_spoil(r, k - 1);

        for (uint32_t i = 0; rank != NULL && i < rank->n_tensors; i++) {
            struct record_tensor *t = &rank->tensor[i];

            if (t->stage == RECORD_INITIAL && t->n > 0 &&
                row_of(e, t->parameter) > 1) {
                t->n--;
                return true;
            }
        }
    }
    return false;
}

REQUIREMENT(layout_whole_rows) = {
    .id = "layout.whole-rows",
    .text = "In the per-parameter layout every part that a rank owns begins "
            "and ends with a row of dimension 0.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_LAYOUT,
    .needs = "layout.no-padding",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
