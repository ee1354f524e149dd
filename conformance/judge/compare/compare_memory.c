/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_memory.c - what ranks communicated in each step, how many collectives
 * of a kind that is, and which to spoil; and what they held: peaks, what is
 * live at rest, and memory traded for all-gathers.
 */
#include "judge/compare/compare_memory.h"

#include <stdio.h>
#include <string.h>

/* ---- Collectives --------------------------------------------------------- */

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

/* One step of one rank, on a walk over all of them; begins as zero. */
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

/* Where a step first leaves the expected order, which says more than a count;
 * nothing, where engines may run ahead. */
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
    (void)snprintf(f->note + used, sizeof(f->note) - used,
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

/* ---- Memory -------------------------------------------------------------- */

const char *compare_peak_stage(uint32_t peak)
{
    static const char *const stages[COMPARE_N_PEAKS] = {
        [COMPARE_PEAK_UNSHARDED] = "unsharded parameter",
        [COMPARE_PEAK_PARAMETERS] = "parameters",
        [COMPARE_PEAK_GRADIENTS] = "unsharded gradient",
        [COMPARE_PEAK_TOTAL] = "memory"};

    return stages[peak];
}

uint64_t compare_peak_recorded(const struct record_memory *m, uint32_t peak)
{
    const uint64_t bytes[COMPARE_N_PEAKS] = {
        [COMPARE_PEAK_UNSHARDED] = m->peak[FSDP_PARAM_FULL],
        [COMPARE_PEAK_PARAMETERS] = m->peak_parameters,
        [COMPARE_PEAK_GRADIENTS] = m->peak[FSDP_GRAD_FULL],
        [COMPARE_PEAK_TOTAL] = m->peak_engine};

    return bytes[peak];
}

uint64_t compare_peak_expected(const struct expect *e, uint32_t peak)
{
    const uint64_t bytes[COMPARE_N_PEAKS] = {
        [COMPARE_PEAK_UNSHARDED] = e->peak_full,
        [COMPARE_PEAK_PARAMETERS] = e->peak_parameters,
        [COMPARE_PEAK_GRADIENTS] = e->peak_grads,
        [COMPARE_PEAK_TOTAL] = e->peak_engine};

    return bytes[peak];
}

bool compare_peak(const struct expect *e, const struct record_rank *rank,
                  uint32_t k, uint32_t peak, struct finding *f)
{
    static const char *const words[COMPARE_N_PEAKS] = {
        [COMPARE_PEAK_UNSHARDED] = "unsharded parameters at once",
        [COMPARE_PEAK_PARAMETERS] = "parameters at once, sharded and not",
        [COMPARE_PEAK_GRADIENTS] = "unsharded gradients at once",
        [COMPARE_PEAK_TOTAL] = "live at once, all kinds but activations"};
    uint64_t got = compare_peak_recorded(&rank->memory, peak);
    uint64_t want = compare_peak_expected(e, peak);

    want -= peak == COMPARE_PEAK_TOTAL ? expect_states_less(e, k) : 0;
    return got == want ||
           finding_peak(f, finding_at(compare_peak_stage(peak), -1, -1, k), got,
                        want, words[peak], &rank->memory);
}

bool compare_spoil_peak(const struct expect *e, struct record *r, uint32_t peak)
{
    struct record_rank *rank = compare_rank_to_spoil(r, r->n_ranks - 1);
    uint64_t *bytes[COMPARE_N_PEAKS];

    if (!rank) {
        return false;
    }
    bytes[COMPARE_PEAK_UNSHARDED] = &rank->memory.peak[FSDP_PARAM_FULL];
    bytes[COMPARE_PEAK_PARAMETERS] = &rank->memory.peak_parameters;
    bytes[COMPARE_PEAK_GRADIENTS] = &rank->memory.peak[FSDP_GRAD_FULL];
    bytes[COMPARE_PEAK_TOTAL] = &rank->memory.peak_engine;
    *bytes[peak] = compare_peak_expected(e, peak) + 1;
    return true;
}

const char *compare_kind_of_bytes(uint32_t kind)
{
    static const char *const kinds[RECORD_N_KINDS] = {
        "parameter shard",
        "unsharded parameter",
        "gradient shard",
        "unsharded gradient",
        "optimizer state",
        "staging",
        "activation",
        "buffer",
        "parameter shard on the host",
        "unsharded parameter on the host",
        "gradient shard on the host",
        "unsharded gradient on the host",
        "optimizer state on the host",
        "staging on the host",
        "activation on the host",
        "buffer on the host"};

    return kinds[kind];
}

bool compare_rest(const struct expect *e, const struct record_rest *got,
                  struct finding at, struct finding *f)
{
    for (uint32_t kind = 0; kind < FSDP_N_KINDS; kind++) {
        const bool later = e->late_states && kind == FSDP_OPTIM && at.step < 0;
        const uint64_t want =
            later ? 0
                  : expect_rest_of(e, (uint32_t)at.rank, kind, e->rest.live);

        if (kind != FSDP_ACTIVATION && kind != FSDP_BUFFER &&
            got->live[kind] != want) {
            at.stage = compare_kind_of_bytes(kind);
            return finding_bytes(f, at, got->live[kind], want, "live at rest");
        }
    }
    return true;
}

/* All-gathers of a rank's first step. */
static uint64_t gathers_of(const struct record_rank *rank)
{
    const struct record_sequence *s = compare_step_sequence(rank, 0);

    return !s ? 0 : compare_count(s, FSDP_ALL_GATHER);
}

bool compare_trade_off(const struct expect *e, const struct record_rank *rank,
                       uint32_t k, void (*change)(struct run_case *c),
                       const char *other, struct finding *f)
{
    const struct record *companion = compare_companion(e, change);
    const struct record_rank *there =
        !companion ? NULL : compare_rank(companion, k);
    uint64_t got = rank->memory.peak[FSDP_PARAM_FULL];
    char note[sizeof(f->note)];

    if (!there) {
        return finding_missing(f, finding_at("memory", -1, -1, k),
                               "there is no record to compare with");
    }
    if (got >= there->memory.peak[FSDP_PARAM_FULL]) {
        (void)snprintf(note, sizeof(note), "at once; not less than %s", other);
        return finding_bytes(f, finding_at("unsharded parameter", -1, -1, k),
                             got, there->memory.peak[FSDP_PARAM_FULL], note);
    }
    if (gathers_of(rank) <= gathers_of(there)) {
        (void)snprintf(note, sizeof(note), "all-gathers; not more than %s",
                       other);
        return finding_count(f, finding_at("all-gather", 0, -1, k),
                             gathers_of(rank), gathers_of(there), note);
    }
    return true;
}

bool compare_spoil_trade_off(const struct expect *e, struct record *r,
                             void (*change)(struct run_case *c))
{
    const struct record *companion = compare_companion(e, change);
    struct record_rank *rank = compare_rank_to_spoil(r, 0);

    if (!rank || !companion || !compare_rank(companion, 0)) {
        return false;
    }
    rank->memory.peak[FSDP_PARAM_FULL] =
        companion->rank[0].memory.peak[FSDP_PARAM_FULL];
    return true;
}
