/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control_mutants.c - engines that apply a setting to another unit, or at
 * another time; and whose sums over shards do not reach the other replicas as
 * they should.
 */
#include "mutants/mutant_kit.h"

#include <string.h>

enum {
    MOST_UNITS = 16,     /* of the models here */
    MOST_ELEMENTS = 4096 /* of a shard of one of them */
};

/* ---- How knobs stand ----------------------------------------------------- */

static _Thread_local struct {
    bool no_sync[MOST_UNITS], next_no_sync[MOST_UNITS];
    bool apart[MOST_UNITS], next_apart[MOST_UNITS]; /* all-reduce is off */
    bool partial[MOST_UNITS];
} now;
/* The last call of `set`, which waits for the pass to end. */
static _Thread_local struct {
    bool is_there;
    uint32_t unit, knob;
    float value;
} late;
static void forget(void)
{
    memset(&now, 0, sizeof(now));
    memset(&late, 0, sizeof(late));
}

static void note(uint32_t unit, uint32_t knob, float value)
{
    for (uint32_t u = 0; u < MOST_UNITS; u++) {
        if (unit != u && unit != FSDP_NO_UNIT) {
            continue;
        }
        if (knob == FSDP_KNOB_GRADIENT_SYNC) {
            now.next_no_sync[u] = value == 0.0f;
        } else if (knob == FSDP_KNOB_ALL_REDUCE) {
            now.next_apart[u] = value == 0.0f;
        }
    }
}

static int noting_set(struct fsdp_sharded *s, uint32_t unit, uint32_t knob,
                      float value)
{
    FSDP_TRY(mutant_real.engine.set(s, unit, knob, value));
    note(unit, knob, value);
    return FSDP_OK;
}

static int noting_at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    if (point == FSDP_BEGIN) {
        memcpy(now.no_sync, now.next_no_sync, sizeof(now.no_sync));
        memcpy(now.apart, now.next_apart, sizeof(now.apart));
    }
    return mutant_real.engine.at(s, point, index);
}

/* ---- Which unit, and when ------------------------------------------------ */

/* A setting of one unit is applied to all. */
static int set_all(struct fsdp_sharded *s, uint32_t unit, uint32_t knob,
                   float value)
{
    const bool fits = unit < mutant_real.units->n_units;

    return mutant_real.engine.set(s, fits ? FSDP_NO_UNIT : unit, knob, value);
}

static int set_late(struct fsdp_sharded *s, uint32_t unit, uint32_t knob,
                    float value)
{
    (void)s;
    late.is_there = true;
    late.unit = unit;
    late.knob = knob;
    late.value = value;
    return FSDP_OK;
}

static int at_late(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    FSDP_TRY(mutant_real.engine.at(s, point, index));
    if (late.is_there && (point == FSDP_END || point == FSDP_CANCEL)) {
        late.is_there = false;
        return mutant_real.engine.set(s, late.unit, late.knob, late.value);
    }
    return FSDP_OK;
}

static int cancel_sets(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    FSDP_TRY(mutant_real.engine.at(s, point, index));
    return point == FSDP_CANCEL
               ? mutant_real.engine.set(s, FSDP_NO_UNIT,
                                        FSDP_KNOB_GRADIENT_SYNC, 1.0f)
               : FSDP_OK;
}

/* A unit's own setting outlasts later settings of all units. */
static int sync_of_others(struct fsdp_sharded *s, uint32_t on)
{
    FSDP_TRY(mutant_real.engine.set_gradient_sync(s, on));
    return mutant_now.in_pass
               ? FSDP_OK
               : mutant_real.engine.set(s, 1, FSDP_KNOB_GRADIENT_SYNC,
                                        now.next_no_sync[1] ? 0.0f : 1.0f);
}

/* ---- Partial sums -------------------------------------------------------- */

static int all_reduce_always(struct fsdp_sharded *s, uint32_t unit,
                             uint32_t knob, float value)
{
    return mutant_real.engine.set(s, unit, knob,
                                  knob == FSDP_KNOB_ALL_REDUCE ? 1.0f : value);
}

static float nothing(float x)
{
    (void)x;
    return 0.0f;
}

static bool is_reduction(const struct fsdp_collective *c, uint32_t kind)
{
    return c->kind == kind && c->unit < MOST_UNITS;
}

/* A sum that waits for the other replicas is sent as zeros. */
static void partial_lost(struct fsdp_collective *c)
{
    if (is_reduction(c, FSDP_REDUCE_SCATTER) && now.apart[c->unit]) {
        (void)mutant_each(NULL, mutant_input(c), c->n * mutant_real.shards,
                          nothing);
    }
}

static float averaged(float x)
{
    return x * (1.0f / (float)mutant_real.world);
}

/* Scales each sum over shards, as AVG does, in place of the sum of these. */
static int partial_scaled(void *self, struct fsdp_stream *stream,
                          const struct fsdp_collective *c)
{
    (void)self;
    FSDP_TRY(mutant_communicate(stream, c));
    return c->kind == FSDP_REDUCE_SCATTER
               ? mutant_each(stream, c->out, c->n, averaged)
               : FSDP_OK;
}

static void unscaled(struct fsdp_op *op)
{
    if (op->kind == FSDP_OP_SCALE) {
        op->f[0] = 1.0f;
    }
}

/* The sums of this replica that have waited. */
static _Thread_local void *kept_room;

static float *kept_of(uint32_t unit)
{
    float *all =
        mutant_room(&kept_room, sizeof(float) * MOST_UNITS * MOST_ELEMENTS);

    return all ? all + (size_t)unit * MOST_ELEMENTS : NULL;
}

static int keep_partial(struct fsdp_stream *stream,
                        const struct fsdp_collective *c, bool first)
{
    float *kept = kept_of(c->unit);
    float x;

    for (uint64_t i = 0; kept && i < c->n && i < MOST_ELEMENTS; i++) {
        FSDP_TRY(mutant_get(stream, (float *)c->out + i, 1, &x));
        kept[i] = first ? x : kept[i] + x;
    }
    return FSDP_OK;
}

static int add_kept(struct fsdp_stream *stream, const struct fsdp_collective *c,
                    float sign)
{
    const float *kept = kept_of(c->unit);
    float x;

    for (uint64_t i = 0; kept && i < c->n && i < MOST_ELEMENTS; i++) {
        FSDP_TRY(mutant_get(stream, (float *)c->out + i, 1, &x));
        x += sign * kept[i];
        FSDP_TRY(mutant_put(stream, &x, 1, (float *)c->out + i));
    }
    return FSDP_OK;
}

static int partial_behind(void *self, struct fsdp_stream *stream,
                          const struct fsdp_collective *c)
{
    bool *partial = c->unit < MOST_UNITS ? &now.partial[c->unit] : NULL;

    (void)self;
    if (partial && *partial && c->kind == FSDP_ALL_REDUCE) {
        FSDP_TRY(add_kept(stream, c, -1.0f));
        FSDP_TRY(mutant_communicate(stream, c));
        *partial = false;
        return add_kept(stream, c, 1.0f);
    }
    FSDP_TRY(mutant_communicate(stream, c));
    if (partial && c->kind == FSDP_REDUCE_SCATTER && now.apart[c->unit]) {
        FSDP_TRY(keep_partial(stream, c, !*partial));
        *partial = true;
    }
    return FSDP_OK;
}

static int zero_forgets(struct fsdp_sharded *s)
{
    memset(now.partial, 0, sizeof(now.partial));
    return mutant_real.engine.zero_grad(s);
}

/* ---- Refusals ------------------------------------------------------------ */

static int set_anything(struct fsdp_sharded *s, uint32_t unit, uint32_t knob,
                        float value)
{
    int status = mutant_real.engine.set(s, unit, knob, value);

    return mutant_now.in_pass || mutant_now.lives == 0 ||
                   unit == FSDP_NO_UNIT || unit < mutant_real.units->n_units
               ? status
               : FSDP_OK;
}

static int set_unnamed(struct fsdp_sharded *s, uint32_t unit, uint32_t knob,
                       float value)
{
    int status = mutant_real.engine.set(s, unit, knob, value);

    if (status != FSDP_OK) {
        mutant_say("this cannot be set");
    }
    return status;
}

/* ---- Cases that show them ------------------------------------------------ */

static _Thread_local bool all_open;

static int note_open(struct fsdp_sharded *s)
{
    all_open = true;
    return mutant_real.engine.unshard_all(s);
}

static int note_closed(struct fsdp_sharded *s)
{
    all_open = false;
    return mutant_real.engine.reshard_all(s);
}

static int sync_while_closed(struct fsdp_sharded *s, uint32_t on)
{
    return all_open ? FSDP_OK : mutant_real.engine.set_gradient_sync(s, on);
}

static bool syncs_some(const struct run_case *c)
{
    return mutant_plays_mlp(c, "sync-some") && c->ranks > 1;
}

static bool has_partials(const struct run_case *c)
{
    return mutant_plays_mlp(c, "partials") && case_shard_degree(c) > 1;
}

/* A world of six, by which not every number can be divided exactly. */
static bool has_partials_of_six(const struct run_case *c)
{
    return has_partials(c) && c->ranks == 6;
}

const struct mutant control_mutants[] = {
    {.name = "all-reduce-always",
     .text = "replicas meet in every pass that is reduced",
     .evidence = "set_requires_all_reduce of a module without replicas in mind",
     .kills = "control.all-reduce error.step-with-partials",
     .shows = {.in = has_partials},
     .calls.set = all_reduce_always},
    {.name = "clip-with-partials",
     .text = "gradients of which some are not complete are measured",
     .evidence = "a norm over the units that have gradients",
     .kills = "error.clip-with-partials",
     .shows = {.in = mutant_any_mlp, .script = "partials-dropped"},
     .fault = {MUTANT_FORGIVES, MUTANT_CALL(clip_grad_norm), FSDP_ERR_INVALID}},
    {.name = "partial-behind",
     .text = "what has waited for replicas is added behind their all-reduce",
     .evidence = "pytorch/pytorch#140229: partial_reduce_output",
     .kills = "control.partial-sum",
     .shows = {.in = has_partials},
     .calls = {.set = noting_set, .at = noting_at, .zero_grad = zero_forgets},
     .comm.run = partial_behind,
     .forget = forget},
    {.name = "partial-lost",
     .text = "of several passes replicas meet for what the last one brought",
     .evidence = "a partial output that the next reduction overwrites",
     .kills = "control.partial-sum",
     .shows = {.in = has_partials},
     .collective = partial_lost,
     .calls = {.set = noting_set, .at = noting_at},
     .forget = forget},
    {.name = "partial-scaled-each",
     .text = "each sum over shards is averaged before it is added",
     .evidence = "fully_shard's AVG in each reduce-scatter",
     .kills = "control.partial-sum",
     .shows = {.in = has_partials_of_six},
     .comm.run = partial_scaled,
     .op = unscaled},
    {.name = "set-all",
     .text = "what is set of one unit is set of all",
     .evidence = "set_requires_gradient_sync, whose default is to recurse",
     .kills = "control.unit-sync error.step-with-unit-pending",
     .shows = {.in = syncs_some},
     .calls.set = set_all},
    {.name = "set-in-pass",
     .text = "what is set in a pass is not refused",
     .evidence = "a flag that the reduction of the same pass reads",
     .kills = "error.control-in-pass",
     .shows = {.in = mutant_any_mlp, .script = "set-refused"},
     .fault = {MUTANT_FORGIVES, MUTANT_CALL(set), FSDP_ERR_INVALID},
     .when = mutant_is_in_pass},
    {.name = "set-late",
     .text = "what is set holds from the pass behind the next one on",
     .evidence = "a state that is copied when a pass ends",
     .kills = "error.step-with-unit-pending run.completes",
     .shows = {.in = syncs_some},
     .calls = {.set = set_late, .at = at_late},
     .forget = forget},
    {.name = "set-lost-by-cancel",
     .text = "a cancelled pass turns gradient sync on again",
     .evidence = "an exception that resets the state of an iteration",
     .kills = "control.unit-sync",
     .shows = {.in = mutant_any_mlp, .script = "set-lives"},
     .calls.at = cancel_sets},
    {.name = "set-unchecked",
     .text = "a unit beyond the units is no error",
     .evidence = "a loop over units that finds none",
     .kills = "error.control-arguments",
     .shows = {.in = mutant_any_mlp, .script = "set-refused"},
     .calls.set = set_anything},
    {.name = "set-unnamed",
     .text = "a refusal does not say which unit or knob is none",
     .evidence = "one message for everything",
     .kills = "error.control-arguments",
     .shows = {.in = mutant_any_mlp, .script = "set-refused"},
     .calls.set = set_unnamed},
    {.name = "step-forgets-partials",
     .text = "a step is made while replicas have not met for a unit's sum",
     .evidence = "pytorch/pytorch#140229: a step with partials does nothing",
     .kills = "error.step-with-partials",
     .shows = {.in = has_partials},
     .fault = {MUTANT_FORGIVES, MUTANT_CALL(step), FSDP_ERR_INVALID}},
    {.name = "step-forgets-unit",
     .text = "a step is made while one unit's gradients are not reduced",
     .evidence = "fully_shard steps the units that have gradients",
     .kills = "error.step-with-unit-pending",
     .shows = {.in = syncs_some},
     .fault = {MUTANT_FORGIVES, MUTANT_CALL(step), FSDP_ERR_INVALID}},
    {.name = "sync-of-others",
     .text = "what is said of all units does not hold of one that was set",
     .evidence = "an override that outlives what it overrides",
     .kills = "control.unit-sync",
     .shows = {.in = syncs_some},
     .calls = {.set = noting_set,
               .at = noting_at,
               .set_gradient_sync = sync_of_others},
     .forget = forget},
    {.name = "sync-while-open-lost",
     .text = "what is said of sync while all is unsharded is lost",
     .evidence = "no_sync that asserts an idle state",
     .kills = "script.collectives script.rest",
     .shows = {.script = "sync-open"},
     .calls = {.unshard_all = note_open,
               .reshard_all = note_closed,
               .set_gradient_sync = sync_while_closed}},
    {0},
};
