/* SPDX-License-Identifier: Apache-2.0 */
/*
 * carried_moves_requirements.c - what ranks have sent in steps without recorded
 * tensors: shards must have moved where gradients were sent, and gradients must
 * not be those of the step before. Asked where ranks are isolated.
 */
#include "requirements/families.h"

#include "judge/compare/compare_checks.h"
#include "requirements/carried.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    LONG = 6, /* steps: only of so many does the second half say anything */
    MANY = 16 /* a unit of so many elements has a gradient on some rank */
};

/* What a rank sends of a unit in a step. */
struct sent {
    const struct record_collective *c; /* its first all-gather; NULL: none */
    uint64_t gathered;
    uint32_t at; /* its number among all of the rank's */
    struct {     /* [0] within the shard group, [1] between replicas */
        uint64_t first;
        uint32_t at;
        bool reduces, gives; /* there is a reduction; it sends something but
                              * +0 */
    } of[2];
};

struct run {
    const struct expect *e;
    const struct record *r;
    struct sent *sent;    /* [ranks][units][steps] */
    uint64_t *nothing[2]; /* [units], of the rank; 0: not known yet */
};

static struct sent *sent_in(const struct run *run, uint32_t k, uint32_t unit,
                            uint32_t step)
{
    return run->sent +
           ((size_t)k * run->e->units->n_units + unit) * run->e->c->steps +
           step;
}

static void note_reduction(struct run *run, const struct carried *x,
                           uint32_t across)
{
    struct sent *const sent = sent_in(run, x->rank, x->c->unit, x->step);
    uint64_t *const nothing = &run->nothing[across][x->c->unit];

    *nothing = *nothing ? *nothing : carried_nothing(x);
    sent->of[across].gives = sent->of[across].gives || x->payload != *nothing;
    if (!sent->of[across].reduces) {
        sent->of[across].reduces = true;
        sent->of[across].first = x->payload;
        sent->of[across].at = x->at;
    }
}

static bool note_sent(const struct carried *x, void *context, struct finding *f)
{
    struct run *const run = context;

    (void)f;
    if (x->step >= x->e->c->steps) {
        return true;
    }
    if (carried_is_reduction(x) || carried_is_across(x)) {
        note_reduction(run, x, carried_is_across(x));
    } else if (carried_is_gather(x) && x->c->dtype == FSDP_DTYPE_F32) {
        struct sent *const sent = sent_in(run, x->rank, x->c->unit, x->step);

        if (!sent->c) {
            sent->c = x->c;
            sent->gathered = x->payload;
            sent->at = x->at;
        }
    }
    return true;
}

static void run_release(struct run *run)
{
    free(run->sent);
    free(run->nothing[0]);
    free(run->nothing[1]);
}

static bool run_make(struct run *run, const struct expect *e,
                     const struct record *r, struct finding *f)
{
    const size_t units = e->units->n_units;

    *run = (struct run){
        .e = e,
        .r = r,
        .sent =
            calloc(e->c->ranks * units * e->c->steps + 1, sizeof(*run->sent)),
        .nothing = {calloc(units + 1, sizeof(uint64_t)),
                    calloc(units + 1, sizeof(uint64_t))},
    };
    if (!run->sent || !run->nothing[0] || !run->nothing[1]) {
        return finding_missing(f, finding_at("all-gather", -1, -1, 0),
                               "no memory to compare it in");
    }
    for (uint32_t k = 0; k < e->c->ranks; k++) {
        memset(run->nothing[0], 0, units * sizeof(uint64_t));
        memset(run->nothing[1], 0, units * sizeof(uint64_t));
        if (!carried_each(e, r, k, note_sent, run, f)) {
            return false;
        }
    }
    return true;
}

/* Calls `holds` for each unit of a rank and each step that is followed by
 * another one. */
static bool each_step(const struct run *run, uint32_t k,
                      bool (*holds)(const struct run *run, uint32_t k,
                                    uint32_t unit, uint32_t step,
                                    struct finding *f),
                      struct finding *f)
{
    for (uint32_t u = 0; u < run->e->units->n_units; u++) {
        for (uint32_t s = 0; s + 1 < run->e->c->steps; s++) {
            if (!holds(run, k, u, s, f)) {
                return false;
            }
        }
    }
    return true;
}

/* The same of all ranks. */
static bool each_rank(const struct expect *e, const struct record *r,
                      bool (*holds)(const struct run *run, uint32_t k,
                                    uint32_t unit, uint32_t step,
                                    struct finding *f),
                      struct finding *f)
{
    struct run run;
    bool good = run_make(&run, e, r, f);

    for (uint32_t k = 0; good && k < e->c->ranks; k++) {
        good = each_step(&run, k, holds, f);
    }
    run_release(&run);
    return good;
}

static struct finding place(const char *kind, uint32_t k, uint32_t unit,
                            uint32_t step)
{
    struct finding at = finding_at(kind, step, -1, k);

    at.unit = unit;
    return at;
}

/* ---- comm.carries-stepped ------------------------------------------------ */

/* Whether the rank sends another shard of the unit in the next step; both
 * gathers are recorded. */
static bool has_moved(const struct run *run, uint32_t k, uint32_t unit,
                      uint32_t step)
{
    const struct sent *const a = sent_in(run, k, unit, step);
    const struct sent *const b = sent_in(run, k, unit, step + 1);

    return a->c && b->c && a->gathered != b->gathered;
}

/* Whether the shard of rank k must move in the step, as it did in the first
 * one, because another rank has a gradient of what rank k owns. In a group of
 * more than two ranks it is only known that some shard of the group must
 * move. */
static bool must_move(const struct run *run, uint32_t k, uint32_t unit,
                      uint32_t step)
{
    const uint32_t first = k - k % run->e->shards;
    bool moves = true;
    bool reduces = false;

    for (uint32_t i = first; i < first + run->e->shards; i++) {
        const struct sent *const b = sent_in(run, i, unit, step + 1);
        const bool two = run->e->shards == 2;

        moves = moves &&
                (two && i != k ? true : b->c && has_moved(run, i, unit, 0));
        reduces = reduces || ((!two || i != k) &&
                              sent_in(run, i, unit, step)->of[0].gives);
    }
    return moves && reduces;
}

/* Whether the shard of rank k has not moved, or, in a group of more than two
 * ranks, no shard of the group. */
static bool stands_still(const struct run *run, uint32_t k, uint32_t unit,
                         uint32_t step)
{
    const uint32_t first = k - k % run->e->shards;

    for (uint32_t i = first; i < first + run->e->shards; i++) {
        if ((run->e->shards > 2 || i == k) && has_moved(run, i, unit, step)) {
            return false;
        }
    }
    return true;
}

/* Whether rank k sends always the same from the middle of the run on, which is
 * not its shard at the end. */
static bool ends_elsewhere(const struct run *run, uint32_t k, uint32_t unit)
{
    const struct expect *const e = run->e;
    const uint32_t half = e->c->steps / 2;
    const struct sent *const sent = sent_in(run, k, unit, half);
    const struct carried x = {.e = e,
                              .r = run->r,
                              .c = sent->c,
                              .payload = sent->gathered,
                              .rank = k,
                              .shard = k % e->shards,
                              .step = half};
    bool missing;

    for (uint32_t s = half; s < e->c->steps; s++) {
        const struct sent *const other = sent_in(run, k, unit, s);

        if (!other->c || other->gathered != sent->gathered) {
            return false;
        }
    }
    return !carried_is_shard(&x, RECORD_FINAL, e->c->steps, &missing) &&
           !missing;
}

static bool moves(const struct run *run, uint32_t k, uint32_t unit,
                  uint32_t step, struct finding *f)
{
    if (must_move(run, k, unit, step) && stands_still(run, k, unit, step)) {
        return finding_text(f, place("all-gather", k, unit, step + 1),
                            "what the rank has sent is what it sent in the "
                            "step before, which has reduced gradients");
    }
    return step != 0 || run->e->c->steps < LONG ||
           !has_moved(run, k, unit, 0) || !ends_elsewhere(run, k, unit) ||
           finding_text(f, place("all-gather", k, unit, run->e->c->steps / 2),
                        "what the rank sends from here on is always the same, "
                        "and not its shard at the end");
}

static bool carries_stepped_holds(const struct expect *e,
                                  const struct record *r, struct finding *f)
{
    return each_rank(e, r, moves, f);
}

/* Lets all of the last rank's group send what they sent in the step before;
 * false: that would be allowed. */
static bool stand_still(const struct run *run, struct record *r, uint32_t unit,
                        uint32_t step)
{
    const uint32_t k = run->e->c->ranks - 1;

    if (!must_move(run, k, unit, step)) {
        return false;
    }
    for (uint32_t m = k - k % run->e->shards; m <= k; m++) {
        struct record_rank *const rank = compare_rank_to_spoil(r, m);
        const struct sent *const to = sent_in(run, m, unit, step + 1);

        if (rank && to->c) {
            rank->account.payload[to->at] =
                sent_in(run, m, unit, step)->gathered;
        }
    }
    return true;
}

/* Spoils the first unit and step that can be spoiled, behind the first step,
 * which shows whether a shard moves at all. */
static bool spoil_first(const struct expect *e, struct record *r,
                        bool (*spoil)(const struct run *run, struct record *r,
                                      uint32_t unit, uint32_t step))
{
    struct finding f;
    struct run run;
    const bool good = run_make(&run, e, r, &f);
    bool done = false;

    for (uint32_t u = 0; good && u < e->units->n_units; u++) {
        for (uint32_t s = 1; !done && s + 1 < e->c->steps; s++) {
            done = spoil(&run, r, u, s);
        }
    }
    run_release(&run);
    return done;
}

static bool carries_stepped_spoil(const struct expect *e, struct record *r)
{
    return spoil_first(e, r, stand_still);
}

static bool is_stepped(const struct expect *e)
{
    return compare_case_staged(e) && e->c->data == WORKLOAD_NATURAL &&
           e->shards > 1 && !e->any_fold && e->c->ranks <= WORLD_MAX_RANKS &&
           e->c->steps > 2;
}

/* ---- comm.carries-fresh -------------------------------------------------- */

/* Whether only gradients move the unit's shards, and some shard has moved in
 * this step. */
static bool moves_by_gradients(const struct run *run, uint32_t unit,
                               uint32_t step)
{
    const struct expect *const e = run->e;
    bool moves = false;

    for (uint32_t k = 0; k < e->c->ranks; k++) {
        moves = moves || has_moved(run, k, unit, step);
    }
    return moves && e->c->optimizer == FSDP_OPTIMIZER_SGD &&
           e->c->weight_decay == 0.0f && e->c->scenario != CASE_GROUPS &&
           e->unit[unit].grad_numel >= MANY;
}

/* Whether some rank has sent a gradient in the first step, and every rank sends
 * in this step what it sent in the one before. */
static bool is_nothing_new(const struct run *run, uint32_t unit, uint32_t step,
                           uint32_t across)
{
    bool gave = false;

    for (uint32_t k = 0; k < run->e->c->ranks; k++) {
        const struct sent *const before = sent_in(run, k, unit, step - 1);
        const struct sent *const now = sent_in(run, k, unit, step);

        gave = gave || sent_in(run, k, unit, 0)->of[across].gives;
        if (now->of[across].gives &&
            now->of[across].first != before->of[across].first) {
            return false;
        }
    }
    return gave;
}

static bool is_fresh(const struct run *run, uint32_t k, uint32_t unit,
                     uint32_t step, struct finding *f)
{
    static const char *const kind[2] = {"reduce-scatter", "all-reduce"};

    for (uint32_t i = 0; k == 0 && step > 0 && i < 2; i++) {
        if (is_nothing_new(run, unit, step, i) &&
            moves_by_gradients(run, unit, step)) {
            return finding_text(f, place(kind[i], k, unit, step),
                                "ranks have sent 0, or what they sent in the "
                                "step before, and shards move");
        }
    }
    return true;
}

static bool carries_fresh_holds(const struct expect *e, const struct record *r,
                                struct finding *f)
{
    return each_rank(e, r, is_fresh, f);
}

/* Lets all ranks send in a step what they sent in the one before; false: that
 * would be allowed. */
static bool send_again(const struct run *run, struct record *r, uint32_t unit,
                       uint32_t step)
{
    bool gave = false;

    if (!moves_by_gradients(run, unit, step)) {
        return false;
    }
    for (uint32_t k = 0; k < run->e->c->ranks; k++) {
        const struct sent *const before = sent_in(run, k, unit, step - 1);
        const struct sent *const now = sent_in(run, k, unit, step);
        struct record_rank *const rank = compare_rank_to_spoil(r, k);

        gave = gave || sent_in(run, k, unit, 0)->of[0].gives;
        if (rank && now->of[0].reduces) {
            rank->account.payload[now->of[0].at] = before->of[0].first;
        }
    }
    return gave;
}

static bool carries_fresh_spoil(const struct expect *e, struct record *r)
{
    return spoil_first(e, r, send_again);
}

const struct requirement carried_moves_requirements[] = {
    {.since = "1.1",
     .must = 1,
     .level = LEVEL_COMM,
     .applies = is_stepped,
     .looked_at = carried_is_known},
    {.id = "comm.carries-stepped",
     .text = "Where ranks are isolated, what is sent in all-gathers of a unit "
             "does not stay the same over a step in which gradients of it "
             "that are not all 0 were reduced, as it did not in the first "
             "one.",
     .needs = "comm.carries-shards comm.carries-gradients",
     .holds = carries_stepped_holds,
     .spoil = carries_stepped_spoil},
    {.id = "comm.carries-fresh",
     .text = "Where ranks are isolated, and gradients alone move a unit's "
             "shards, not all ranks have sent 0, or what they sent in the step "
             "before, in its reductions.",
     .needs = "comm.carries-gradients comm.carries-partial-sums",
     .holds = carries_fresh_holds,
     .spoil = carries_fresh_spoil},
    {0},
};
