/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control_requirements.c - scripts that set knobs of single units (`set`):
 * whether a unit is reduced, and across replicas; and what is left pending
 * where it is not. What a pass must do is worked out here from the script's
 * words, apart from the oracle's walk.
 */
#include "requirements/families.h"
#include "requirements/script_checks.h"

#include "judge/compare/compare_checks.h"

/* ---- What the script says ------------------------------------------------ */

static bool sets(const struct expect *e, uint32_t knob)
{
    for (uint32_t i = 0; case_is_script(e->c) && i < e->n_events; i++) {
        if (script_at(e, i)->verb == SCRIPT_SET &&
            script_at(e, i)->knob == knob) {
            return true;
        }
    }
    return false;
}

static bool is_pass(const struct script_action *a)
{
    return a->verb == SCRIPT_PASS || a->verb == SCRIPT_EVAL;
}

/* Whether the action is a training pass that comes to its end. */
static bool trains(const struct script_action *a)
{
    return a->verb == SCRIPT_PASS && a->ending == SCRIPT_WHOLE;
}

/* What the action says of unit u's knob: 0, 1, or nothing. With `inside` also
 * what is said within a pass, which holds for later passes. */
enum said {
    SAYS_OFF = 0,
    SAYS_ON = 1,
    SAYS_NOTHING = 2,
};

static enum said of_sync(uint32_t sync)
{
    return sync == SCRIPT_SYNC_UNSAID ? SAYS_NOTHING
           : sync == SCRIPT_SYNC_ON   ? SAYS_ON
                                      : SAYS_OFF;
}

static enum said said_by(const struct expect *e, const struct script_action *a,
                         uint32_t u, uint32_t knob, bool inside)
{
    const bool is_sync = knob == FSDP_KNOB_GRADIENT_SYNC;

    if (a->verb == SCRIPT_AGAIN) {
        return SAYS_ON;
    }
    if (a->verb == SCRIPT_SET && a->knob == knob &&
        (a->unit == u || a->unit == FSDP_NO_UNIT)) {
        return a->value != 0.0f ? SAYS_ON : SAYS_OFF;
    }
    for (uint32_t i = a->n_inside; is_sync && inside && i-- > 0;) {
        const uint32_t sync = e->script.inside[a->first_inside + i].sync;

        if (sync != SCRIPT_SYNC_UNSAID) {
            return of_sync(sync);
        }
    }
    return is_sync && (is_pass(a) || a->verb == SCRIPT_SYNC) ? of_sync(a->sync)
                                                             : SAYS_NOTHING;
}

/* Whether unit u's knob is on in the pass that is action i: the last action
 * that said something decides. After shard it is on. */
static bool is_on(const struct expect *e, uint32_t i, uint32_t u, uint32_t knob)
{
    for (uint32_t k = i + 1; k-- > 0;) {
        const enum said said = said_by(e, script_at(e, k), u, knob, k < i);

        if (said != SAYS_NOTHING) {
            return said == SAYS_ON;
        }
    }
    return true;
}

/* Whether unit u has something to train in action i. */
static bool is_trained(const struct expect *e, uint32_t i, uint32_t u)
{
    return expect_at(e, i)->unit[u].trains;
}

/* How many backward windows unit u has in a training pass: phases in which one
 * of its modules has a backward point. */
static uint32_t backwards_of(const struct expect *e, uint32_t u)
{
    const struct fsdp_sequence *s = e->model->sequence[FSDP_SEQUENCE_TRAIN];
    uint32_t n = 0;
    bool open = false;

    for (uint32_t i = 0; i < s->n; i++) {
        if (compare_is_forward(s->point[i])) {
            open = false;
        } else if (!open && expect_is_of(e, s->module[i], u)) {
            open = true;
            n++;
        }
    }
    return n;
}

/* ---- control.unit-sync, control.all-reduce ------------------------------- */

static bool counts_hold(const struct expect *e,
                        const struct record_sequence *got, uint32_t kind,
                        struct finding at, struct finding *f)
{
    const uint32_t i = (uint32_t)at.step;

    for (uint32_t u = 0; trains(script_at(e, i)) && u < e->units->n_units;
         u++) {
        const bool on =
            is_trained(e, i, u) && is_on(e, i, u, FSDP_KNOB_GRADIENT_SYNC) &&
            (kind != FSDP_ALL_REDUCE || is_on(e, i, u, FSDP_KNOB_ALL_REDUCE));
        const uint32_t want = on ? backwards_of(e, u) : 0;
        const uint32_t n = compare_count_of(got, kind, u);

        if (n != want) {
            at.unit = u;
            (void)finding_count(f, at, n, want,
                                kind == FSDP_ALL_REDUCE
                                    ? "all-reduces of this unit"
                                    : "reduce-scatters of this unit");
            return script_action_tell(e, i, f);
        }
    }
    return true;
}

static bool is_counted(const struct expect *e, uint32_t i,
                       const struct record_collective *c, uint32_t kind)
{
    return trains(script_at(e, i)) && c->kind == kind;
}

/* Turns the first collective of this kind into one of a kind that is not
 * counted. */
static bool count_spoil(const struct expect *e, struct record *r, uint32_t kind)
{
    struct record_collective *c =
        script_find_collective(e, r, is_counted, kind);

    if (c) {
        c->kind = FSDP_BARRIER;
    }
    return c != NULL;
}

static bool sets_sync(const struct expect *e)
{
    return e->shards > 1 && sets(e, FSDP_KNOB_GRADIENT_SYNC);
}

static bool unit_sync_in_action(const struct expect *e,
                                const struct record_sequence *got,
                                struct finding at, struct finding *f)
{
    return counts_hold(e, got, FSDP_REDUCE_SCATTER, at, f);
}

static bool unit_sync_spoil(const struct expect *e, struct record *r)
{
    return count_spoil(e, r, FSDP_REDUCE_SCATTER);
}

static bool sets_all_reduce(const struct expect *e)
{
    return e->replicas > 1 && sets(e, FSDP_KNOB_ALL_REDUCE);
}

static bool all_reduce_in_action(const struct expect *e,
                                 const struct record_sequence *got,
                                 struct finding at, struct finding *f)
{
    return counts_hold(e, got, FSDP_ALL_REDUCE, at, f);
}

static bool all_reduce_spoil(const struct expect *e, struct record *r)
{
    return count_spoil(e, r, FSDP_ALL_REDUCE);
}

/* ---- control.partial-sum ------------------------------------------------- */

/* Whether unit u has a sum behind action i that was not yet all-reduced between
 * replicas. */
static bool has_partial(const struct expect *e, uint32_t i, uint32_t u)
{
    bool partial = false;

    for (uint32_t k = 0; k <= i; k++) {
        const struct script_action *a = script_at(e, k);

        if (trains(a) && is_trained(e, k, u) && backwards_of(e, u) > 0 &&
            is_on(e, k, u, FSDP_KNOB_GRADIENT_SYNC)) {
            partial = !is_on(e, k, u, FSDP_KNOB_ALL_REDUCE);
        }
        partial = partial && a->verb != SCRIPT_ZERO && a->verb != SCRIPT_LOAD &&
                  a->verb != SCRIPT_AGAIN &&
                  !(is_pass(a) && a->ending == SCRIPT_CANCELLED);
    }
    return partial;
}

/* Whether action i is a look behind a pass that all-reduces such a sum between
 * replicas, and leaves the gradient there. */
static bool shows_sum(const struct expect *e, uint32_t i, uint32_t u)
{
    return i > 1 && script_at(e, i)->verb == SCRIPT_LOOK &&
           trains(script_at(e, i - 1)) && has_partial(e, i - 2, u) &&
           !has_partial(e, i - 1, u) && e->event[i].reduced[u];
}

static bool is_sum(const struct requirement *q, const struct expect *e,
                   uint32_t i, uint32_t p, uint32_t stage)
{
    (void)q;
    return stage == RECORD_REDUCED && expect_is_trainable(expect_at(e, i), p) &&
           shows_sum(e, i, e->unit_of_parameter[p]);
}

static bool sum_of_part(const struct expect *e, const struct record *r,
                        const struct compare_part *part, struct finding *f)
{
    return !script_look_shows(e, part, RECORD_REDUCED) ||
           compare_as_baseline(e, r, part, RECORD_REDUCED, f);
}

/* ---- Calls that must be refused ------------------------------------------ */

static bool has_replicas(const struct expect *e)
{
    return e->replicas > 1;
}

/* Whether the script switches the sync of single units, so that some are
 * reduced while others are not. */
static bool sets_sync_of_units(const struct expect *e)
{
    return sets(e, FSDP_KNOB_GRADIENT_SYNC);
}

const struct requirement control_requirements[] = {
    {.since = "1.1", .must = 1, .level = LEVEL_ERRORS},
    {.id = "control.unit-sync",
     .text = "A unit is reduced in the passes in which its own gradient sync "
             "is on, whatever is said of other units.",
     .level = LEVEL_COMM,
     .needs = "run.shows-every-step",
     .claim = "unit-controls",
     .applies = sets_sync,
     .check = &check_each_step,
     .step = {.holds = unit_sync_in_action},
     .spoil = unit_sync_spoil},
    {.id = "control.all-reduce",
     .text = "A unit is reduced across replicas in the passes in which its own "
             "all-reduce is on, and in no other.",
     .level = LEVEL_COMM,
     .needs = "run.shows-every-step control.unit-sync",
     .claim = "partial-replicas",
     .applies = sets_all_reduce,
     .check = &check_each_step,
     .step = {.holds = all_reduce_in_action},
     .spoil = all_reduce_spoil},
    /* A sum that is rounded once more, or whose terms are scaled one by one,
     * differs by little. */
    {.id = "control.partial-sum",
     .text = "Sums over shards that replicas have not met for add up in the "
             "reduce dtype, and are all-reduced and scaled once.",
     .level = LEVEL_REDUCE,
     .beside_training = true,
     .needs = "run.shows-every-step control.all-reduce",
     .claim = "partial-replicas",
     .profile = PROFILE_BITS,
     .applies = sets_all_reduce,
     .check = &check_looks,
     .look = {is_sum, sum_of_part}},
    {.id = "error.control-in-pass",
     .text = "A knob that is turned between BEGIN and END, or unshard_all and "
             "reshard_all, is refused as INVALID.",
     .needs = "run.completes",
     .claim = "unit-controls",
     .check = &check_asked,
     .answers = {{"set-in-pass", FSDP_ERR_INVALID},
                 {"set-while-open", FSDP_ERR_INVALID}}},
    {.id = "error.control-arguments",
     .text = "A unit beyond the units, a knob that is none and a value that a "
             "knob does not have are refused as INVALID; of the first two the "
             "message says which.",
     .needs = "run.completes",
     .claim = "unit-controls",
     .check = &check_asked_named,
     .answers = {{"set-unknown-unit", FSDP_ERR_INVALID},
                 {"set-unknown-knob", FSDP_ERR_INVALID},
                 {"set-to-two", FSDP_ERR_INVALID},
                 {"set-to-nan", FSDP_ERR_INVALID}}},
    /* Other units would be a step ahead of this one. */
    {.id = "error.step-with-unit-pending",
     .text = "A step while one unit alone has gradients that its sync has not "
             "reduced is refused as INVALID.",
     .needs = "run.survives run.ranks-present",
     .claim = "unit-controls",
     .applies = sets_sync_of_units,
     .check = &check_asked,
     .answers = {{"step-with-pending", FSDP_ERR_INVALID}}},
    /* The norm would be that of incomplete gradients. */
    {.id = "error.clip-with-partials",
     .text = "Clipping while a unit has gradients that sync has not reduced, "
             "or a sum that replicas have not met for, is refused as INVALID.",
     .needs = "run.survives run.ranks-present",
     .claim = "partial-replicas",
     .applies = has_replicas,
     .check = &check_asked,
     .answers = {{"clip-with-pending", FSDP_ERR_INVALID},
                 {"clip-with-partials", FSDP_ERR_INVALID}}},
    /* The replicas' weights would go apart. */
    {.id = "error.step-with-partials",
     .text = "A step while a unit has a sum that replicas have not met for is "
             "refused as INVALID.",
     .needs = "run.survives run.ranks-present",
     .claim = "partial-replicas",
     .applies = has_replicas,
     .check = &check_asked,
     .answers = {{"step-with-partials", FSDP_ERR_INVALID}}},
    {0},
};
