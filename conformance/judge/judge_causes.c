/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_causes.c - which of several failures came first. A fault travels in
 * time: a step that was computed wrong gives wrong gradients in the step after
 * it, never the reverse. So failures are ordered by time, and by level only if
 * they are of the same time.
 *
 * Some requirements ask for something beside plain training (that a wrong call
 * did no harm, what a load brought back) and compare the run with the unsharded
 * one. A fault in plain training fails them, too. Cases that do nothing but
 * train then show that the fault is there.
 */
#include "judge/judge_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool judge_is_failure(const struct judge_item *item)
{
    return item->outcome == JUDGE_FAIL || item->outcome == JUDGE_ERROR ||
           item->outcome == JUDGE_TIMEOUT;
}

int judge_place(struct judge_result *r)
{
    const uint32_t n = r->n_requirements;

    r->order = calloc((size_t)n + 1, sizeof(*r->order));
    r->place = calloc((size_t)n + 1, sizeof(*r->place));
    if (!r->order || !r->place) {
        return FSDP_ERR_NOMEM;
    }
    FSDP_TRY(requirement_find_needs(r->requirement, &r->needs));
    FSDP_TRY(requirement_order(&r->needs, n, r->order));
    for (uint32_t i = 0; i < n; i++) {
        r->place[r->order[i]] = i;
    }
    return FSDP_OK;
}

static uint32_t *copy_of(const uint32_t *from, size_t n)
{
    uint32_t *const to = malloc((n + 1) * sizeof(*to));

    if (to) {
        memcpy(to, from, n * sizeof(*to));
    }
    return to;
}

int judge_place_like(struct judge_result *r, const struct judge_result *like)
{
    const uint32_t n = r->n_requirements;

    r->order = copy_of(like->order, n);
    r->place = copy_of(like->place, n);
    r->needs.first = copy_of(like->needs.first, (size_t)n + 1);
    r->needs.index = copy_of(like->needs.index, like->needs.first[n]);
    return r->order && r->place && r->needs.first && r->needs.index
               ? FSDP_OK
               : FSDP_ERR_NOMEM;
}

int64_t judge_step_of(const struct judge_item *item)
{
    return item->detail && item->detail->finding.step >= 0
               ? item->detail->finding.step
               : -1;
}

/* Whether the stage is one of these words. */
static bool is_one_of(const char *stage, const char *const *words)
{
    while (*words && strcmp(stage, *words) != 0) {
        words++;
    }
    return *words != NULL;
}

/* The place of an item's stage within a step, in the order in which a step goes
 * on. Which collectives were called comes before what anybody got from them. */
static int64_t moment_of(const struct judge_item *item)
{
    const struct finding *f = &item->detail->finding;
    static const char *const begin[] = {"initial", "before",  "loaded",
                                        "loaded0", "loaded1", NULL};
    static const char *const asked[] = {"collectives", "all-gather", NULL};
    static const char *const forward[] = {"unsharded", "loss", NULL};
    static const char *const backward[] = {"local-gradient", NULL};
    static const char *const reduced[] = {"reduced", "norm", "clipped", NULL};
    static const char *const stepped[] = {"after", "state0", "state1", NULL};
    static const char *const *const order[] = {begin,    asked,   forward,
                                               backward, reduced, stepped};
    const char *stage = f->stage ? f->stage : "";
    const uint32_t n = sizeof(order) / sizeof(order[0]);

    for (uint32_t i = 0; i < n; i++) {
        if (is_one_of(stage, order[i]) && (order[i] != asked || f->unit >= 0)) {
            return i;
        }
    }
    return n;
}

/* The step by which an item is ordered. A finding without a step was there
 * before the first one (how ranks ended, where values lie), or is about the run
 * as a whole. */
static int64_t step_in_order(const struct judge_item *item, uint32_t level)
{
    const struct finding *f = &item->detail->finding;

    if (f->step >= 0) {
        return f->step;
    }
    return level <= LEVEL_LAYOUT && (!f->stage || strcmp(f->stage, "end") != 0)
               ? -1
               : INT64_MAX;
}

int judge_compare_causes(const struct judge_result *r, uint32_t c, uint32_t q,
                         uint32_t d, uint32_t p)
{
    const struct judge_item *x = judge_item_at(r, c, q);
    const struct judge_item *y = judge_item_at(r, d, p);
    enum {
        KEYS = 4
    };
    const int64_t a[KEYS] = {step_in_order(x, r->requirement[q]->level),
                             moment_of(x), r->requirement[q]->level,
                             r->place[q]};
    const int64_t b[KEYS] = {step_in_order(y, r->requirement[p]->level),
                             moment_of(y), r->requirement[p]->level,
                             r->place[p]};
    uint32_t i = 0;

    while (i < KEYS - 1 && a[i] == b[i]) {
        i++;
    }
    return (a[i] > b[i]) - (a[i] < b[i]);
}

/* Whether (c, q) comes before (d, p), the first that was found so far. */
static bool comes_before(const struct judge_result *r, uint32_t c, uint32_t q,
                         uint32_t d, uint32_t p)
{
    uint32_t must = r->requirement[q]->must;
    uint32_t other = r->requirement[p]->must;

    return must != other ? must > other
                         : judge_compare_causes(r, c, q, d, p) < 0;
}

/* Whether q needs p, or needs what does. Needs have no circle
 * (requirement_set_check). NOLINTNEXTLINE(misc-no-recursion) */
static bool waits_for(const struct judge_result *r, uint32_t q, uint32_t p)
{
    for (uint32_t k = r->needs.first[q]; k < r->needs.first[q + 1]; k++) {
        const uint32_t need = r->needs.index[k];

        if (need == p || waits_for(r, need, p)) {
            return true;
        }
    }
    return false;
}

/* Whether q failed before p did, although q needs p. (A MUST cannot wait for a
 * SHOULD, so a SHOULD blocks none.) */
static bool is_earlier(const struct judge_result *r,
                       const struct judge_item *items, uint32_t q, uint32_t p)
{
    const int64_t step = judge_step_of(&items[q]);

    return judge_is_failure(&items[q]) && step >= 0 &&
           step < judge_step_of(&items[p]) &&
           r->requirement[q]->must >= r->requirement[p]->must &&
           (r->reported[q] || !r->reported[p]) && waits_for(r, q, p);
}

void judge_block(struct judge_item *item, uint32_t by)
{
    free(item->detail);
    item->detail = NULL;
    item->outcome = JUDGE_BLOCKED;
    item->blocked_by = by;
}

/* Blocks p by q; all that p blocked is blocked by q, too. */
static void put_in_place(const struct judge_result *r, struct judge_item *items,
                         uint32_t p, uint32_t q)
{
    assert(p != q); /* nothing is its own cause */
    for (uint32_t i = 0; i < r->n_requirements; i++) {
        if (items[i].outcome == JUDGE_BLOCKED && items[i].blocked_by == p) {
            items[i].blocked_by = q;
        }
    }
    judge_block(&items[p], q);
}

void judge_settle_causes(const struct judge_result *r, uint32_t c)
{
    struct judge_item *items = &r->item[(uint64_t)c * r->n_requirements];

    for (uint32_t p = 0; p < r->n_requirements; p++) {
        uint32_t first = JUDGE_NONE;

        for (uint32_t q = 0;
             judge_is_failure(&items[p]) && q < r->n_requirements; q++) {
            if (is_earlier(r, items, q, p) &&
                (first == JUDGE_NONE || comes_before(r, c, q, c, first))) {
                first = q;
            }
        }
        /* The others were asked, because nothing that they need had failed by
         * then; but they may show nothing but what came of `first`. */
        for (uint32_t q = 0; first != JUDGE_NONE && q < r->n_requirements;
             q++) {
            if (q != first && is_earlier(r, items, q, p) &&
                r->requirement[first]->must >= r->requirement[q]->must) {
                put_in_place(r, items, q, first);
            }
        }
        if (first != JUDGE_NONE) {
            put_in_place(r, items, p, first);
        }
    }
}

bool judge_first_cause_of(const struct judge_result *r, uint32_t c, uint32_t *q)
{
    bool found = false;

    for (uint32_t i = 0; i < r->n_requirements; i++) {
        if (r->reported[i] && judge_is_failure(judge_item_at(r, c, i)) &&
            (!found || comes_before(r, c, i, c, *q))) {
            *q = i;
            found = true;
        }
    }
    return found;
}

bool judge_first_cause(const struct judge_result *r, uint32_t *c, uint32_t *q)
{
    bool found = false;

    for (uint32_t i = 0; i < r->n_cases; i++) {
        uint32_t p;

        if (judge_first_cause_of(r, i, &p) &&
            (!found || comes_before(r, i, p, *c, *q))) {
            *c = i;
            *q = p;
            found = true;
        }
    }
    return found;
}

/* Whether a MUST failed in the cases that `counts`; *q is the first cause of
 * all of these. False: the cases are right. */
static bool is_wrong(const struct judge_result *r,
                     bool (*counts)(const struct run_case *c,
                                    const struct requirement *q),
                     uint32_t *q)
{
    uint32_t c = r->n_cases;

    for (uint32_t d = 0; d < r->n_cases; d++) {
        uint32_t p;

        if (judge_first_cause_of(r, d, &p) && r->requirement[p]->must != 0 &&
            counts(&r->cases[d].c, r->requirement[p]) &&
            (c == r->n_cases || comes_before(r, d, p, c, *q))) {
            c = d;
            *q = p;
        }
    }
    return c < r->n_cases;
}

/* Whether case c does nothing but train, and q is about what training
 * computes. */
static bool is_training(const struct run_case *c, const struct requirement *q)
{
    return c->scenario == CASE_TRAIN && q->level <= LEVEL_STEP && !q->of_rest;
}

static bool is_of_scenario(const struct run_case *c,
                           const struct requirement *q)
{
    return !case_is_script(c) && !q->general;
}

/* Whether q is about wrong values, and names the place where they are. */
static bool is_of_values(const struct run_case *c, const struct requirement *q)
{
    (void)c;
    return q->level <= LEVEL_STEP && !q->general;
}

/* The case that does nothing but train and is else like case c; n_cases: the
 * run does not have it. */
static uint32_t companion_of(const struct judge_result *r, uint32_t c)
{
    struct run_case plain = r->cases[c].c;
    char id[CASE_ID_BYTES];
    uint32_t d = 0;

    plain.scenario = CASE_TRAIN;
    case_id(&plain, id);
    while (d < r->n_cases && (strcmp(r->cases[d].id, id) != 0 ||
                              r->cases[d].outcome != JUDGE_PASS)) {
        d++;
    }
    return d;
}

/* Whether q, in case c, tells of something beside training and of nothing else,
 * because the plain case was run, and was right if q compares with the
 * unsharded run. */
static bool is_beside(const struct judge_result *r, uint32_t c, uint32_t q)
{
    const uint32_t d = companion_of(r, c);
    uint32_t wrong;

    if (r->requirement[q]->harmless) {
        return d < r->n_cases;
    }
    return d < r->n_cases && !judge_first_cause_of(r, d, &wrong);
}

void judge_settle_beside_training(const struct judge_result *r)
{
    uint32_t by = 0;

    if (!is_wrong(r, is_training, &by)) {
        return;
    }
    for (uint32_t c = 0; c < r->n_cases; c++) {
        struct judge_item *items = &r->item[(uint64_t)c * r->n_requirements];

        for (uint32_t q = 0; q < r->n_requirements; q++) {
            const struct requirement *of = r->requirement[q];

            if (q != by && (of->harmless || of->beside_training) &&
                judge_is_failure(&items[q]) && !is_beside(r, c, q)) {
                put_in_place(r, items, q, by);
            }
        }
    }
}

/* The requirement that is not general and failed first in case c, if that was
 * no later than the first general one; JUDGE_NONE: there is none. */
static uint32_t named_in_case(const struct judge_result *r, uint32_t c)
{
    uint32_t first, named = JUDGE_NONE;

    if (!judge_first_cause_of(r, c, &first) ||
        !r->requirement[first]->general) {
        return JUDGE_NONE;
    }
    for (uint32_t q = 0; q < r->n_requirements; q++) {
        const struct judge_item *item = judge_item_at(r, c, q);

        if (r->reported[q] && r->requirement[q]->must != 0 &&
            !r->requirement[q]->general && judge_is_failure(item) &&
            step_in_order(item, r->requirement[q]->level) <=
                step_in_order(judge_item_at(r, c, first),
                              r->requirement[first]->level) &&
            (named == JUDGE_NONE || comes_before(r, c, q, c, named))) {
            named = q;
        }
    }
    return named;
}

/* In one case: a general requirement would come before the one that names the
 * place in the same step, and so is blocked by it. */
static void settle_general_in_case(const struct judge_result *r, uint32_t c)
{
    struct judge_item *items = &r->item[(uint64_t)c * r->n_requirements];
    const uint32_t by = named_in_case(r, c);

    for (uint32_t q = 0; by != JUDGE_NONE && q < r->n_requirements; q++) {
        if (r->requirement[q]->general && judge_is_failure(&items[q])) {
            put_in_place(r, items, q, by);
        }
    }
}

/* General requirements up to level `most` are blocked by the first cause in the
 * cases that `counts`, unless that one is of a higher level. */
static void settle_general(const struct judge_result *r,
                           bool (*counts)(const struct run_case *c,
                                          const struct requirement *q),
                           uint32_t most)
{
    uint32_t by = 0;

    if (!is_wrong(r, counts, &by)) {
        return;
    }
    for (uint32_t c = 0; c < r->n_cases; c++) {
        struct judge_item *items = &r->item[(uint64_t)c * r->n_requirements];

        for (uint32_t q = 0; q < r->n_requirements; q++) {
            const struct requirement *of = r->requirement[q];

            if (of->general && of->level <= most &&
                r->requirement[by]->level <= of->level &&
                judge_is_failure(&items[q])) {
                put_in_place(r, items, q, by);
            }
        }
    }
}

/* Collectives and live bytes show by themselves which action was wrong. Wrong
 * values may have come from elsewhere, so a failure that names a place is
 * looked at before a general one, in whichever case. */
void judge_settle_general(const struct judge_result *r)
{
    for (uint32_t c = 0; c < r->n_cases; c++) {
        settle_general_in_case(r, c);
    }
    settle_general(r, is_of_scenario, LEVEL_ERRORS);
    settle_general(r, is_of_values, LEVEL_STEP);
}
