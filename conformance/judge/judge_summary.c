/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_summary.c - the few numbers of a case that people look at first: its
 * curve beside the unsharded one, its peak and its collectives beside the
 * oracle's. They decide nothing; requirements do.
 */
#include "judge/judge_internal.h"

#include <fsdp/arith/bits.h>

/* The folded loss number i; false: some rank has none. An unsharded run may
 * have all of its ranks in one record of one rank, folded already. */
static bool fold_loss(const struct expect *e, const struct record *r,
                      uint32_t i, float *out)
{
    float x[WORLD_MAX_RANKS];

    for (uint32_t k = 0; k < r->n_ranks && k < WORLD_MAX_RANKS; k++) {
        if (!r->rank[k].present || i >= r->rank[k].n_losses) {
            return false;
        }
        x[k] = r->rank[k].loss[i];
    }
    if (r->n_ranks != e->c->ranks && r->n_ranks != 1) {
        return false;
    }
    *out = r->n_ranks == e->c->ranks ? expect_fold_loss(e, x) : x[0];
    return true;
}

static void summarise_losses(struct judge_view *v)
{
    struct judge_case *s = v->summary;
    uint32_t n = v->expect.c->steps * v->expect.c->microbatches;

    if (v->expect.baseline == NULL) {
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        float got;
        float want;

        if (!fold_loss(&v->expect, v->record, i, &got) ||
            !fold_loss(&v->expect, v->expect.baseline, i, &want)) {
            return;
        }
        s->n_losses++;
        s->losses_off += fsdp_f32_bits(got) != fsdp_f32_bits(want) ? 1 : 0;
        s->final_loss = got;
    }
    s->has_losses = n > 0;
}

void judge_summarise(struct judge_view *v)
{
    struct judge_case *s = v->summary;
    const struct record_rank *first = &v->record->rank[0];

    summarise_losses(v);
    for (uint32_t k = 0; k < v->record->n_ranks; k++) {
        const struct record_rank *rank = &v->record->rank[k];

        if (rank->present && rank->memory.peak_parameters > s->peak) {
            s->peak = rank->memory.peak_parameters;
        }
        if (rank->present && rank->seconds > s->seconds) {
            s->seconds = rank->seconds;
        }
    }
    s->peak_expected = v->expect.peak_parameters;
    s->collectives_expected = v->expect.step.n;
    if (first->present && first->n_steps > 0 &&
        first->step_sequence[0] < first->n_sequences) {
        s->collectives = first->sequence[first->step_sequence[0]].n;
        s->has_counts = true;
    }
}
