/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_step_requirements.c - the collectives of a step together: how many, in
 * which order, and how many bytes.
 */
#include "requirements/families.h"

#include "judge/compare/compare_checks.h"

#include <stdio.h>

/* Every step has as many collectives of a kind as the oracle says. */
static bool kind_count_holds(const struct requirement *q,
                             const struct expect *e, const struct record *r,
                             struct finding *f)
{
    return compare_kind_count(e, r, q->kind, f);
}

static bool kind_count_spoil(const struct requirement *q,
                             const struct expect *e, struct record *r)
{
    return compare_spoil_kind_count(e, r, q->kind);
}

static const struct requirement_check check_kind_count = {
    .holds = kind_count_holds, .spoil = kind_count_spoil};

/*
 * comm.closed-form: the number of collectives, written as a formula and not
 * walked, so that the oracle is checked too.
 */

/* How often a sequence comes to a point of a module. */
static uint32_t times_at(const struct fsdp_sequence *s, uint32_t module,
                         uint32_t point)
{
    uint32_t n = 0;

    for (uint32_t k = 0; k < s->n; k++) {
        n += s->module[k] == module && s->point[k] == point;
    }
    return n;
}

/* The premise of the formula: every module is called once, forward and
 * backward, and units reshard as the option says. */
static bool is_plain(const struct expect *e)
{
    static const uint32_t points[] = {FSDP_PRE_FORWARD, FSDP_POST_FORWARD,
                                      FSDP_PRE_BACKWARD, FSDP_POST_BACKWARD};
    const struct fsdp_model *m = e->model;
    bool plain = !e->units->reshard_after_forward;

    for (uint32_t s = 0; s < m->n_sequences && s <= FSDP_SEQUENCE_EVAL; s++) {
        const uint32_t passes = s == FSDP_SEQUENCE_TRAIN ? 4 : 2;

        plain = plain && m->sequence[s]->n == (uint64_t)passes * m->n_modules;
        for (uint32_t i = 0; plain && i < passes * m->n_modules; i++) {
            plain =
                times_at(m->sequence[s], i / passes, points[i % passes]) == 1;
        }
    }
    return plain;
}

static bool closed_form_applies(const struct expect *e)
{
    return compare_case_communicates(e) && e->c->scenario != CASE_CANCEL &&
           is_plain(e);
}

static bool closed_form_in_step(const struct expect *e,
                                const struct record_sequence *sequence,
                                struct finding at, struct finding *f)
{
    uint64_t units = 0; /* that have a module or a parameter */
    uint64_t passes = e->c->microbatches;
    uint64_t synced = 0;
    uint64_t trains = 0; /* units */
    bool reshards = e->options.reshard_after_forward != 0;
    bool keeps = reshards && e->options.keep_root != 0 &&
                 e->units->unit_of_module[0] != FSDP_NO_UNIT;
    uint64_t want[3];

    for (uint32_t b = 0; b < e->c->microbatches; b++) {
        synced += e->c->sync[b] != 0;
    }
    for (uint32_t u = 0; u < e->units->n_units; u++) {
        units += expect_unit_name(e, u) != NULL;
        trains += expect_unit_name(e, u) && e->unit[u].trains;
    }
    want[FSDP_ALL_GATHER] =
        passes * (units * (reshards ? 2 : 1) - (keeps ? 1 : 0));
    if (e->c->scenario == CASE_EVAL) {
        want[FSDP_ALL_GATHER] += units;
    }
    want[FSDP_ALL_GATHER] *= e->shards > 1;
    want[FSDP_REDUCE_SCATTER] = trains * synced * (e->shards > 1);
    want[FSDP_ALL_REDUCE] = trains * synced * (e->replicas > 1);
    for (uint32_t kind = 0; kind < 3; kind++) {
        uint64_t got = compare_count(sequence, kind);

        if (got != want[kind]) {
            return finding_count(f, at, got, want[kind],
                                 compare_kind_words(kind));
        }
    }
    return true;
}

static void closed_form_spoil(struct record_collective *c)
{
    c->kind = FSDP_BARRIER;
}

/* comm.bytes: the bytes that cross the network are the price of sharding. */

/* Bytes that a rank gives or gets in collectives of one kind and unit. */
static uint64_t bytes_of(const struct record_sequence *s, uint32_t kind,
                         uint32_t unit)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < s->n; i++) {
        if (s->c[i].kind == kind && s->c[i].unit == unit) {
            bytes += s->c[i].n * fsdp_dtype_bytes(s->c[i].dtype);
        }
    }
    return bytes;
}

/* How many all-gathers a cancelled pass has made ahead: as many as there are
 * beyond the step's own. */
static uint32_t made_ahead(const struct expect *e,
                           const struct record_sequence *sequence)
{
    uint64_t got = compare_count(sequence, FSDP_ALL_GATHER);
    uint64_t want = compare_count(&e->step, FSDP_ALL_GATHER);

    return got <= want               ? 0
           : got - want < e->ahead.n ? (uint32_t)(got - want)
                                     : e->ahead.n;
}

static bool bytes_in_step(const struct expect *e,
                          const struct record_sequence *sequence,
                          struct finding at, struct finding *f)
{
    /* They are made in order, so they are the first ones that may be made. */
    const struct record_sequence ahead = {.n = made_ahead(e, sequence),
                                          .c = e->ahead.c};

    for (uint32_t kind = 0; kind <= FSDP_ALL_REDUCE; kind++) {
        for (uint32_t u = 0; u < e->units->n_units; u++) {
            uint64_t got = bytes_of(sequence, kind, u);
            uint64_t want =
                bytes_of(&e->step, kind, u) + bytes_of(&ahead, kind, u);

            if (got != want) {
                at.unit = u;
                return finding_bytes(f, at, got, want,
                                     kind == FSDP_ALL_GATHER
                                         ? "all-gathered in this step"
                                     : kind == FSDP_REDUCE_SCATTER
                                         ? "reduce-scattered in this step"
                                         : "all-reduced in this step");
            }
        }
    }
    return true;
}

static void bytes_spoil(struct record_collective *c)
{
    c->n++;
}

/*
 * comm.order: the strict profile leaves no freedom: a unit is gathered where
 * its window opens and reduced where it closes.
 */
static bool order_applies(const struct expect *e)
{
    return compare_case_communicates(e) && compare_case_strict(e);
}

static bool out_of_order(const struct expect *e, uint32_t i,
                         const struct record_collective *got, struct finding at,
                         struct finding *f)
{
    char is[COMPARE_WORDS_BYTES];
    char expected[COMPARE_WORDS_BYTES];

    compare_collective_words(e, got, is);
    compare_collective_words(e, &e->step.c[i], expected);
    at.unit = got->unit == FSDP_NO_UNIT ? -1 : (int64_t)got->unit;
    return finding_note(f, at, "collective %u of the step is %s, expected %s",
                        i + 1, is, expected);
}

static bool order_in_step(const struct expect *e,
                          const struct record_sequence *sequence,
                          struct finding at, struct finding *f)
{
    for (uint32_t i = 0; i < sequence->n && i < e->step.n; i++) {
        const struct record_collective *got = &sequence->c[i];
        const struct record_collective *want = &e->step.c[i];

        if (got->kind != want->kind || got->unit != want->unit) {
            return out_of_order(e, i, got, at, f);
        }
    }
    return sequence->n == e->step.n ||
           finding_count(f, at, sequence->n, e->step.n,
                         "collectives in this step");
}

static void order_spoil(struct record_collective *c)
{
    c->unit++;
}

/*
 * comm.every-step-alike: a step that communicates in another way than the first
 * betrays a cache, a leak or a counter.
 */
static bool every_step_alike_applies(const struct expect *e)
{
    return compare_case_communicates(e) && e->c->steps > 1;
}

static bool every_step_alike_of_rank(const struct expect *e,
                                     const struct record_rank *rank, uint32_t k,
                                     struct finding *f)
{
    const struct record_sequence *first = NULL;

    for (uint32_t t = 0; t < e->c->steps; t++) {
        struct finding at = finding_at("collectives", t, -1, k);
        const struct record_sequence *s = compare_step_sequence(rank, t);

        if (!s) {
            return finding_text(f, at,
                                "this step's collectives are not recorded");
        }
        first = t == 0 ? s : first;
        if (s->n != first->n) {
            return finding_count(f, at, s->n, first->n,
                                 "collectives in this step");
        }
        for (uint32_t i = 0; i < s->n; i++) {
            if (!compare_same_collective(&s->c[i], &first->c[i])) {
                at.unit = s->c[i].unit;
                return finding_count(
                    f, at, s->c[i].kind, first->c[i].kind,
                    "a collective that differs from the first step's");
            }
        }
    }
    return true;
}

static bool every_step_alike_spoil(const struct expect *e,
                                   struct record_rank *rank)
{
    (void)e;
    /* Only steps that do not share one sequence can be told apart. */
    if (!rank->step_sequence || rank->n_steps < 2 ||
        !compare_sequence(rank, rank->step_sequence[0]) ||
        rank->sequence[rank->step_sequence[0]].n == 0) {
        return false;
    }
    rank->step_sequence[rank->n_steps - 1] = rank->shard_sequence;
    return true;
}

/*
 * comm.same-on-all-ranks: ranks that disagree on the next collective hang, or
 * mix their data.
 */
static bool same_sequence(const struct record_rank *a, uint32_t i,
                          const struct record_rank *b, uint32_t j,
                          struct finding at, struct finding *f)
{
    const struct record_sequence *x = compare_sequence(a, i);
    const struct record_sequence *y = compare_sequence(b, j);

    if (!x || !y) {
        return finding_text(f, at, "these collectives are not recorded");
    }
    for (uint32_t c = 0; c < x->n && c < y->n; c++) {
        if (!compare_same_collective(&x->c[c], &y->c[c])) {
            char note[sizeof(f->note)];

            at.unit = y->c[c].unit;
            snprintf(note, sizeof(note),
                     "collective %u of the step is another one than rank 0's",
                     c);
            return finding_text(f, at, note);
        }
    }
    return x->n == y->n ||
           finding_count(f, at, y->n, x->n,
                         "collectives; rank 0 made another number (want)");
}

static bool same_on_all_ranks_holds(const struct expect *e,
                                    const struct record *r, struct finding *f)
{
    const struct record_rank *first = compare_rank(r, 0);

    for (uint32_t k = 1; k < e->c->ranks; k++) {
        const struct record_rank *rank = compare_rank(r, k);

        for (uint32_t t = 0; t < e->c->steps; t++) {
            struct finding at = finding_at("collectives", t, -1, k);

            if (!first || !rank || !first->step_sequence ||
                !rank->step_sequence || t >= first->n_steps ||
                t >= rank->n_steps) {
                return finding_text(f, at,
                                    "this step's collectives are not recorded");
            }
            if (!same_sequence(first, first->step_sequence[t], rank,
                               rank->step_sequence[t], at, f)) {
                return false;
            }
        }
    }
    return true;
}

static void same_on_all_ranks_spoil(struct record_collective *c)
{
    c->root++;
}

const struct requirement comm_step_requirements[] = {
    {.since = "1.0",
     .must = 1,
     .level = LEVEL_COMM,
     .applies = compare_case_communicates},
    /* A unit is gathered once for each of its windows. */
    {.id = "comm.all-gather-count",
     .text = "Each step of each rank makes as many all-gathers as the windows "
             "of its units need, no more and no fewer.",
     .needs = "comm.nothing-else",
     .check = &check_kind_count,
     .kind = FSDP_ALL_GATHER},
    /* A unit is reduced once for each synchronised microbatch, and not at
     * all without sync. */
    {.id = "comm.reduce-scatter-count",
     .text = "Each step of each rank makes as many reduce-scatters as the "
             "windows of its units need, no more and no fewer.",
     .needs = "comm.nothing-else",
     .check = &check_kind_count,
     .kind = FSDP_REDUCE_SCATTER},
    /* Only replicas all-reduce, and only shards. */
    {.id = "comm.all-reduce-count",
     .text = "Each step of each rank makes as many all-reduces as the windows "
             "of its units need, no more and no fewer.",
     .needs = "comm.nothing-else",
     .check = &check_kind_count,
     .kind = FSDP_ALL_REDUCE},
    {.id = "comm.closed-form",
     .text = "With U units and B microbatches a step makes U B (1 + reshard) "
             "all-gathers (one less a microbatch if the root is kept), and U "
             "reduce-scatters and all-reduces for each synchronised "
             "microbatch, where shard and replica degree exceed 1.",
     .needs = "comm.all-gather-count comm.reduce-scatter-count "
              "comm.all-reduce-count",
     .applies = closed_form_applies,
     .check = &check_each_step,
     .step = {closed_form_in_step, closed_form_spoil}},
    {.id = "comm.bytes",
     .text = "In each step every unit moves the expected bytes in each kind of "
             "collective.",
     .needs = "comm.all-gather-count comm.reduce-scatter-count "
              "comm.all-reduce-count comm.message-size comm.dtype",
     .check = &check_each_step,
     .step = {bytes_in_step, bytes_spoil}},
    {.id = "comm.order",
     .text = "Without prefetch a step gathers and reduces its units exactly in "
             "the order in which their windows open and close.",
     .needs = "comm.all-gather-count comm.reduce-scatter-count "
              "comm.all-reduce-count",
     .claim = "strict-memory",
     .applies = order_applies,
     .check = &check_each_step,
     .step = {order_in_step, order_spoil}},
    {.id = "comm.every-step-alike",
     .text = "Every step of a rank makes the same collectives in the same "
             "order as its first.",
     .needs = "comm.bytes comm.order",
     .applies = every_step_alike_applies,
     .check = &check_each_rank,
     .rank = {every_step_alike_of_rank, every_step_alike_spoil}},
    {.id = "comm.same-on-all-ranks",
     .text = "All ranks make the same collectives in the same order, in every "
             "field.",
     .needs = "comm.bytes comm.dims comm.fold-declared comm.order",
     .holds = same_on_all_ranks_holds,
     .check = &check_each_collective,
     .collective = {.spoil = same_on_all_ranks_spoil}},
    {0},
};
