/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frozen_requirements.c - parameters that are not trained: they are sharded and
 * gathered as all others are, but not reduced or stepped. They are frozen to
 * save memory and traffic, so both must be saved.
 */
#include "requirements/families.h"

#include "judge/compare/compare_checks.h"

#include <stddef.h>
#include <stdlib.h>

/* False for another name of a parameter, which takes no place. */
static bool is_own(const struct expect *e, uint32_t p)
{
    return expect_original(e, p) == p;
}

static bool trains_frozen(const struct expect *e)
{
    return compare_case_trains(e) && compare_case_freezes(e);
}

static bool has_unit(const struct expect *e, bool trains)
{
    for (uint32_t u = 0; u < e->units->n_units; u++) {
        if (e->unit[u].freezes && e->unit[u].trains == trains) {
            return true;
        }
    }
    return false;
}

static bool has_mixed_unit(const struct expect *e)
{
    return compare_case_trains(e) && e->c->ranks > 1 && has_unit(e, true);
}

/* Whether flat gradients have places for frozen parameters. */
static bool has_holes(const struct expect *e)
{
    return has_mixed_unit(e) && e->shards > 1 &&
           e->options.layout == FSDP_LAYOUT_FLAT;
}

static bool has_frozen_unit(const struct expect *e)
{
    return compare_case_trains(e) && e->c->ranks > 1 && has_unit(e, false);
}

/*
 * frozen.unchanged: neither a step, nor weight decay, nor moments from before,
 * nor a load changes them.
 */
static bool unchanged_applies(const struct expect *e)
{
    return compare_case_staged(e) && compare_case_freezes(e);
}

static bool as_in_the_beginning(const struct expect *e, const struct record *r,
                                const struct compare_part *part, uint32_t stage,
                                struct finding *f)
{
    struct compare_part first = *part;

    first.step = 0;
    return expect_is_trainable(e, part->parameter) ||
           compare_equal(e, part, stage, compare_values(r, stage, part),
                         compare_values(r, RECORD_INITIAL, &first), f);
}

static bool unchanged_in_step(const struct expect *e, const struct record *r,
                              const struct compare_part *part,
                              struct finding *f)
{
    return as_in_the_beginning(e, r, part, RECORD_BEFORE, f) &&
           as_in_the_beginning(e, r, part, RECORD_AFTER, f);
}

static bool unchanged_in_the_end(const struct expect *e, const struct record *r,
                                 const struct compare_part *part,
                                 struct finding *f)
{
    return as_in_the_beginning(e, r, part, RECORD_FINAL, f);
}

static bool unchanged_holds(const struct expect *e, const struct record *r,
                            struct finding *f)
{
    return compare_parts(e, r, 0, compare_recorded_steps(e), unchanged_in_step,
                         f) &&
           compare_parts(e, r, e->c->steps, e->c->steps + 1,
                         unchanged_in_the_end, f);
}

static bool is_frozen_at_last(const struct expect *e,
                              const struct record_tensor *t)
{
    return t->stage == RECORD_FINAL && !expect_is_trainable(e, t->parameter);
}

static bool unchanged_spoil(const struct expect *e, struct record *r)
{
    return compare_spoil_value(compare_find_tensor(e, r, is_frozen_at_last));
}

/*
 * frozen.no-state: this is why fine-tuning freezes. In closed form: by rows,
 * states are the blocks of trainable parameters (late states have no padding);
 * flat, the trainable elements in the rank's shard, with the padding if all of
 * a unit is trainable.
 */
static bool no_state_applies(const struct expect *e)
{
    return trains_frozen(e) && e->c->optimizer != FSDP_OPTIMIZER_SGD;
}

/* Elements of one state on rank k. */
static bool states_of_rank(const struct expect *e, uint32_t k, uint64_t *out)
{
    const bool flat = e->options.layout == FSDP_LAYOUT_FLAT;
    struct expect_part *part = NULL;
    uint32_t n = 0;

    *out = 0;
    if (!flat && !e->late_states) {
        for (uint32_t p = 0; p < e->model->n_parameters; p++) {
            *out += is_own(e, p) && expect_is_trainable(e, p) ? e->block[p] : 0;
        }
        return true;
    }
    for (uint32_t u = 0; flat && u < e->units->n_units; u++) {
        *out += e->unit[u].freezes ? 0 : e->unit[u].chunk;
    }
    if (expect_parts(e, k % e->shards, &part, &n) != FSDP_OK) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t p = part[i].parameter;

        if ((!flat || e->unit[e->unit_of_parameter[p]].freezes) &&
            expect_is_trainable(e, p)) {
            *out += part[i].n;
        }
    }
    free(part);
    return true;
}

static bool no_state_of_rank(const struct expect *e,
                             const struct record_rank *rank, uint32_t k,
                             struct finding *f)
{
    const uint64_t bytes =
        sizeof(float) * (e->c->optimizer == FSDP_OPTIMIZER_ADAMW ? 2 : 1);
    uint64_t later;

    if (!states_of_rank(e, k, &later)) {
        return finding_missing(f, finding_at("memory", -1, -1, k),
                               "no memory to list what this rank owns");
    }
    for (uint32_t t = 0; t <= e->c->steps; t++) {
        const uint64_t want = t == 0 && e->late_states ? 0 : later * bytes;
        const struct finding at =
            finding_at("optimizer state", (int64_t)t - 1, -1, k);
        const struct record_rest *got = &rank->memory.after_shard;

        if (t > 0 && (!rank->memory.after_step || t > rank->n_steps)) {
            return finding_text(f, at,
                                "memory after this step is not recorded");
        }
        got = t > 0 ? &rank->memory.after_step[t - 1] : got;
        if (got->live[FSDP_OPTIM] + got->live[RECORD_HOST + FSDP_OPTIM] !=
            want) {
            return finding_bytes(
                f, at,
                got->live[FSDP_OPTIM] + got->live[RECORD_HOST + FSDP_OPTIM],
                want, "live at rest; states of what is trainable");
        }
    }
    return true;
}

/* ---- What is reduced ---- */

/* Rank 0's first reduction of a unit that has both frozen and trained
 * parameters, or of one that has not. */
static struct record_collective *
reduction_to_spoil(const struct expect *e, struct record *r, bool mixed)
{
    struct record_sequence *s = compare_sequence_to_spoil(r);

    for (uint32_t i = 0; s && i < s->n; i++) {
        const uint32_t u = s->c[i].unit;

        if (compare_reduces(&s->c[i]) && u < e->units->n_units &&
            (!mixed || e->unit[u].freezes)) {
            return &s->c[i];
        }
    }
    return NULL;
}

/*
 * frozen.reduce-size: by rows a gradient has only the blocks of trainable
 * parameters; flat, it must be as large as the unit, which is cut into equal
 * parts.
 */
static bool reduce_size_of_collective(const struct expect *e,
                                      const struct record_collective *c,
                                      uint32_t index, struct finding at,
                                      struct finding *f)
{
    uint64_t want = 0;

    (void)index;
    if (!compare_reduces(c) || c->unit >= e->units->n_units ||
        !e->unit[c->unit].freezes || !e->unit[c->unit].trains) {
        return true;
    }
    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        if (e->unit_of_parameter[p] == c->unit && is_own(e, p) &&
            expect_is_trainable(e, p)) {
            want += e->block[p];
        }
    }
    if (e->options.layout == FSDP_LAYOUT_FLAT) {
        want = e->unit[c->unit].chunk;
    }
    at.unit = c->unit;
    return c->n == want ||
           finding_count(f, at, c->n, want,
                         "elements of the reduction of a mixed unit, a shard");
}

static bool reduce_size_spoil(const struct expect *e, struct record *r)
{
    struct record_collective *c = reduction_to_spoil(e, r, true);

    if (!c) {
        return false;
    }
    c->n++;
    return true;
}

/* frozen.no-reduce: there is nothing to be reduced. */
static bool no_reduce_of_collective(const struct expect *e,
                                    const struct record_collective *c,
                                    uint32_t index, struct finding at,
                                    struct finding *f)
{
    (void)index;
    at.unit = c->unit;
    return !compare_reduces(c) || c->unit >= e->units->n_units ||
           e->unit[c->unit].trains ||
           finding_count(f, at, 1, 0,
                         "reductions of a unit of which all is frozen");
}

static bool no_reduce_spoil(const struct expect *e, struct record *r)
{
    struct record_collective *c = reduction_to_spoil(e, r, false);

    for (uint32_t u = 0; c && u < e->units->n_units; u++) {
        if (!e->unit[u].trains) {
            c->unit = u;
            return true;
        }
    }
    return false;
}

/*
 * frozen.reshards: a frozen unit has no gradient whose arrival would tell an
 * engine that its backward is over. Judged by the timeline, which shows more
 * than a peak: at a point of the backward only units whose window is open there
 * are unsharded.
 */
static bool is_of_backward(const struct record_moment *m)
{
    return m->point == FSDP_PRE_BACKWARD || m->point == FSDP_POST_BACKWARD;
}

static bool reshards_applies(const struct expect *e)
{
    const struct fsdp_sequence *s = e->model->sequence[FSDP_SEQUENCE_TRAIN];

    if (!compare_case_trains(e) || !compare_case_strict(e) || e->shards < 2 ||
        e->options.reshard_after_forward == 0 || e->options.keep_root != 0 ||
        e->units->reshard_after_forward || e->c->steps == 0 ||
        e->c->recompute != WORKLOAD_KEEPS || /* windows begin before */
        e->c->scenario == CASE_CANCEL) {     /* or are cut off */
        return false;
    }
    for (uint32_t i = 0; i < s->n; i++) {
        for (uint32_t u = 0; u < e->units->n_units; u++) {
            if (s->point[i] == FSDP_PRE_BACKWARD &&
                s->module[i] < e->model->n_modules &&
                expect_is_of(e, s->module[i], u) && e->unit[u].freezes &&
                !e->unit[u].trains) {
                return true;
            }
        }
    }
    return false;
}

/* Adds the bytes of unit u to all moments of this backward at which its window
 * is open. */
static void add_window(const struct expect *e, uint32_t u,
                       const struct record_moment *m, uint32_t n,
                       uint64_t *open)
{
    uint32_t first = n;
    uint32_t last = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (m[i].module < e->model->n_modules &&
            expect_is_of(e, m[i].module, u)) {
            first = first == n ? i : first;
            last = i;
        }
    }
    for (uint32_t i = first; i < n && i <= last; i++) {
        open[i] += e->unit[u].whole * fsdp_dtype_bytes(e->unit[u].dtype.param);
    }
}

static bool reshards_in_backward(const struct expect *e,
                                 const struct record_moment *m, uint32_t n,
                                 struct finding *f)
{
    uint64_t *open = calloc((size_t)n + 1, sizeof(*open));
    bool holds = true;

    if (!open) {
        return finding_missing(f, finding_at("memory", -1, -1, 0),
                               "no memory to look at the timeline");
    }
    for (uint32_t u = 0; u < e->units->n_units; u++) {
        add_window(e, u, m, n, open);
    }
    for (uint32_t i = 0; i < n && holds; i++) {
        holds = m[i].live[FSDP_PARAM_FULL] <= open[i] ||
                finding_bytes(f, finding_at("unsharded parameter", -1, -1, 0),
                              m[i].live[FSDP_PARAM_FULL], open[i],
                              "live at a point of the backward; of the units "
                              "that are open there");
    }
    free(open);
    return holds;
}

static bool reshards_holds(const struct expect *e, const struct record *r,
                           struct finding *f)
{
    const struct record_rank *rank = compare_rank(r, 0);
    bool seen = false;
    uint32_t end;

    for (uint32_t i = 0; rank && i < rank->memory.n_moments; i = end) {
        const struct record_moment *m = &rank->memory.moment[i];

        end = i + 1;
        if (!is_of_backward(m)) {
            continue;
        }
        while (end < rank->memory.n_moments &&
               is_of_backward(&rank->memory.moment[end])) {
            end++;
        }
        if (!reshards_in_backward(e, m, end - i, f)) {
            return false;
        }
        seen = true;
    }
    return seen || finding_text(f, finding_at("memory", -1, -1, 0),
                                "the timeline has no backward");
}

static bool reshards_spoil(const struct expect *e, struct record *r)
{
    struct record_rank *rank = compare_rank_to_spoil(r, 0);

    (void)e;
    for (uint32_t i = 0; rank && i < rank->memory.n_moments; i++) {
        if (is_of_backward(&rank->memory.moment[i])) {
            rank->memory.moment[i].live[FSDP_PARAM_FULL] = UINT64_MAX;
            return true;
        }
    }
    return false;
}

const struct requirement frozen_requirements[] = {
    {.since = "1.1", .must = 1, .claim = "frozen"},
    {.id = "frozen.unchanged",
     .text = "A frozen parameter keeps its initial bits to the end.",
     .level = LEVEL_STEP,
     .needs = "layout.initial-values",
     .applies = unchanged_applies,
     .holds = unchanged_holds,
     .spoil = unchanged_spoil},
    {.id = "frozen.no-state",
     .text = "States rest for trainable elements only, to the byte.",
     .level = LEVEL_MEMORY,
     .needs = "memory.ranges-valid",
     .applies = no_state_applies,
     .check = &check_each_rank,
     .rank = {no_state_of_rank,
              .raises = COMPARE_OF_RANK(memory.after_shard.live[FSDP_OPTIM])}},
    {.id = "frozen.reduce-size",
     .text =
         "The reductions of a unit of which a part is frozen carry what its "
         "layout says: flat, all places; per parameter, those of trainable "
         "parameters.",
     .since = "1.1",
     .must = 1,
     .level = LEVEL_COMM,
     .needs = "run.shows-every-step",
     .claim = "frozen",
     .applies = has_mixed_unit,
     .spoil = reduce_size_spoil,
     .check = &check_each_collective,
     .collective = {.holds = reduce_size_of_collective}},
    /* Anything that the model or the last pass left there would be summed and
     * divided for nothing; and the rank would send more than it declares. */
    {.id = "frozen.zeros",
     .text = "In a flat gradient the places of frozen parameters are +0 on the "
             "wire.",
     .level = LEVEL_COMM,
     .needs = "run.completes frozen.reduce-size",
     .applies = has_holes,
     .check = &check_zero,
     .zero = {offsetof(struct record_memory, dirty_frozen), FINDING_COUNT, -1,
              "wire",
              "elements in the places of frozen parameters that are not +0"}},
    {.id = "frozen.no-reduce",
     .text = "A unit without a trainable parameter is never reduced.",
     .level = LEVEL_COMM,
     .needs = "run.shows-every-step",
     .applies = has_frozen_unit,
     .spoil = no_reduce_spoil,
     .check = &check_each_collective,
     .collective = {.holds = no_reduce_of_collective}},
    {.id = "frozen.reshards",
     .text = "A frozen unit that is gathered in backward is sharded again at "
             "its window's end.",
     .level = LEVEL_MEMORY,
     .needs = "memory.ranges-valid",
     .claim = "strict-memory",
     .applies = reshards_applies,
     .holds = reshards_holds,
     .spoil = reshards_spoil},
    {0},
};
