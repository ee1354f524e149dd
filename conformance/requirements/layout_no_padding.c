/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout_no_padding.c - padding fills a flat parameter, or the rows of one, to
 * equal shards and belongs to no parameter.
 */
#include "judge/compare/compare.h"

static bool check(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, struct finding *f)
{
    for (uint32_t i = 0; rank->tensor != NULL && i < rank->n_tensors; i++) {
        const struct record_tensor *t = &rank->tensor[i];
        struct finding at =
            finding_at(record_stage_name(t->stage), t->step, t->microbatch, k);
        uint64_t numel;

        at.parameter = t->parameter;
        if (t->parameter >= e->model->n_parameters) {
            return finding_count(f, at, t->parameter, e->model->n_parameters,
                                 "no such parameter; the model has so many");
        }
        numel = fsdp_numel(e->model, t->parameter);
        if (t->stage == RECORD_LOCAL_GRADIENT) {
            continue; /* whole, and of what the model wrote */
        }
        if (t->first > numel || t->n > numel - t->first) {
            at.element = (int64_t)numel;
            return finding_count(
                f, at, t->n, t->first > numel ? 0 : numel - t->first,
                "elements of a part that reaches beyond its parameter");
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
    struct record_tensor *t = compare_tensor_to_spoil(r, RECORD_INITIAL, 0);

    if (t == NULL) {
        return false;
    }
    t->first = fsdp_numel(e->model, t->parameter);
    return true;
}

REQUIREMENT(layout_no_padding) = {
    .id = "layout.no-padding",
    .text = "No part that a rank shows reaches beyond the end of its "
            "parameter.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_LAYOUT,
    .needs = "run.completes stream.no-race",
    .applies = compare_case_staged,
    .holds = holds,
    .spoil = spoil,
};
