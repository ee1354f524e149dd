/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grad_distinct.c - when all ranks have the same batch, a missing reduction
 * gives the right answer.
 */
#include "judge/compare/compare.h"

#include <stdio.h>
#include <string.h>

static bool applies(const struct expect *e)
{
    return compare_case_staged(e) && e->c->data == WORKLOAD_NATURAL &&
           e->c->ranks * e->c->microbatches > 1;
}

/* Batch j of a step: rank j % K, microbatch j / K. */
static const float *gradient_of(const struct expect *e, const struct record *r,
                                uint32_t j, uint32_t p)
{
    struct compare_part part = {.rank = j % e->c->ranks,
                                .microbatch = j / e->c->ranks,
                                .parameter = p,
                                .n = fsdp_numel(e->model, p)};

    return compare_values(r, RECORD_LOCAL_GRADIENT, &part);
}

static bool are_distinct(const struct expect *e, const struct record *r,
                         uint32_t a, uint32_t b)
{
    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        const float *x = gradient_of(e, r, a, p);
        const float *y = gradient_of(e, r, b, p);

        if (x != NULL && y != NULL &&
            memcmp(x, y, fsdp_numel(e->model, p) * sizeof(*x)) != 0) {
            return true;
        }
    }
    return false;
}

static bool holds(const struct expect *e, const struct record *r,
                  struct finding *f)
{
    uint32_t n = e->c->ranks * e->c->microbatches;

    for (uint32_t b = 1; b < n; b++) {
        for (uint32_t a = 0; a < b; a++) {
            if (!are_distinct(e, r, a, b)) {
                char note[sizeof(f->note)];

                snprintf(note, sizeof(note),
                         "has the gradients of rank %u, microbatch %u",
                         a % e->c->ranks, a / e->c->ranks);
                return finding_text(f,
                                    finding_at("local-gradient", 0,
                                               b / e->c->ranks,
                                               b % e->c->ranks),
                                    note);
            }
        }
    }
    return true;
}

/* Gives the last batch the gradients of the first. */
static bool spoil(const struct expect *e, struct record *r)
{
    uint32_t last = e->c->ranks * e->c->microbatches - 1;
    struct record_rank *rank = compare_rank_to_spoil(r, e->c->ranks - 1);
    bool changed = false;

    for (uint32_t i = 0; rank != NULL && i < rank->n_tensors; i++) {
        struct record_tensor *t = &rank->tensor[i];
        const float *from;

        if (t->stage != RECORD_LOCAL_GRADIENT || t->step != 0 ||
            t->microbatch != last / e->c->ranks || t->n == 0 ||
            t->data == NULL) {
            continue;
        }
        if (t->parameter >= e->model->n_parameters ||
            t->n != fsdp_numel(e->model, t->parameter)) {
            return false;
        }
        from = gradient_of(e, r, 0, t->parameter);
        if (from == NULL) {
            return false;
        }
        memcpy(t->data, from, t->n * sizeof(*t->data));
        changed = true;
    }
    return changed;
}

REQUIREMENT(grad_distinct) = {
    .id = "grad.distinct",
    .text = "On natural data no two ranks or microbatches of a step "
            "have the same local gradient.",
    .since = "1.0",
    .must = 1,
    .level = LEVEL_GRADIENT,
    .needs = "grad.finite",
    .applies = applies,
    .holds = holds,
    .spoil = spoil,
};
