/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_flights.c - when collectives were given out, against the points of
 * the model.
 */
#include "judge/compare/compare_flights.h"

/* A position: microbatch, and index in the sequence. */
struct spot {
    uint32_t base; /* position of point 0 */
    uint32_t i;
};

bool flights_applies(const struct expect *e)
{
    return e->c->scenario == CASE_TRAIN && compare_case_communicates(e);
}

static const struct fsdp_sequence *sequence_of(const struct expect *e)
{
    return e->model->sequence[FSDP_SEQUENCE_TRAIN];
}

/* BEGIN counts as the first point, because it stands right before it. */
static bool find_spot(const struct expect *e, uint32_t position,
                      struct spot *out)
{
    uint64_t n = (uint64_t)sequence_of(e)->n + 2;
    uint64_t i = position % n;

    if (position / n >= e->c->microbatches || i == n - 1) {
        return false; /* END, and what follows the last pass */
    }
    out->base = (uint32_t)(position - i + 1);
    out->i = i > 0 ? (uint32_t)i - 1 : 0;
    return true;
}

static bool is_backward(uint32_t point)
{
    return point != FSDP_PRE_FORWARD && point != FSDP_POST_FORWARD;
}

/* Whether the previous unit may compute behind point i. A unit without elements
 * takes its turn in running ahead like any other, so its modules count although
 * they have no parameters. */
static bool computes(const struct expect *e, uint32_t i)
{
    const struct fsdp_sequence *q = sequence_of(e);
    uint64_t u = e->units->unit_of_module[q->module[i]];

    if (u < e->units->n_units && e->unit[u].numel == 0) {
        return expect_is_pre(q->point[i]);
    }

    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        if (e->model->parameter_module[p] == q->module[i]) {
            return expect_is_pre(q->point[i]);
        }
    }
    return false;
}

bool flights_each(const struct expect *e, const struct record *r,
                  bool (*check)(const struct expect *e,
                                const struct record_flights *flights,
                                uint32_t i, struct finding at,
                                struct finding *f),
                  struct finding *f)
{
    for (uint32_t k = 0; k < e->c->ranks; k++) {
        const struct record_rank *rank = compare_rank(r, k);
        struct finding at = finding_at("order", e->c->steps - 1, -1, k);
        if (!rank || rank->flights.n == 0) {
            return finding_text(f, at,
                                "no collective of the last step was "
                                "recorded");
        }
        for (uint32_t i = 0; i < rank->flights.n; i++) {
            uint32_t unit = rank->flights.flight[i].unit;
            at.unit = unit < e->units->n_units ? (int64_t)unit : -1;
            if (!check(e, &rank->flights, i, at, f)) {
                return false;
            }
        }
    }
    return true;
}

/* How many units below `end`, without `unit`, open a window at point j. */
static uint32_t opening(const struct expect *e, uint32_t j, uint32_t end,
                        uint32_t unit)
{
    const struct fsdp_sequence *q = sequence_of(e);
    uint32_t n = 0;

    for (uint32_t u = 0; u < end && expect_is_pre(q->point[j]); u++) {
        bool opens = u != unit && expect_is_of(e, q->module[j], u);

        for (uint32_t i = j;
             opens && i > 0 &&
             is_backward(q->point[i - 1]) == is_backward(q->point[j]);
             i--) {
            opens = !expect_is_of(e, q->module[i - 1], u);
        }
        n += opens;
    }
    return n;
}

/* Whether several windows open at point j, and each unit's gather is unpacked
 * there, so that one after the other may use the same room on the wire. */
static bool unpacks_several(const struct expect *e, uint32_t j, uint32_t unit)
{
    return e->options.layout == FSDP_LAYOUT_PER_PARAMETER &&
           opening(e, j, e->units->n_units, unit) > 1;
}

/*
 * An all-gather whose window is not the first of its phase: the position of
 * the point that opens the window, and of the last point before it after which
 * a module with parameters computes. `backward` chooses the phase. False:
 * another collective, or nothing that could be computed meanwhile. Where the
 * window before opens and nothing is computed until the unit's own does, there
 * is nothing to run beside. And an engine that runs ahead by so many units has
 * enough with those that open right before it, at one point.
 */
static bool flights_gather(const struct expect *e,
                           const struct record_flight *x, bool backward,
                           uint32_t *opens, uint32_t *meanwhile)
{
    const struct fsdp_sequence *q = sequence_of(e);
    struct spot s;
    uint32_t j;

    if (x->kind != FSDP_ALL_GATHER || !find_spot(e, x->issued, &s)) {
        return false;
    }
    for (j = s.i; j < q->n; j++) {
        if (expect_is_pre(q->point[j]) &&
            expect_is_of(e, q->module[j], x->unit)) {
            break;
        }
    }
    if (j == q->n || is_backward(q->point[j]) != backward) {
        return false;
    }
    if (opening(e, j, x->unit, x->unit) >=
        (backward ? e->options.prefetch_backward
                  : e->options.prefetch_forward)) {
        return false;
    }
    *opens = s.base + j;
    while (j > 0 && is_backward(q->point[j - 1]) == backward) {
        j--;
        if (computes(e, j)) {
            *meanwhile = s.base + j;
            return !unpacks_several(e, j, x->unit);
        }
        if (opening(e, j, e->units->n_units, x->unit) > 0) {
            return false;
        }
    }
    return false;
}

bool flights_way(const struct expect *e, const struct record_flight *x,
                 struct flights_way *out)
{
    const struct fsdp_sequence *q = sequence_of(e);
    struct spot s;
    uint32_t j;

    *out = (struct flights_way){.issued = x->issued};
    if (x->kind != FSDP_ALL_GATHER || !find_spot(e, x->issued, &s)) {
        return false;
    }
    j = s.i;
    while (j < q->n && !(expect_is_pre(q->point[j]) &&
                         expect_is_of(e, q->module[j], x->unit))) {
        j++;
    }
    if (j == q->n) {
        return false;
    }
    out->opens = s.base + j;
    out->same_phase = true;
    for (uint32_t i = s.i; i < j; i++) {
        out->same_phase = out->same_phase &&
                          is_backward(q->point[i]) == is_backward(q->point[j]);
    }
    while (j > 0 && is_backward(q->point[j])) {
        j--;
    }
    out->edge = s.base + j;
    return true;
}

bool flights_reduce(const struct expect *e,
                    const struct record_flights *flights, uint32_t i,
                    uint32_t *meanwhile)
{
    const struct record_flight *x = &flights->flight[i];
    uint32_t kind = e->shards > 1 ? FSDP_REDUCE_SCATTER : FSDP_ALL_REDUCE;
    const struct fsdp_sequence *q = sequence_of(e);
    uint32_t more = 0;
    struct spot s;
    uint32_t j;

    if (x->kind != kind || !find_spot(e, x->issued, &s)) {
        return false;
    }
    j = s.i + 1;
    while (j < q->n && !computes(e, j)) {
        j++;
    }
    if (j >= q->n || !is_backward(q->point[j])) {
        return false;
    }
    *meanwhile = s.base + j;
    for (uint32_t k = i + 1; k < flights->n; k++) {
        const struct record_flight *y = &flights->flight[k];
        more += y->kind == kind && y->issued <= *meanwhile;
    }
    return more < e->options.reduces_in_flight;
}

struct record_flights *flights_to_spoil(struct record *r)
{
    struct record_rank *rank = compare_rank_to_spoil(r, r->n_ranks - 1);

    return rank && rank->flights.n > 0 ? &rank->flights : NULL;
}

/* ---- Gathers ahead ----------------------------------------------------- */

static bool check_gather(const struct expect *e,
                         const struct record_flights *flights, uint32_t i,
                         struct finding at, bool backward, struct finding *f)
{
    const struct record_flight *x = &flights->flight[i];
    uint32_t opens;
    uint32_t meanwhile;

    if (!flights_gather(e, x, backward, &opens, &meanwhile)) {
        return true;
    }
    if (x->issued >= opens) {
        return finding_note(f, at,
                            "all-gather %u of the step is given out when its "
                            "window opens (position %u), none ahead",
                            i, opens);
    }
    return x->behind <= meanwhile ||
           finding_note(f, at,
                        "all-gather %u of the step waits for compute of "
                        "position %u, which it should run beside",
                        i, meanwhile);
}

static bool check_forward(const struct expect *e,
                          const struct record_flights *flights, uint32_t i,
                          struct finding at, struct finding *f)
{
    return check_gather(e, flights, i, at, false, f);
}

static bool check_backward(const struct expect *e,
                           const struct record_flights *flights, uint32_t i,
                           struct finding at, struct finding *f)
{
    return check_gather(e, flights, i, at, true, f);
}

bool flights_gathers_ahead(const struct expect *e, const struct record *r,
                           bool backward, struct finding *f)
{
    return flights_each(e, r, backward ? check_backward : check_forward, f);
}

/* Makes the wait one position longer than is allowed. */
bool flights_spoil_gather(const struct expect *e, struct record *r,
                          bool backward)
{
    struct record_flights *flights = flights_to_spoil(r);
    uint32_t opens;
    uint32_t meanwhile;

    for (uint32_t i = 0; flights && i < flights->n; i++) {
        struct record_flight *x = &flights->flight[i];
        if (flights_gather(e, x, backward, &opens, &meanwhile)) {
            x->behind = meanwhile + 1;
            return true;
        }
    }
    return false;
}
