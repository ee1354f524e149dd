/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_figures.c - the numbers of a case that people look at. First the few
 * that stand in tables: its curve beside the unsharded one, its peak and its
 * collectives beside the oracle's. Then what the record shows to the last byte:
 * peaks, collectives, bytes on the wire, allocations, operator launches, and
 * the timeline of one step, which conformance/tools/track/ compares with those
 * of earlier runs. They decide nothing; requirements do.
 */
#include "judge/judge_internal.h"

#include <fsdp/arith/bits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The few of the tables ---- */

bool judge_fold_loss(const struct expect *e, const struct record *r, uint32_t i,
                     float *out)
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
    uint32_t n = v->expect.c->steps * case_losses_a_step(v->expect.c);

    if (!v->expect.baseline) {
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        float got;
        float want;

        if (!judge_fold_loss(&v->expect, v->record, i, &got) ||
            !judge_fold_loss(&v->expect, v->expect.baseline, i, &want)) {
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
        if (rank->present && rank->memory.process_growth > s->grown) {
            s->grown = rank->memory.process_growth;
        }
        if (rank->present && rank->seconds > s->seconds) {
            s->seconds = rank->seconds;
        }
    }
    s->peak_expected = v->expect.peak_parameters;
    s->textbook = 4 * v->expect.resting + v->expect.largest_bytes;
    s->collectives_expected = v->expect.step.n;
    if (first->present && first->n_steps > 0 &&
        first->step_sequence[0] < first->n_sequences) {
        s->collectives = first->sequence[first->step_sequence[0]].n;
        s->has_counts = true;
    }
}

/* ---- To the last byte ---- */

const char *judge_figure_name(uint32_t figure)
{
    static const char *const name[JUDGE_N_FIGURES] = {
        "peak.param-shard",
        "peak.param-full",
        "peak.grad-shard",
        "peak.grad-full",
        "peak.optim",
        "peak.staging",
        "peak.activation",
        "peak.buffer",
        "peak.parameters",
        "peak.engine",
        "peak.storage",
        "collectives.all-gather",
        "collectives.reduce-scatter",
        "collectives.all-reduce",
        "collectives.broadcast",
        "collectives.barrier",
        "wire-bytes",
        "allocations",
        "launches"};

    return figure < JUDGE_N_FIGURES ? name[figure] : NULL;
}

/* How many bytes a rank gets from the others of its group. */
static uint64_t wire_bytes(const struct run_case *c,
                           const struct record_collective *x)
{
    uint64_t bytes = x->n * fsdp_dtype_bytes(x->dtype);
    uint64_t group = x->dim == FSDP_DIM_SHARD       ? case_shard_degree(c)
                     : x->dim == FSDP_DIM_REPLICATE ? c->replicas
                                                    : c->ranks;

    switch (x->kind) {
    case FSDP_ALL_GATHER:
    case FSDP_REDUCE_SCATTER:
        return bytes * (group - 1);
    case FSDP_ALL_REDUCE:
        return (2 * bytes * (group - 1) + group - 1) / group;
    case FSDP_BROADCAST:
        return group > 1 ? bytes : 0;
    default:
        return 0;
    }
}

static void add_sequence(const struct run_case *c, const struct record_rank *r,
                         uint32_t index, uint64_t *figure)
{
    const struct record_sequence *s;

    if (index >= r->n_sequences) {
        return;
    }
    s = &r->sequence[index];
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->c[i].kind < FSDP_N_COLLECTIVES) {
            figure[JUDGE_COLLECTIVES + s->c[i].kind]++;
        }
        figure[JUDGE_WIRE_BYTES] += wire_bytes(c, &s->c[i]);
    }
}

static void measure_rank(const struct run_case *c, const struct record_rank *r,
                         uint64_t *figure)
{
    const struct record_memory *m = &r->memory;

    memcpy(&figure[JUDGE_PEAK], m->peak, sizeof(m->peak));
    figure[JUDGE_PEAK_PARAMETERS] = m->peak_parameters;
    figure[JUDGE_PEAK_ENGINE] = m->peak_engine;
    figure[JUDGE_PEAK_STORAGE] = m->peak_storage;
    add_sequence(c, r, r->shard_sequence, figure);
    add_sequence(c, r, r->end_sequence, figure);
    for (uint32_t s = 0; s < r->n_steps; s++) {
        add_sequence(c, r, r->step_sequence[s], figure);
        figure[JUDGE_ALLOCATIONS] += m->allocations ? m->allocations[s] : 0;
        figure[JUDGE_LAUNCHES] += m->launches ? m->launches[s] : 0;
    }
}

static void name_units(const struct expect *e, struct judge_figures *f)
{
    for (uint32_t u = 0; u < f->n_units; u++) {
        const char *name = expect_unit_name(e, u);

        if (name) {
            snprintf(f->unit[u], sizeof(f->unit[u]), "%s", name);
        }
    }
}

static void copy_moments(const struct expect *e, const struct record_memory *m,
                         struct judge_figures *f)
{
    for (uint32_t i = 0; i < f->n_moments; i++) {
        const struct record_moment *from = &m->moment[i];
        bool of_module = from->point >= FSDP_PRE_FORWARD &&
                         from->point <= FSDP_POST_RECOMPUTE &&
                         from->module < e->model->n_modules;
        uint32_t unit =
            of_module ? e->units->unit_of_module[from->module] : JUDGE_NONE;

        f->moment[i].point = from->point;
        f->moment[i].unit = unit < f->n_units ? unit : JUDGE_NONE;
        memcpy(f->moment[i].live, from->live, sizeof(from->live));
    }
}

int judge_timeline(const struct expect *e, const struct record_rank *r,
                   struct judge_figures *f)
{
    f->steps = r->n_steps;
    f->step = f->steps > 1 ? 1 : 0;
    f->bound = e->peak_engine;
    f->n_units = e->units->n_units;
    f->n_moments = r->memory.n_moments;
    f->unit = calloc((size_t)f->n_units + 1, sizeof(*f->unit));
    f->moment = calloc((size_t)f->n_moments + 1, sizeof(*f->moment));
    if (!f->unit || !f->moment) {
        return FSDP_ERR_NOMEM;
    }
    name_units(e, f);
    copy_moments(e, &r->memory, f);
    return FSDP_OK;
}

static bool ended_well(const struct record *r)
{
    for (uint32_t k = 0; k < r->n_ranks; k++) {
        if (!r->rank[k].present || r->rank[k].status != FSDP_OK ||
            r->rank[k].n_steps == 0) {
            return false;
        }
    }
    return r->n_ranks > 0;
}

int judge_measure(struct judge_view *v)
{
    const struct record *r = v->record;
    struct judge_figures *f;

    if (v->ended != JUDGE_PASS || !ended_well(r)) {
        return FSDP_OK;
    }
    f = calloc(1, sizeof(*f));
    v->summary->figures = f;
    if (!f) {
        return FSDP_ERR_NOMEM;
    }
    for (uint32_t k = 0; k < r->n_ranks; k++) {
        uint64_t figure[JUDGE_N_FIGURES] = {0};

        measure_rank(&r->c, &r->rank[k], figure);
        for (uint32_t i = 0; i < JUDGE_N_FIGURES; i++) {
            f->figure[i] = figure[i] > f->figure[i] ? figure[i] : f->figure[i];
        }
    }
    return judge_timeline(&v->expect, &r->rank[0], f);
}

void judge_figures_release(struct judge_figures *f)
{
    if (f) {
        free(f->moment);
        free(f->unit);
        free(f);
    }
}
