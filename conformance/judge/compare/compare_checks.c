/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_checks.c - the checks that requirements of several families share.
 */
#include "judge/compare/compare_checks.h"

#include <string.h>

static bool each_rank_holds(const struct requirement *q, const struct expect *e,
                            const struct record *r, struct finding *f)
{
    return compare_ranks(e, r, q->rank.holds, f);
}

static bool raise_one(struct record_rank *rank, size_t at)
{
    uint64_t x;

    memcpy(&x, (const char *)rank + at, sizeof(x));
    x++;
    memcpy((char *)rank + at, &x, sizeof(x));
    return true;
}

static bool each_rank_spoil(const struct requirement *q, const struct expect *e,
                            struct record *r)
{
    for (uint32_t k = r->n_ranks; k > 0; k--) {
        struct record_rank *rank = compare_rank_to_spoil(r, k - 1);

        if (rank && (q->rank.spoil ? q->rank.spoil(e, rank)
                                   : raise_one(rank, q->rank.raises))) {
            return true;
        }
        if (!rank || !rank->unsampled) {
            return false;
        }
    }
    return false;
}

const struct requirement_check check_each_rank = {.holds = each_rank_holds,
                                                  .spoil = each_rank_spoil};

/* Steps [*from, *to). */
static void steps_of(const struct requirement *q, const struct expect *e,
                     uint32_t *from, uint32_t *to)
{
    *from = 0;
    *to = 1;
    switch (q->part.steps) {
    case STEPS_RECORDED:
        *to = compare_recorded_steps(e);
        break;
    case STEPS_LATER:
        *from = 1;
        *to = compare_recorded_steps(e);
        break;
    case STEPS_FINAL:
        *from = e->c->steps;
        *to = e->c->steps + 1;
        break;
    case STEPS_LOADED:
        *from = e->c->steps / 2;
        *to = e->c->steps / 2 + 1;
        break;
    default:
        break;
    }
}

static bool each_part_holds(const struct requirement *q, const struct expect *e,
                            const struct record *r, struct finding *f)
{
    uint32_t from;
    uint32_t to;

    steps_of(q, e, &from, &to);
    return compare_parts_of(q, e, r, from, to, q->part.holds, f);
}

static bool each_part_spoil(const struct requirement *q, const struct expect *e,
                            struct record *r)
{
    uint32_t from;
    uint32_t to;

    steps_of(q, e, &from, &to);
    return compare_spoil_trained(e, r, q->part.stage, from);
}

const struct requirement_check check_each_part = {.holds = each_part_holds,
                                                  .spoil = each_part_spoil};

bool check_replicas(const struct expect *e, const struct record *r,
                    const struct compare_part *part, struct finding *f)
{
    return compare_replica(e, r, part, part->q->part.stage, f);
}

static bool spoil_collective(struct record *r,
                             void (*spoil)(struct record_collective *c))
{
    struct record_collective *c = compare_collective_to_spoil(r);

    if (!c) {
        return false;
    }
    spoil(c);
    return true;
}

static bool each_step_holds(const struct requirement *q, const struct expect *e,
                            const struct record *r, struct finding *f)
{
    return compare_steps(e, r, q->step.holds, f);
}

static bool each_step_spoil(const struct requirement *q, const struct expect *e,
                            struct record *r)
{
    (void)e;
    return spoil_collective(r, q->step.spoil);
}

const struct requirement_check check_each_step = {.holds = each_step_holds,
                                                  .spoil = each_step_spoil};

static bool each_collective_holds(const struct requirement *q,
                                  const struct expect *e,
                                  const struct record *r, struct finding *f)
{
    return compare_collectives(e, r, q->collective.holds, f);
}

static bool each_collective_spoil(const struct requirement *q,
                                  const struct expect *e, struct record *r)
{
    (void)e;
    return spoil_collective(r, q->collective.spoil);
}

const struct requirement_check check_each_collective = {
    .holds = each_collective_holds, .spoil = each_collective_spoil};

bool check_ranks(const struct requirement *q, const struct expect *e,
                 const struct record *r,
                 bool (*holds)(const struct requirement *q,
                               const struct expect *e,
                               const struct record_rank *rank, uint32_t k,
                               struct finding *f),
                 struct finding *f)
{
    for (uint32_t k = 0; k < e->c->ranks; k++) {
        const struct record_rank *rank = compare_rank(r, k);

        if (!rank) {
            return finding_text(f, finding_at(NULL, -1, -1, k),
                                "this rank's files are missing");
        }
        if (!holds(q, e, rank, k, f)) {
            return false;
        }
    }
    return true;
}

static bool is_zero(const struct requirement *q, const struct expect *e,
                    const struct record_rank *rank, uint32_t k,
                    struct finding *f)
{
    const char *memory = (const char *)&rank->memory;
    struct finding at = finding_at(q->zero.stage, q->zero.step, -1, k);
    uint64_t got;

    (void)e;
    memcpy(&got, memory + q->zero.at, sizeof(got));
    if (got == 0) {
        return true;
    }
    return q->zero.form == FINDING_BYTES
               ? finding_bytes(f, at, got, 0, q->zero.note)
               : finding_count(f, at, got, 0, q->zero.note);
}

static bool zero_holds(const struct requirement *q, const struct expect *e,
                       const struct record *r, struct finding *f)
{
    return check_ranks(q, e, r, is_zero, f);
}

static bool zero_spoil(const struct requirement *q, const struct expect *e,
                       struct record *r)
{
    struct record_rank *rank = compare_rank_to_spoil(r, r->n_ranks - 1);
    const uint64_t one = 1;

    (void)e;
    if (!rank) {
        return false;
    }
    memcpy((char *)&rank->memory + q->zero.at, &one, sizeof(one));
    return true;
}

const struct requirement_check check_zero = {.holds = zero_holds,
                                             .spoil = zero_spoil};

static uint32_t count_answers(const struct requirement *q)
{
    uint32_t n = 0;

    while (n < REQUIREMENT_MAX_ANSWERS && q->answers[n].name) {
        n++;
    }
    return n;
}

static bool answers_hold(const struct requirement *q, const struct expect *e,
                         const struct record *r, struct finding *f)
{
    return compare_answers(e, r, q->answers, count_answers(q), f);
}

static bool answers_spoil(const struct requirement *q, const struct expect *e,
                          struct record *r)
{
    (void)e;
    return compare_spoil_answers(r, q->answers, count_answers(q));
}

const struct requirement_check check_answers = {.holds = answers_hold,
                                                .spoil = answers_spoil};

static bool names_it(const struct expect *e, const struct record_rank *rank,
                     uint32_t k, struct finding *f)
{
    (void)e;
    for (uint32_t i = 0; i < rank->n_answers; i++) {
        const char *name = rank->answer[i].name;
        const char *what =
            strcmp(name, "unnamed-option") == 0
                ? "a message that does not name the option; got: place among "
                  "the answers"
            : strcmp(name, "unnamed-parameter") == 0
                ? "a message that does not name the parameter; got: place "
                  "among the answers"
            : strcmp(name, "unnamed-unit") == 0
                ? "a message that does not name the unit, or the knob; got: "
                  "place among the answers"
            : strcmp(name, "unnamed-buffer") == 0
                ? "a message without the number of the buffer; got: place "
                  "among the answers"
                : NULL;

        if (what) {
            return finding_count(f, finding_at("refusal", -1, -1, k), i, 0,
                                 what);
        }
    }
    return true;
}

static bool answers_named_hold(const struct requirement *q,
                               const struct expect *e, const struct record *r,
                               struct finding *f)
{
    return answers_hold(q, e, r, f) && compare_ranks(e, r, names_it, f);
}

const struct requirement_check check_answers_named = {
    .holds = answers_named_hold, .spoil = answers_spoil};

static bool named_hold(const struct requirement *q, const struct expect *e,
                       const struct record *r, struct finding *f)
{
    (void)q;
    return compare_ranks(e, r, names_it, f);
}

static bool named_spoil(const struct requirement *q, const struct expect *e,
                        struct record *r)
{
    (void)q;
    (void)e;
    return compare_spoil_name(compare_rank_to_spoil(r, r->n_ranks - 1),
                              "unnamed-parameter");
}

const struct requirement_check check_named = {.holds = named_hold,
                                              .spoil = named_spoil};

static bool curve_of_applies(const struct requirement *q,
                             const struct expect *e)
{
    return compare_companion(e, q->change) != NULL;
}

static bool curve_of_holds(const struct requirement *q, const struct expect *e,
                           const struct record *r, struct finding *f)
{
    return compare_curves(e, r, compare_companion(e, q->change),
                          compare_n_losses(e), f);
}

static bool curve_spoil(const struct requirement *q, const struct expect *e,
                        struct record *r)
{
    (void)q;
    return compare_spoil_curve(e, r);
}

const struct requirement_check check_curve_of = {
    .applies = curve_of_applies, .holds = curve_of_holds, .spoil = curve_spoil};

static bool curve_of_single_applies(const struct requirement *q,
                                    const struct expect *e)
{
    (void)q;
    return compare_companion_single(e) != NULL;
}

static bool curve_of_single_holds(const struct requirement *q,
                                  const struct expect *e,
                                  const struct record *r, struct finding *f)
{
    (void)q;
    return compare_curves(e, r, compare_companion_single(e),
                          compare_n_losses(e), f);
}

const struct requirement_check check_curve_of_single = {
    .applies = curve_of_single_applies,
    .holds = curve_of_single_holds,
    .spoil = curve_spoil};
