/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_collectives.c - walks over the collectives of each step: they are
 * counted by kind, compared, and one is chosen to be spoilt.
 */
#include "judge/compare/compare.h"

#include <stdio.h>
#include <string.h>

const struct record_sequence *compare_sequence(const struct record_rank *rank,
                                               uint32_t index)
{
    if (!rank->sequence || index >= rank->n_sequences) {
        return NULL;
    }
    if (rank->sequence[index].n > 0 && !rank->sequence[index].c) {
        return NULL;
    }
    return &rank->sequence[index];
}

const struct record_sequence *
compare_step_sequence(const struct record_rank *rank, uint32_t step)
{
    return !rank || !rank->step_sequence || step >= rank->n_steps
               ? NULL
               : compare_sequence(rank, rank->step_sequence[step]);
}

/* A step of a rank, in a walk over all of them; it begins as zero. */
struct place {
    uint64_t next;
    struct finding at;
    const struct record_sequence *sequence; /* NULL: not recorded */
};

static bool next_place(const struct expect *e, const struct record *r,
                       struct place *p)
{
    uint32_t k;
    uint32_t t;

    if (p->next >= (uint64_t)e->c->ranks * e->c->steps) {
        return false;
    }
    k = (uint32_t)(p->next / e->c->steps);
    t = (uint32_t)(p->next % e->c->steps);
    p->at = finding_at("collectives", t, -1, k);
    p->sequence = compare_step_sequence(compare_rank(r, k), t);
    p->next++;
    return true;
}

static bool is_recorded(const struct place *p, struct finding *f)
{
    return p->sequence ||
           finding_text(f, p->at, "this step's collectives are not recorded");
}

bool compare_steps(const struct expect *e, const struct record *r,
                   bool (*check)(const struct expect *e,
                                 const struct record_sequence *sequence,
                                 struct finding at, struct finding *f),
                   struct finding *f)
{
    for (struct place p = {0}; next_place(e, r, &p);) {
        if (!is_recorded(&p, f) || !check(e, p.sequence, p.at, f)) {
            return false;
        }
    }
    return true;
}

bool compare_collectives(const struct expect *e, const struct record *r,
                         bool (*check)(const struct expect *e,
                                       const struct record_collective *c,
                                       uint32_t index, struct finding at,
                                       struct finding *f),
                         struct finding *f)
{
    for (struct place p = {0}; next_place(e, r, &p);) {
        if (!is_recorded(&p, f)) {
            return false;
        }
        for (uint32_t i = 0; i < p.sequence->n; i++) {
            if (!check(e, &p.sequence->c[i], i, p.at, f)) {
                return false;
            }
        }
    }
    return true;
}

static uint64_t shard_of(const struct expect *e, uint32_t u)
{
    uint64_t numel = 0;
    uint64_t blocks = 0;

    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        if (e->unit_of_parameter[p] == u && expect_original(e, p) == p) {
            numel += fsdp_numel(e->model, p);
            blocks += e->block[p];
        }
    }
    return e->options.layout == FSDP_LAYOUT_FLAT
               ? numel / e->shards + (numel % e->shards != 0)
               : blocks;
}

bool compare_gather_of_shard(const struct expect *e,
                             const struct record_collective *c,
                             struct finding at, const char *words,
                             struct finding *f)
{
    if (c->kind != FSDP_ALL_GATHER || c->unit >= e->units->n_units) {
        return true;
    }
    at.unit = c->unit;
    return c->n == shard_of(e, c->unit) ||
           finding_count(f, at, c->n, shard_of(e, c->unit), words);
}

uint64_t compare_count(const struct record_sequence *sequence, uint32_t kind)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < sequence->n; i++) {
        n += sequence->c[i].kind == kind;
    }
    return n;
}

const char *compare_kind_words(uint32_t kind)
{
    return kind == FSDP_ALL_GATHER       ? "all-gathers in this step"
           : kind == FSDP_REDUCE_SCATTER ? "reduce-scatters in this step"
                                         : "all-reduces in this step";
}

/* Adds where a step first leaves the expected order, which says more than a
 * count; adds nothing if engines may run ahead. */
static void tell_first(const struct expect *e,
                       const struct record_sequence *got, struct finding *f)
{
    char is[COMPARE_WORDS_BYTES] = "missing";
    char should[COMPARE_WORDS_BYTES] = "the end of the step";
    uint32_t i = 0;
    size_t used = strlen(f->note);

    while (i < got->n && i < e->step.n &&
           compare_same_collective(&got->c[i], &e->step.c[i])) {
        i++;
    }
    if (e->ahead.n > 0 || (i == got->n && i == e->step.n)) {
        return;
    }
    if (i < got->n) {
        compare_collective_words(e, &got->c[i], is);
    }
    if (i < e->step.n) {
        compare_collective_words(e, &e->step.c[i], should);
    }
    snprintf(f->note + used, sizeof(f->note) - used,
             "; the first that is wrong: collective %u is %s, expected "
             "%s",
             i + 1, is, should);
}

bool compare_kind_count(const struct expect *e, const struct record *r,
                        uint32_t kind, struct finding *f)
{
    uint64_t want = compare_count(&e->step, kind);
    uint64_t most = want + compare_count(&e->ahead, kind);

    for (struct place p = {0}; next_place(e, r, &p);) {
        uint64_t got;

        if (!is_recorded(&p, f)) {
            return false;
        }
        got = compare_count(p.sequence, kind);
        if (got < want || got > most) {
            p.at.stage = record_collective_name(kind);
            (void)finding_count(f, p.at, got, got > most ? most : want,
                                compare_kind_words(kind));
            tell_first(e, p.sequence, f);
            return false;
        }
    }
    return true;
}

bool compare_same_collective(const struct record_collective *a,
                             const struct record_collective *b)
{
    return a->kind == b->kind && a->dim == b->dim && a->dtype == b->dtype &&
           a->fold == b->fold && a->root == b->root && a->unit == b->unit &&
           a->n == b->n;
}

bool compare_as_asked(const struct expect *e,
                      const struct record_collective *got,
                      const struct record_collective *want)
{
    struct record_collective of = *got;

    of.fold = e->any_fold ? want->fold : of.fold;
    return compare_same_collective(&of, want);
}

struct record_sequence *compare_sequence_to_spoil(struct record *r)
{
    struct record_rank *rank = compare_rank_to_spoil(r, 0);
    const struct record_sequence *s = compare_step_sequence(rank, 0);

    return !s || s->n == 0 ? NULL : &rank->sequence[rank->step_sequence[0]];
}

struct record_collective *compare_collective_to_spoil(struct record *r)
{
    struct record_sequence *s = compare_sequence_to_spoil(r);

    return !s ? NULL : &s->c[0];
}

bool compare_spoil_kind_count(const struct expect *e, struct record *r,
                              uint32_t kind)
{
    struct record_sequence *s = compare_sequence_to_spoil(r);
    uint64_t want = compare_count(&e->step, kind);

    if (!s) {
        return false;
    }
    if (want == 0) {
        s->c[0].kind = kind;
        return true;
    }
    for (uint32_t i = 0; i < s->n && compare_count(s, kind) >= want; i++) {
        if (s->c[i].kind == kind) {
            s->c[i].kind = FSDP_BARRIER;
        }
    }
    return true;
}

uint32_t compare_count_of(const struct record_sequence *sequence, uint32_t kind,
                          uint32_t unit)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < sequence->n; i++) {
        n += sequence->c[i].kind == kind && sequence->c[i].unit == unit;
    }
    return n;
}

bool compare_reduces(const struct record_collective *c)
{
    return c->kind == FSDP_REDUCE_SCATTER || c->kind == FSDP_ALL_REDUCE;
}

bool compare_moves(const struct expect *e, const struct record_collective *c,
                   uint32_t index, uint32_t dtype, struct finding at,
                   struct finding *f)
{
    const struct compare_wording wording = {
        "moves", record_dtype_name(c->dtype), record_dtype_name(dtype)};

    return c->dtype == dtype ||
           finding_collective(e, f, at, c, index, &wording);
}
