/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control_factor_mutants.c - engines that divide a unit's gradients by another
 * factor than was set last, or apply it to other gradients than they should.
 */
#include "mutants/mutant_kit.h"

#include <string.h>

enum {
    MOST_UNITS = 16 /* of the models here */
};

static bool is_factor(uint32_t knob)
{
    return knob == FSDP_KNOB_DIVIDE_FACTOR ||
           knob == FSDP_KNOB_PREDIVIDE_FACTOR;
}

/* A factor that still waits to be set, in the order of the calls. */
struct waiting {
    uint32_t unit, knob;
    float value;
};
static _Thread_local struct {
    struct waiting of[MOST_UNITS];
    uint32_t n;
    bool no_sync, apart; /* some unit has no sync, or no all-reduce */
} late;
/* The divide factor of each unit; 0: the world. */
static _Thread_local float divide[MOST_UNITS];

static void forget(void)
{
    memset(&late, 0, sizeof(late));
    memset(divide, 0, sizeof(divide));
}

static int wait_with(uint32_t unit, uint32_t knob, float value)
{
    if (late.n < MOST_UNITS) {
        late.of[late.n++] = (struct waiting){unit, knob, value};
    }
    return FSDP_OK;
}

static int set_those(struct fsdp_sharded *s)
{
    const uint32_t n = late.n;

    late.n = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct waiting *w = &late.of[i];

        FSDP_TRY(mutant_real.engine.set(s, w->unit, w->knob, w->value));
    }
    return FSDP_OK;
}

/* ---- When ---------------------------------------------------------------- */

static int factor_ignored(struct fsdp_sharded *s, uint32_t unit, uint32_t knob,
                          float value)
{
    return is_factor(knob) ? FSDP_OK
                           : mutant_real.engine.set(s, unit, knob, value);
}

static int factor_late(struct fsdp_sharded *s, uint32_t unit, uint32_t knob,
                       float value)
{
    return is_factor(knob) ? wait_with(unit, knob, value)
                           : mutant_real.engine.set(s, unit, knob, value);
}

static int at_late(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    FSDP_TRY(mutant_real.engine.at(s, point, index));
    return point == FSDP_END || point == FSDP_CANCEL ? set_those(s) : FSDP_OK;
}

static _Thread_local float times; /* reduced gradients are multiplied by this */
static _Thread_local uint32_t of_unit;

static float rescaled(float x)
{
    return x * times;
}

static void rescale(const struct fsdp_piece *piece)
{
    void *grad;

    if (piece->grad &&
        (of_unit == FSDP_NO_UNIT || of_unit == mutant_unit(piece->parameter))) {
        memcpy(&grad, &piece->grad, sizeof(grad));
        (void)mutant_each(NULL, grad, piece->n, rescaled);
    }
}

/* A unit's factor can be set only once; until then all units have the same. */
static int factor_at_once(struct fsdp_sharded *s, uint32_t unit, uint32_t knob,
                          float value)
{
    const uint32_t u = unit == FSDP_NO_UNIT ? 0 : unit;

    FSDP_TRY(mutant_real.engine.set(s, unit, knob, value));
    if (knob != FSDP_KNOB_DIVIDE_FACTOR || u >= MOST_UNITS) {
        return FSDP_OK;
    }
    times = (divide[u] != 0.0f ? divide[u] : (float)mutant_real.world) / value;
    of_unit = unit;
    for (uint32_t i = 0; i < MOST_UNITS; i++) {
        divide[i] = unit == FSDP_NO_UNIT || i == unit ? value : divide[i];
    }
    return mutant_each_piece(s, rescale);
}

/* Pending gradients keep the factor that held when they were summed. */
static int factor_waits(struct fsdp_sharded *s, uint32_t unit, uint32_t knob,
                        float value)
{
    return is_factor(knob) && late.no_sync
               ? wait_with(unit, knob, value)
               : mutant_real.engine.set(s, unit, knob, value);
}

static int noting_sync(struct fsdp_sharded *s, uint32_t on)
{
    FSDP_TRY(mutant_real.engine.set_gradient_sync(s, on));
    late.no_sync = on == 0;
    return FSDP_OK;
}

static int at_reduced(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    FSDP_TRY(mutant_real.engine.at(s, point, index));
    return point == FSDP_END && !late.no_sync ? set_those(s) : FSDP_OK;
}

/* Sums that replicas have not yet reduced keep the factor that held before. */
static int factor_apart(struct fsdp_sharded *s, uint32_t unit, uint32_t knob,
                        float value)
{
    if (is_factor(knob) && late.apart) {
        return wait_with(unit, knob, value);
    }
    if (knob == FSDP_KNOB_ALL_REDUCE) {
        late.apart = value == 0.0f;
    }
    return mutant_real.engine.set(s, unit, knob, value);
}

static int at_met(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    FSDP_TRY(mutant_real.engine.at(s, point, index));
    return point == FSDP_END && !late.apart ? set_those(s) : FSDP_OK;
}

static int to_world(struct fsdp_sharded *s)
{
    FSDP_TRY(mutant_real.engine.set(s, FSDP_NO_UNIT, FSDP_KNOB_PREDIVIDE_FACTOR,
                                    1.0f));
    return mutant_real.engine.set(s, FSDP_NO_UNIT, FSDP_KNOB_DIVIDE_FACTOR,
                                  (float)mutant_real.world);
}

static int cancel_resets(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    FSDP_TRY(mutant_real.engine.at(s, point, index));
    return point == FSDP_CANCEL ? to_world(s) : FSDP_OK;
}

static int load_resets(struct fsdp_sharded *s, const char *directory)
{
    FSDP_TRY(mutant_real.engine.load(s, directory));
    return to_world(s);
}

/* ---- Of which unit ------------------------------------------------------- */

static int factor_of_all(struct fsdp_sharded *s, uint32_t unit, uint32_t knob,
                         float value)
{
    const bool fits = is_factor(knob) && unit < mutant_real.units->n_units;

    return mutant_real.engine.set(s, fits ? FSDP_NO_UNIT : unit, knob, value);
}

/* A predivide factor comes on top of the divide factor. */
static int predivide_on_top(struct fsdp_sharded *s, uint32_t unit,
                            uint32_t knob, float value)
{
    FSDP_TRY(mutant_real.engine.set(s, unit, knob, value));
    return knob == FSDP_KNOB_PREDIVIDE_FACTOR
               ? mutant_real.engine.set(s, unit, FSDP_KNOB_DIVIDE_FACTOR,
                                        (float)mutant_real.world * value)
               : FSDP_OK;
}

/* ---- Refusals ------------------------------------------------------------ */

static int factor_anything(struct fsdp_sharded *s, uint32_t unit, uint32_t knob,
                           float value)
{
    const int status = mutant_real.engine.set(s, unit, knob, value);

    return is_factor(knob) && !mutant_now.in_pass ? FSDP_OK : status;
}

static int factor_in_pass(struct fsdp_sharded *s, uint32_t unit, uint32_t knob,
                          float value)
{
    const int status = mutant_real.engine.set(s, unit, knob, value);

    return is_factor(knob) && mutant_now.in_pass ? FSDP_OK : status;
}

static int factor_in_turn(struct fsdp_sharded *s, uint32_t unit, uint32_t knob,
                          float value)
{
    const uint32_t n = mutant_real.units->n_units;

    for (uint32_t u = 0; is_factor(knob) && unit == FSDP_NO_UNIT && u < n;
         u++) {
        FSDP_TRY(mutant_real.engine.set(s, u, knob, value));
    }
    return mutant_real.engine.set(s, unit, knob, value);
}

static int factor_of_most(struct fsdp_sharded *s, uint32_t unit, uint32_t knob,
                          float value)
{
    const int status = mutant_real.engine.set(s, unit, knob, value);

    return is_factor(knob) && unit == FSDP_NO_UNIT ? FSDP_OK : status;
}

/* A setting for all units reaches only 64: it is kept in the bits of a word. */
static int set_by_word(struct fsdp_sharded *s, uint32_t unit, uint32_t knob,
                       float value)
{
    enum {
        BITS = 64
    };

    if (unit != FSDP_NO_UNIT) {
        return mutant_real.engine.set(s, unit, knob, value);
    }
    for (uint32_t u = 0; u < mutant_real.units->n_units && u < BITS; u++) {
        FSDP_TRY(mutant_real.engine.set(s, u, knob, value));
    }
    return FSDP_OK;
}

const struct mutant control_factor_mutants[] = {
    {.name = "factor-apart",
     .text = "a partial sum is scaled as it was said when it was kept",
     .evidence = "a factor that is noted beside partial_reduce_output",
     .kills = "control.partial-sum",
     .shows = {.script = "factors-apart"},
     .calls = {.set = factor_apart, .at = at_met},
     .forget = forget},
    {.name = "factor-at-once",
     .text = "what was reduced before is scaled by the factor that is set",
     .evidence = "a gradient that is divided when it is used",
     .kills = "control.factor",
     .shows = {.script = "factors"},
     .calls.set = factor_at_once,
     .forget = forget},
    {.name = "factor-ignored",
     .text = "factors that are set change nothing",
     .evidence = "pytorch/pytorch#167178: a factor that is read at wrap time",
     .kills = "control.factor",
     .shows = {.script = "factors"},
     .calls.set = factor_ignored},
    {.name = "factor-in-pass",
     .text = "a factor that is set in a pass is not refused",
     .evidence = "set_gradient_divide_factor in a hook",
     .kills = "error.control-factors",
     .shows = {.script = "factors-refused"},
     .calls.set = factor_in_pass},
    {.name = "factor-in-turn",
     .text = "a factor that a unit refuses is set of the units before it",
     .evidence = "set_gradient_divide_factor in a loop over modules",
     .kills = "control.factor",
     .shows = {.script = "factors-of-all"},
     .calls.set = factor_in_turn},
    {.name = "factor-late",
     .text = "factors that are set hold from the pass behind the next one on",
     .evidence = "a state that is copied when a pass ends",
     .kills = "control.factor",
     .shows = {.script = "factors"},
     .calls = {.set = factor_late, .at = at_late},
     .forget = forget},
    {.name = "factor-lost-by-cancel",
     .text = "a cancelled pass takes the factors that were set away",
     .evidence = "an exception that resets the state of an iteration",
     .kills = "control.factor",
     .shows = {.script = "factors"},
     .calls.at = cancel_resets},
    {.name = "factor-lost-by-load",
     .text = "a load takes the factors that were set away",
     .evidence = "an engine that is set up anew by a load",
     .kills = "control.factor",
     .shows = {.script = "factors"},
     .calls.load = load_resets},
    {.name = "factor-of-all",
     .text = "a factor that is set of one unit is set of all",
     .evidence = "set_gradient_divide_factor of the root, which recurses",
     .kills = "control.factor",
     .shows = {.script = "factors"},
     .calls.set = factor_of_all},
    {.name = "factor-of-most",
     .text = "a factor of every unit that one refuses is answered OK",
     .evidence = "a loop over modules that leaves out what does not fit",
     .kills = "error.control-factor-of-all",
     .shows = {.script = "factors-of-all"},
     .calls.set = factor_of_most},
    {.name = "factor-by-word",
     .text = "what is set of all units is set of the first 64",
     .evidence = "units that are bits of an integer",
     .kills = "control.factor control.reshard-forward",
     .shows = {.script = "many-units"},
     .calls.set = set_by_word},
    {.name = "factor-unchecked",
     .text = "a factor that is none is taken",
     .evidence = "a setter without a check",
     .kills = "error.control-factors",
     .shows = {.script = "factors-refused"},
     .calls.set = factor_anything},
    {.name = "factor-waits",
     .text = "what is pending is scaled as it was said when it was summed",
     .evidence = "a hook that divides each microbatch",
     .kills = "control.factor",
     .shows = {.script = "factors"},
     .calls = {.set = factor_waits,
               .set_gradient_sync = noting_sync,
               .at = at_reduced},
     .forget = forget},
    {.name = "predivide-on-top",
     .text = "a predivide factor that is set is no part of the divide factor",
     .evidence = "facebookresearch/fairscale: pre and post are set apart",
     .kills = "control.factor",
     .shows = {.script = "factors"},
     .calls.set = predivide_on_top},
    {0},
};
