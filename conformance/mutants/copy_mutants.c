/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy_mutants.c - engines that keep a unit's unsharded copy for too long or
 * not long enough, or are wrong when it is unsharded or resharded by hand.
 */
#include "mutants/mutant_kit.h"

#include <string.h>

enum {
    MOST_UNITS = 16,     /* of the models here */
    MOST_ELEMENTS = 4096 /* of one of them */
};

static _Thread_local struct {
    bool keeps[MOST_UNITS]; /* reshard-after-backward is off */
    bool has_copy[MOST_UNITS], stale[MOST_UNITS];
    bool forgotten[MOST_UNITS]; /* it was unsharded by hand */
} now;

static void forget(void)
{
    memset(&now, 0, sizeof(now));
}

/* Ignores the knob `of`. */
static int knob_ignored(struct fsdp_sharded *s, uint32_t unit, uint32_t knob,
                        float value)
{
    return knob == mutant_of() ? FSDP_OK
                               : mutant_real.engine.set(s, unit, knob, value);
}

static int set_at_once(struct fsdp_sharded *s, uint32_t unit, uint32_t knob,
                       float value)
{
    FSDP_TRY(mutant_real.engine.set(s, unit, knob, value));
    for (uint32_t u = 0; knob == FSDP_KNOB_RESHARD_AFTER_BACKWARD &&
                         value != 0.0f && u < mutant_real.units->n_units;
         u++) {
        if (unit == u || unit == FSDP_NO_UNIT) {
            FSDP_TRY(mutant_real.engine.reshard(s, u));
        }
    }
    return FSDP_OK;
}

/* Copies from the step before. The mutant leaves out the all-gather that would
 * bring a new one, and uses the old copy. */
static _Thread_local void *copy_room;

static float *copy_of(uint32_t unit)
{
    float *all =
        mutant_room(&copy_room, sizeof(float) * MOST_UNITS * MOST_ELEMENTS);

    return all ? all + (size_t)unit * MOST_ELEMENTS : NULL;
}

static int copy_stale(void *self, struct fsdp_stream *stream,
                      const struct fsdp_collective *c)
{
    const uint64_t n = c->n * mutant_real.shards;
    float *copy =
        c->kind == FSDP_ALL_GATHER && c->unit < MOST_UNITS && n <= MOST_ELEMENTS
            ? copy_of(c->unit)
            : NULL;

    (void)self;
    if (!copy) {
        return mutant_communicate(stream, c);
    }
    if (now.stale[c->unit]) {
        now.stale[c->unit] = false;
        return mutant_put(stream, copy, n, c->out);
    }
    FSDP_TRY(mutant_communicate(stream, c));
    now.has_copy[c->unit] = now.keeps[c->unit];
    return mutant_get(stream, c->out, n, copy);
}

static int set_keeps(struct fsdp_sharded *s, uint32_t unit, uint32_t knob,
                     float value)
{
    FSDP_TRY(mutant_real.engine.set(s, unit, knob, value));
    for (uint32_t u = 0; u < MOST_UNITS; u++) {
        if (knob == FSDP_KNOB_RESHARD_AFTER_BACKWARD &&
            (unit == u || unit == FSDP_NO_UNIT)) {
            now.keeps[u] = value == 0.0f;
        }
    }
    return FSDP_OK;
}

static int step_keeps(struct fsdp_sharded *s, struct fsdp_step *how)
{
    FSDP_TRY(mutant_real.engine.step(s, how));
    memcpy(now.stale, now.has_copy, sizeof(now.stale));
    memset(now.has_copy, 0, sizeof(now.has_copy));
    return FSDP_OK;
}

/* Even a step that is refused ends copies: arguments are checked too late. */
static int step_ends_copies(struct fsdp_sharded *s, struct fsdp_step *how)
{
    const int status = mutant_real.engine.step(s, how);

    for (uint32_t u = 0; status == FSDP_ERR_INVALID && !mutant_now.in_pass &&
                         u < mutant_real.units->n_units;
         u++) {
        (void)mutant_real.engine.reshard(s, u);
    }
    return status;
}

/* A unit that was unsharded by hand is gathered once more for its window. */
static int unshard_forgotten(struct fsdp_sharded *s, uint32_t unit)
{
    FSDP_TRY(mutant_real.engine.unshard(s, unit));
    now.forgotten[unit < MOST_UNITS ? unit : 0] = true;
    return FSDP_OK;
}

static int at_forgetting(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    for (uint32_t u = 0; point == FSDP_BEGIN && u < MOST_UNITS; u++) {
        if (now.forgotten[u]) {
            now.forgotten[u] = false;
            FSDP_TRY(mutant_real.engine.reshard(s, u));
        }
    }
    return mutant_real.engine.at(s, point, index);
}

static int reshard_nothing(struct fsdp_sharded *s, uint32_t unit)
{
    return mutant_now.in_pass
               ? mutant_real.engine.reshard(s, unit)
               : (unit < mutant_real.units->n_units ? FSDP_OK
                                                    : FSDP_ERR_INVALID);
}

static int reshard_anything(struct fsdp_sharded *s, uint32_t unit)
{
    int status = mutant_real.engine.reshard(s, unit);

    return mutant_now.in_pass && unit < mutant_real.units->n_units ? FSDP_OK
                                                                   : status;
}

/* Allows a reshard in a backward whose window began with a recomputed
 * forward. */
static int reshard_recomputed(struct fsdp_sharded *s, uint32_t unit)
{
    const int status = mutant_real.engine.reshard(s, unit);

    return mutant_now.in_pass && mutant_now.point == FSDP_PRE_BACKWARD &&
                   unit < mutant_real.units->n_units
               ? FSDP_OK
               : status;
}

/* Allows a reshard at the point behind a module's forward, as no module is
 * computing there. */
static int reshard_kept(struct fsdp_sharded *s, uint32_t unit)
{
    int status = mutant_real.engine.reshard(s, unit);

    return mutant_now.in_pass && mutant_now.point == FSDP_POST_FORWARD &&
                   unit < mutant_real.units->n_units
               ? FSDP_OK
               : status;
}

static int unshard_anything(struct fsdp_sharded *s, uint32_t unit)
{
    return unit < mutant_real.units->n_units
               ? mutant_real.engine.unshard(s, unit)
               : FSDP_OK;
}

/* Changes the first element, which is in the shard of a single rank. */
static int unshard_negative(struct fsdp_sharded *s, uint32_t p,
                            struct fsdp_tensor *out)
{
    float x;

    FSDP_TRY(mutant_real.engine.param(s, p, out));
    if (!mutant_now.in_pass && out->dtype == FSDP_DTYPE_F32 && out->data &&
        fsdp_numel(mutant_real.model, p) > 0) {
        FSDP_TRY(mutant_get(NULL, out->data, 1, &x));
        x = x + 1.0f;
        FSDP_TRY(mutant_put(NULL, &x, 1, out->data));
    }
    return FSDP_OK;
}

/* ---- Cases that show them ------------------------------------------------ */

static bool keeps_copies(const struct run_case *c)
{
    return mutant_plays_mlp(c, "kept-copies") && case_shard_degree(c) > 1 &&
           c->layout == FSDP_LAYOUT_FLAT;
}

static bool goes_by_hand(const struct run_case *c)
{
    return mutant_plays_mlp(c, "by-hand") && case_shard_degree(c) > 1;
}

static bool goes_by_hand_wrongly(const struct run_case *c)
{
    return mutant_plays_mlp(c, "by-hand-refused");
}

static bool recomputes_by_hand(const struct run_case *c)
{
    return goes_by_hand_wrongly(c) && c->recompute != 0;
}

const struct mutant copy_mutants[] = {
    {.name = "copy-stale",
     .text = "a copy that is kept behind a backward is kept over the step, too",
     .evidence = "fully_shard without reshard_after_backward: the next forward "
                 "computes with old weights",
     .kills = "control.fresh-after-step",
     .shows = {.in = keeps_copies},
     .calls = {.set = set_keeps, .step = step_keeps},
     .comm.run = copy_stale,
     .forget = forget},
    {.name = "refused-step-ends-copies",
     .text = "a step that is refused has ended the copies that were kept",
     .evidence = "a step that gives up memory first, and asks whether it may "
                 "be made afterwards",
     .kills = "control.reshard-backward script.rest",
     .shows = {.script = "kept-refused-step"},
     .calls.step = step_ends_copies},
    {.name = "reshard-in-window",
     .text = "a unit is resharded in a window of its own, and no error",
     .evidence = "reshard() inside a forward",
     .kills = "error.reshard-in-window",
     .shows = {.in = mutant_any_mlp, .script = "by-hand-refused"},
     .calls.reshard = reshard_anything},
    {.name = "reshard-kept",
     .text = "a unit that stays from its forward to its backward is resharded "
             "in between, and no error",
     .evidence = "a window that ends with each forward",
     .kills = "error.reshard-in-window",
     .shows = {.in = mutant_any_mlp, .script = "by-hand-refused"},
     .calls.reshard = reshard_kept},
    {.name = "reshard-recomputed",
     .text = "a unit whose backward window a recompute has opened is resharded "
             "by hand, and no error",
     .evidence = "a window that begins with a backward's own hook",
     .kills = "error.reshard-in-window",
     .shows = {.in = recomputes_by_hand},
     .calls.reshard = reshard_recomputed},
    {.name = "reshard-nothing",
     .text = "what is resharded by hand at rest stays live",
     .evidence = "a reshard that waits for the next window",
     .kills = "control.reshard",
     .shows = {.in = goes_by_hand},
     .calls.reshard = reshard_nothing},
    {.name = "set-at-once",
     .text = "a copy ends when its knob is turned, not with the next window",
     .evidence = "a setter that reshards",
     .kills = "control.next-begin script.rest",
     .shows = {.in = keeps_copies},
     .calls.set = set_at_once},
    {.name = "set-backward-ignored",
     .text = "each unit is resharded behind its backward, whatever is said",
     .evidence = "a knob of another engine",
     .kills = "control.reshard-backward script.rest",
     .shows = {.in = keeps_copies},
     .fault = {.of = FSDP_KNOB_RESHARD_AFTER_BACKWARD},
     .calls.set = knob_ignored},
    {.name = "set-forward-ignored",
     .text = "units are resharded behind their forward as shard was told",
     .evidence = "a plan that is made once",
     .kills = "control.reshard-forward",
     .shows = {.in = mutant_any_mlp, .script = "forward-knob"},
     .fault = {.of = FSDP_KNOB_RESHARD_AFTER_FORWARD},
     .calls.set = knob_ignored},
    {.name = "unshard-forgotten",
     .text = "what was unsharded by hand is gathered by its window once more",
     .evidence = "a handle that nobody keeps",
     .kills = "control.unshard-ahead",
     .shows = {.in = goes_by_hand},
     .calls = {.unshard = unshard_forgotten, .at = at_forgetting},
     .forget = forget},
    {.name = "unshard-other-values",
     .text = "what is unsharded at rest is not what the shards hold",
     .evidence = "a buffer that is lent before its all-gather has ended",
     .kills = "control.unshard-values",
     .shows = {.in = goes_by_hand},
     .calls.param = unshard_negative},
    {.name = "unshard-unchecked",
     .text = "a unit beyond the units is unsharded, and no error",
     .evidence = "a loop over units that finds none",
     .kills = "error.by-hand-arguments",
     .shows = {.in = mutant_any_mlp, .script = "by-hand-refused"},
     .calls.unshard = unshard_anything},
    {0},
};
