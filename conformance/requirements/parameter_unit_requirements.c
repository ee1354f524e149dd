/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parameter_unit_requirements.c - modules with some parameters in another unit,
 * or in none. The former changes what is gathered and when, the latter which
 * parameters the engine has at all; neither changes a number.
 */
#include "requirements/families.h"

#include "judge/compare/compare_checks.h"

/* Makes the same case with whole modules in units. */
static void wrap_by_modules(struct run_case *c)
{
    c->wrap = CASE_WRAP_BLOCK;
}

static bool has_twin(const struct expect *e)
{
    return compare_case_trains(e) && compare_twin(e, wrap_by_modules);
}

static bool is_apart_with_twin(const struct expect *e)
{
    return e->c->wrap == CASE_WRAP_APART && has_twin(e);
}

static bool ignores_with_twin(const struct expect *e)
{
    return e->c->wrap == CASE_WRAP_IGNORE && has_twin(e);
}

/*
 * parameter-units.gathers: the count follows from the sequence and the
 * parameters alone. An engine that looks only at modules does not gather such a
 * unit at all, or once for each module.
 */

/* How many phases of a direction use a module that is in unit u, or has a
 * parameter in it. */
static uint64_t phases(const struct expect *e, uint32_t index, uint32_t u,
                       bool forward)
{
    const struct fsdp_sequence *s = e->model->sequence[index];
    uint64_t n = 0;
    bool in = false;

    for (uint32_t i = 0; i < s->n; i++) {
        if (i > 0 && compare_is_forward(s->point[i]) !=
                         compare_is_forward(s->point[i - 1])) {
            in = false;
        }
        if (!in && compare_is_forward(s->point[i]) == forward &&
            expect_is_of(e, s->module[i], u)) {
            in = true;
            n++;
        }
    }
    return n;
}

static bool gathers_applies(const struct expect *e)
{
    return e->units->unit_of_parameter && compare_case_trains(e) &&
           !case_is_script(e->c) && e->c->scenario != CASE_CANCEL &&
           e->shards > 1 && e->options.reshard_after_forward != 0 &&
           e->options.keep_root == 0 && !e->units->reshard_after_forward;
}

static bool gathers_in_step(const struct expect *e,
                            const struct record_sequence *sequence,
                            struct finding at, struct finding *f)
{
    const bool evaluates = e->c->scenario == CASE_EVAL;
    uint64_t synced = 0;

    for (uint32_t b = 0; b < e->c->microbatches; b++) {
        synced += e->c->sync[b] != 0;
    }
    for (uint32_t u = 0; u < e->units->n_units; u++) {
        const uint64_t back = phases(e, FSDP_SEQUENCE_TRAIN, u, false);
        uint64_t want = phases(e, FSDP_SEQUENCE_TRAIN, u, true) + back;

        want *= e->c->microbatches;
        want += evaluates ? phases(e, FSDP_SEQUENCE_EVAL, u, true) : 0;
        at.unit = u;
        if (compare_count_of(sequence, FSDP_ALL_GATHER, u) != want) {
            return finding_count(
                f, at, compare_count_of(sequence, FSDP_ALL_GATHER, u), want,
                "all-gathers of a unit, one for each phase "
                "that uses a parameter of it");
        }
        want = e->unit[u].trains ? back * synced : 0;
        if (compare_count_of(sequence, FSDP_REDUCE_SCATTER, u) != want) {
            return finding_count(
                f, at, compare_count_of(sequence, FSDP_REDUCE_SCATTER, u), want,
                "reduce-scatters of a unit that has, or has "
                "not, a trainable parameter");
        }
    }
    return true;
}

static bool gathers_holds(const struct expect *e, const struct record *r,
                          struct finding *f)
{
    return compare_steps(e, r, gathers_in_step, f);
}

/* Moves the first collective to another unit. */
static bool gathers_spoil(const struct expect *e, struct record *r)
{
    struct record_collective *c = compare_collective_to_spoil(r);

    if (!c || e->units->n_units < 2) {
        return false;
    }
    c->unit = (c->unit + 1) % e->units->n_units;
    return true;
}

/* ---- ignored.untouched -------------------------------------------------- */

static bool ignores(const struct expect *e)
{
    for (uint32_t p = 0; p < e->model->n_parameters; p++) {
        if (expect_is_ignored(e, p)) {
            return true;
        }
    }
    return false;
}

static bool ignores_and_trains(const struct expect *e)
{
    return compare_case_trains(e) && !case_is_script(e->c) && ignores(e);
}

static bool shows_nothing(const struct expect *e,
                          const struct record_rank *rank, uint32_t k,
                          struct finding *f)
{
    for (uint32_t i = 0; rank->tensor && i < rank->n_tensors; i++) {
        const struct record_tensor *t = &rank->tensor[i];
        struct finding at =
            finding_at(record_stage_name(t->stage), t->step, -1, k);

        if (t->parameter < e->model->n_parameters &&
            expect_is_ignored(e, t->parameter)) {
            at.parameter = t->parameter;
            return finding_count(f, at, t->n, 0,
                                 "elements of a parameter that is ignored");
        }
    }
    return true;
}

static bool travels_without(const struct expect *e,
                            const struct record_collective *c, uint32_t index,
                            struct finding at, struct finding *f)
{
    (void)index;
    return compare_gather_of_shard(
        e, c, at, "elements of an all-gather, a shard without what is ignored",
        f);
}

static bool untouched_holds(const struct expect *e, const struct record *r,
                            struct finding *f)
{
    return compare_ranks(e, r, shows_nothing, f) &&
           compare_collectives(e, r, travels_without, f);
}

/* Turns the first piece into one of an ignored parameter. */
static bool untouched_spoil(const struct expect *e, struct record *r)
{
    struct record_tensor *t = compare_tensor_to_spoil(r, RECORD_INITIAL, 0);

    for (uint32_t p = 0; t && p < e->model->n_parameters; p++) {
        if (expect_is_ignored(e, p)) {
            t->parameter = p;
            return true;
        }
    }
    return false;
}

static bool misuses_ignored(const struct expect *e)
{
    return e->c->scenario == CASE_MISUSE && ignores(e);
}

const struct requirement parameter_unit_requirements[] = {
    {.since = "1.1",
     .must = 1,
     .needs = "run.shows-every-step",
     .claim = "ignored"},
    {.id = "parameter-units.same-curve",
     .text =
         "Parameters that are in units of their own give the curve of those "
         "in their modules' units, bit for bit.",
     .since = "1.1",
     .must = 1,
     .level = LEVEL_STEP,
     .needs = "num.curve",
     .claim = "parameter-units",
     .applies = is_apart_with_twin,
     .check = &check_curve_of,
     .change = wrap_by_modules},
    {.id = "parameter-units.gathers",
     .text = "A unit is gathered once for each phase that uses one of its "
             "parameters, whatever their modules are, and reduced only if one "
             "of them is trainable.",
     .level = LEVEL_COMM,
     .claim = "parameter-units",
     .applies = gathers_applies,
     .holds = gathers_holds,
     .spoil = gathers_spoil},
    {.id = "ignored.untouched",
     .text = "What is ignored has no piece, and no place in what its module's "
             "unit gathers.",
     .level = LEVEL_LAYOUT,
     .applies = ignores_and_trains,
     .holds = untouched_holds,
     .spoil = untouched_spoil},
    {.id = "ignored.same-curve",
     .text =
         "Parameters that are ignored, and stay as the model has them, give "
         "the curve of the same parameters frozen, bit for bit.",
     .since = "1.1",
     .must = 1,
     .level = LEVEL_STEP,
     .needs = "num.curve",
     .claim = "ignored",
     .applies = ignores_with_twin,
     .check = &check_curve_of,
     .change = wrap_by_modules},
    /* An engine that lends it would lend a parameter that it does not train. */
    {.id = "ignored.refused",
     .text = "The value and the gradient of what is ignored are refused as "
             "INVALID, as is its thaw, and the message names it.",
     .level = LEVEL_ERRORS,
     .needs = "run.survives run.ranks-present error.says-why",
     .applies = misuses_ignored,
     .check = &check_answers_named,
     .answers = {{"param-of-ignored", FSDP_ERR_INVALID},
                 {"grad-of-ignored", FSDP_ERR_INVALID},
                 {"freeze-of-ignored", FSDP_ERR_INVALID}}},
    {0},
};
