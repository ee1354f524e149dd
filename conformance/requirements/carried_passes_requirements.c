/* SPDX-License-Identifier: Apache-2.0 */
/*
 * carried_passes_requirements.c - compares what ranks have sent with what the
 * model saw in each whole pass (run/witness/witness.h), recorded or not, in
 * scripts, too: the model computes with the parameters that were gathered, and
 * its gradients are those that are reduced. Asked where ranks are isolated.
 */
#include "requirements/families.h"

#include "judge/compare/compare_checks.h"
#include "requirements/carried.h"
#include "requirements/script_action.h"

#include <stddef.h>
#include <stdlib.h>

enum {
    GATHERS = 8, /* the last ones: a save gathers states of the same size */
    MANY = 16    /* a unit of so many elements is never all 0 */
};

static bool is_known(const struct record *r)
{
    return r->n_ranks > 0 && r->rank && r->rank[0].account.n_digests > 0 &&
           r->rank[0].n_passes > 0;
}

/* The digests of all collectives of one kind that a unit has, in order. */
struct list {
    uint32_t n;
    uint64_t *sum;
    uint32_t *dtype;
};

struct run {
    const struct expect *e;
    const struct record *r;
    bool reductions;
    struct list *list; /* [ranks][units], each with room for all of a rank's */
    uint64_t *sum;
    uint32_t *dtype;
};

static struct list *list_of(const struct run *run, uint32_t k, uint32_t unit)
{
    return &run->list[(size_t)k * run->e->units->n_units + unit];
}

static bool is_meant(const struct run *run, const struct carried *x)
{
    return run->reductions ? carried_is_reduction(x) : carried_is_gather(x);
}

static bool note(const struct carried *x, void *context, struct finding *f)
{
    struct run *const run = context;
    const struct record_account *const a =
        &compare_rank(x->r, x->rank)->account;

    (void)f;
    if (is_meant(run, x) && x->at < a->n_digests) {
        struct list *const to = list_of(run, x->rank, x->c->unit);

        to->sum[to->n] = a->digest[x->at];
        to->dtype[to->n++] = x->c->dtype;
    }
    return true;
}

static bool run_make(struct run *run, const struct expect *e,
                     const struct record *r, bool reductions, struct finding *f)
{
    const size_t n = (size_t)e->c->ranks * e->units->n_units;
    size_t room = 1;

    for (uint32_t k = 0; k < e->c->ranks; k++) {
        const struct record_rank *const rank = compare_rank(r, k);

        room = rank && rank->account.n_digests > room ? rank->account.n_digests
                                                      : room;
    }
    *run = (struct run){e,
                        r,
                        reductions,
                        calloc(n + 1, sizeof(*run->list)),
                        malloc((n + 1) * room * sizeof(*run->sum)),
                        malloc((n + 1) * room * sizeof(*run->dtype))};
    if (!run->list || !run->sum || !run->dtype) {
        return finding_missing(f, finding_at("run", -1, -1, 0),
                               "no memory to compare it in");
    }
    for (size_t i = 0; i < n; i++) {
        run->list[i].sum = run->sum + i * room;
        run->list[i].dtype = run->dtype + i * room;
    }
    for (uint32_t k = 0; k < e->c->ranks; k++) {
        if (!carried_each(e, r, k, note, run, f)) {
            return false;
        }
    }
    return true;
}

static void run_release(struct run *run)
{
    free(run->list);
    free(run->sum);
    free(run->dtype);
}

/* Calls `holds` for each pass of each rank and each unit. */
static bool each_pass(const struct run *run,
                      bool (*holds)(const struct run *run, uint32_t k,
                                    const struct record_pass *p,
                                    struct finding *f),
                      struct finding *f)
{
    for (uint32_t k = 0; k < run->e->c->ranks; k++) {
        const struct record_rank *const rank = compare_rank(run->r, k);

        for (uint32_t i = 0; rank && i < rank->n_passes; i++) {
            if (rank->pass[i].unit < run->e->units->n_units &&
                !holds(run, k, &rank->pass[i], f)) {
                return false;
            }
        }
    }
    return true;
}

static bool
all_hold(const struct expect *e, const struct record *r, bool reductions,
         bool (*holds)(const struct run *run, uint32_t k,
                       const struct record_pass *p, struct finding *f),
         struct finding *f)
{
    struct run run;
    const bool good =
        run_make(&run, e, r, reductions, f) && each_pass(&run, holds, f);

    run_release(&run);
    return good;
}

/* Fills in where the pass is; in a script, its action. Returns false, so that a
 * check may return it. */
static bool tell(const struct run *run, const char *kind, uint32_t k,
                 const struct record_pass *p, const char *why,
                 struct finding *f)
{
    const bool scripted = case_is_script(run->e->c);
    struct finding at =
        finding_at(kind, p->step, scripted ? -1 : (int64_t)p->microbatch, k);

    at.unit = p->unit;
    (void)finding_text(f, at, why);
    return scripted && script_action_tell(run->e, p->step, f);
}

/* ---- comm.carries-lent --------------------------------------------------- */

/* What the ranks of the group have sent in the unit's gather number `nth`. */
enum sent {
    NOT_COUNTED, /* it comes after those that were followed */
    OTHER_DTYPE, /* not in the dtype in which parameters were lent */
    OTHER_VALUES,
    SENT
};

static enum sent is_sent(const struct run *run, uint32_t k,
                         const struct record_pass *p, uint32_t nth)
{
    const uint32_t first = k - k % run->e->shards;
    uint64_t sum = 0;

    for (uint32_t m = first; m < first + run->e->shards; m++) {
        const struct list *const sent = list_of(run, m, p->unit);

        if (nth >= sent->n) {
            return NOT_COUNTED;
        }
        if (sent->dtype[nth] != p->lent_dtype) {
            return OTHER_DTYPE;
        }
        sum += sent->sum[nth];
    }
    return sum == p->lent ? SENT : OTHER_VALUES;
}

static bool lent_is_sent(const struct run *run, uint32_t k,
                         const struct record_pass *p, struct finding *f)
{
    bool other = false;

    for (uint32_t i = 0;
         p->lent_dtype != FSDP_DTYPE_NONE && i < GATHERS && i < p->gathers;
         i++) {
        const enum sent sent = is_sent(run, k, p, p->gathers - 1 - i);

        if (sent == NOT_COUNTED || sent == SENT) {
            return true;
        }
        other = other || sent == OTHER_VALUES;
    }
    return !other || tell(run, "all-gather", k, p,
                          "what the forward was lent is not what ranks have "
                          "sent when the unit was gathered last",
                          f);
}

static bool carries_lent_holds(const struct expect *e, const struct record *r,
                               struct finding *f)
{
    return all_hold(e, r, false, lent_is_sent, f);
}

/* ---- Spoils -------------------------------------------------------------- */

/* A pass of the last rank that `is`, of which the row that is `is` of is
 * changed. */
static bool spoil_pass(const struct expect *e, struct record *r,
                       bool reductions,
                       bool (*is)(const struct run *run, uint32_t k,
                                  const struct record_pass *p),
                       void (*change)(struct record_pass *p))
{
    struct record_rank *const rank = compare_rank_to_spoil(r, e->c->ranks - 1);
    struct finding f;
    struct run run;
    bool done = !run_make(&run, e, r, reductions, &f);
    const bool failed = done;

    for (uint32_t i = 0; rank && !done && i < rank->n_passes; i++) {
        struct record_pass *const p = &rank->pass[i];

        done = p->unit < e->units->n_units && is(&run, e->c->ranks - 1, p);
        if (done) {
            change(p);
        }
    }
    run_release(&run);
    return done && !failed;
}

static bool was_gathered(const struct run *run, uint32_t k,
                         const struct record_pass *p)
{
    return p->lent_dtype != FSDP_DTYPE_NONE && p->gathers > 0 &&
           is_sent(run, k, p, p->gathers - 1) == SENT;
}

static void lend_other(struct record_pass *p)
{
    p->lent ^= 1;
}

static bool carries_lent_spoil(const struct expect *e, struct record *r)
{
    return spoil_pass(e, r, false, was_gathered, lend_other);
}

static bool is_gathered(const struct expect *e)
{
    return e->shards > 1 && !e->any_fold && e->c->ranks <= WORLD_MAX_RANKS &&
           (case_is_script(e->c) || compare_case_trains(e));
}

/* ---- comm.carries-left --------------------------------------------------- */

/* Whether an action tells units what to do with gradients, so that it is not
 * known here what they reduce. */
static bool rules_gradients(const struct script_action *a)
{
    switch (a->verb) {
    case SCRIPT_SYNC:
    case SCRIPT_SET:
    case SCRIPT_FREEZE:
    case SCRIPT_THAW:
        return true;
    default:
        return a->ending == SCRIPT_LEFT_OPEN || a->n_inside > 0 ||
               (a->verb == SCRIPT_PASS && a->sync == SCRIPT_SYNC_UNSAID);
    }
}

/* Whether the reduction has the gradients of this pass alone, with nothing
 * pending from before. */
static bool is_alone(const struct expect *e, const struct record_pass *p)
{
    bool kept = false;

    if (!case_is_script(e->c)) {
        return p->microbatch == 0 || (p->microbatch < e->c->microbatches &&
                                      e->c->sync[p->microbatch - 1] != 0);
    }
    for (uint32_t i = 0; i <= p->step && i < e->n_events; i++) {
        const struct script_action *const a = e->event[i].action;

        if (rules_gradients(a)) {
            return false;
        }
        kept = (kept && a->verb != SCRIPT_ZERO) ||
               (a->verb == SCRIPT_PASS && a->sync == SCRIPT_SYNC_OFF);
    }
    return !kept;
}

/* Whether gradients are sent in this dtype as they are, neither rounded nor
 * scaled. */
static bool is_sent_as_it_is(const struct expect *e,
                             const struct record_pass *p, uint32_t dtype)
{
    const struct expect_unit *const u = &e->unit[p->unit];

    return dtype == p->left_dtype && u->factor.before == 1.0f &&
           (u->dtype.accumulate == FSDP_DTYPE_F32 ||
            u->dtype.accumulate == dtype);
}

/* The reduction of the unit in this pass; NULL: there is none, or more than
 * one. */
static const uint64_t *reduction_of(const struct run *run, uint32_t k,
                                    const struct record_pass *p)
{
    const struct list *const sent = list_of(run, k, p->unit);

    return p->left_dtype != FSDP_DTYPE_NONE && p->reduced == 1 &&
                   p->reductions < sent->n &&
                   is_sent_as_it_is(run->e, p, sent->dtype[p->reductions])
               ? &sent->sum[p->reductions]
               : NULL;
}

static bool left_is_sent(const struct run *run, uint32_t k,
                         const struct record_pass *p, struct finding *f)
{
    const struct expect *const e = run->e;
    const uint64_t *const sent = reduction_of(run, k, p);

    if (!sent || *sent == p->left) {
        return true;
    }
    if (is_alone(e, p)) {
        return tell(run, "reduce-scatter", k, p,
                    "what the rank has sent is not what its backward left", f);
    }
    return *sent != 0 || e->c->data != WORKLOAD_NATURAL ||
           e->unit[p->unit].grad_numel < MANY || e->script.n_edits > 0 ||
           tell(run, "reduce-scatter", k, p,
                "the rank has sent nothing but 0, and its backward left other "
                "gradients",
                f);
}

static bool carries_left_holds(const struct expect *e, const struct record *r,
                               struct finding *f)
{
    return all_hold(e, r, true, left_is_sent, f);
}

static bool was_reduced(const struct run *run, uint32_t k,
                        const struct record_pass *p)
{
    return is_alone(run->e, p) && reduction_of(run, k, p);
}

static void leave_other(struct record_pass *p)
{
    p->left ^= 1;
}

static bool carries_left_spoil(const struct expect *e, struct record *r)
{
    return spoil_pass(e, r, true, was_reduced, leave_other);
}

const struct requirement carried_passes_requirements[] = {
    {.since = "1.1",
     .must = 1,
     .level = LEVEL_COMM,
     .applies = is_gathered,
     .looked_at = is_known},
    {.id = "comm.carries-lent",
     .text = "Where ranks are isolated, what the forward of each pass is lent "
             "of a unit is what the ranks of its group have sent when it was "
             "gathered.",
     .needs = "comm.carries-shards comm.carries-looked-at comm.carries-same "
              "comm.carries-stepped",
     .holds = carries_lent_holds,
     .spoil = carries_lent_spoil},
    {.id = "comm.carries-left",
     .text = "Where ranks are isolated, what a rank sends in a reduction of a "
             "unit is what the backward of the pass has left, where nothing "
             "was left before; and elsewhere never nothing but 0.",
     .needs = "comm.carries-gradients comm.carries-fresh",
     .holds = carries_left_holds,
     .spoil = carries_left_spoil},
    {0},
};
