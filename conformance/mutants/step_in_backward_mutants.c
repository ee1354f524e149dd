/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_in_backward_mutants.c - engines that are given the step of a pass ahead,
 * and step too soon, twice, in other passes as well, or keep the gradients that
 * they stepped by; and engines that accept such a step at any time.
 */
#include "mutants/mutant_kit.h"

#include <string.h>

enum {
    MOST_SENT = 1024, /* of a unit's shard */
    MOST_GROUPS = 8
};

static _Thread_local struct {
    bool set;    /* a step is given for the next pass, or this one */
    bool given;  /* a step was given at some time in this life */
    bool behind; /* the last pass had a step */
    bool kept;   /* the same, and it keeps copies behind its backward */
    bool brings; /* gives kept weights back */
    uint64_t at; /* of those that are kept */
    struct fsdp_step last;
    float lr[MOST_GROUPS];
} now;

static void forget(void)
{
    memset(&now, 0, sizeof(now));
}

static int note_set(struct fsdp_sharded *s, const struct fsdp_step *step)
{
    FSDP_TRY(mutant_real.engine.set_step(s, step));
    now.set = now.given = true;
    now.last = *step;
    memcpy(now.lr, step->lr, sizeof(*now.lr));
    now.last.lr = now.lr;
    now.last.weight_decay = NULL;
    return FSDP_OK;
}

static int note_at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    FSDP_TRY(mutant_real.engine.at(s, point, index));
    if (point == FSDP_END || point == FSDP_CANCEL) {
        now.behind = now.set;
        now.kept = now.set && mutant_now.keeps;
        now.set = false;
    }
    return FSDP_OK;
}

/* How many passes had their steps, which is then saved. */
static _Thread_local uint64_t counted;

static int counts_passes(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    FSDP_TRY(note_at(s, point, index));
    counted += point == FSDP_END && now.behind;
    return FSDP_OK;
}

static int saves_count(struct fsdp_sharded *s, const struct fsdp_save *how)
{
    static const char *const name[] = {"steps"};
    static const uint64_t bytes[] = {sizeof(counted)};
    const void *data[] = {&counted};
    struct fsdp_save own = *how;

    own.what |= FSDP_SAVE_EXTRA;
    own.n_extra = 1;
    own.extra_name = name;
    own.extra_data = data;
    own.extra_bytes = bytes;
    return mutant_real.engine.save_begin(s, &own);
}

static void forget_count(void)
{
    forget();
    counted = 0;
}

/* ---- Too soon ------------------------------------------------------------ */

/* Ranks make the collective, but each steps by its own gradient. */
static int step_by_own(void *self, struct fsdp_stream *stream,
                       const struct fsdp_collective *c)
{
    float own[MOST_SENT];
    const uint64_t first = (mutant_real.rank % mutant_real.shards) * c->n;

    (void)self;
    FSDP_TRY(mutant_communicate(stream, c));
    if (c->kind != FSDP_REDUCE_SCATTER || !now.set || c->n > MOST_SENT) {
        return FSDP_OK;
    }
    FSDP_TRY(mutant_get(stream, (const float *)c->in + first, c->n, own));
    return mutant_put(stream, own, c->n, c->out);
}

/* ---- Again --------------------------------------------------------------- */

static float decayed(float x)
{
    return x * 0.875f;
}

static void decay(const struct fsdp_piece *piece)
{
    (void)mutant_each(NULL, (void *)piece->value, piece->n, decayed);
}

static int step_decays_again(struct fsdp_sharded *s, struct fsdp_step *how)
{
    FSDP_TRY(mutant_real.engine.step(s, how));
    return now.behind ? mutant_each_piece(s, decay) : FSDP_OK;
}

/* ---- In other passes ----------------------------------------------------- */

static int steps_always(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    if (point == FSDP_BEGIN && now.given && !now.set && !mutant_now.in_pass) {
        FSDP_TRY(mutant_real.engine.set_step(s, &now.last));
    }
    return note_at(s, point, index);
}

/* ---- Undone -------------------------------------------------------------- */

static _Thread_local void *kept_room;

enum {
    MOST_KEPT = 4096, /* elements of all shards of a rank */
};

static void keep_or_bring(const struct fsdp_piece *piece)
{
    float *kept = mutant_room(&kept_room, MOST_KEPT * sizeof(*kept));

    if (!kept || now.at + piece->n > MOST_KEPT) {
        return;
    }
    if (now.brings) {
        (void)mutant_put(NULL, kept + now.at, piece->n, (void *)piece->value);
    } else {
        (void)mutant_get(NULL, piece->value, piece->n, kept + now.at);
    }
    now.at += piece->n;
}

/* Gives weights the values back that they had before the pass. */
static int undo(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    const bool undoes = point == FSDP_CANCEL && now.set;

    if (point == FSDP_BEGIN && now.set && !mutant_now.in_pass) {
        now.at = 0;
        now.brings = false;
        FSDP_TRY(mutant_each_piece(s, keep_or_bring));
    }
    FSDP_TRY(note_at(s, point, index));
    now.at = 0;
    now.brings = true;
    return undoes ? mutant_each_piece(s, keep_or_bring) : FSDP_OK;
}

/* ---- By old weights ------------------------------------------------------ */

/* Whether the run is in the forward behind such a pass that keeps copies. */
static bool finds_copies(void)
{
    return now.kept && mutant_is_in_forward();
}

/* ---- Which cases show it ------------------------------------------------- */

static bool steps(const struct run_case *c)
{
    return mutant_plays_sharded(c, "backward-step") &&
           c->frozen == WORKLOAD_TRAINS_ALL;
}

static bool steps_by_adamw(const struct run_case *c)
{
    return steps(c) && c->optimizer == FSDP_OPTIMIZER_ADAMW;
}

static bool steps_ahead(const struct run_case *c)
{
    return strcmp(c->script, "backward-step") == 0 && c->reduces_in_flight > 0;
}

const struct mutant step_in_backward_mutants[] = {
    {.name = "backward-step-again",
     .text = "a step behind a pass that was given its own decays what has no "
             "gradient",
     .evidence = "decay in a loop over parameters, whatever their gradient is",
     .kills = "step-in-backward.once",
     .shows = {.in = steps},
     .calls = {.set_step = note_set, .at = note_at, .step = step_decays_again},
     .forget = forget},
    {.name = "backward-step-anytime",
     .text = "a step that is given to no pass that could use it is taken, and "
             "no error",
     .evidence = "a hook that is set without a look at the state",
     .kills = "error.step-in-backward",
     .shows = {.in = mutant_sharded, .script = "backward-step-refused"},
     .fault = {MUTANT_FORGIVES, MUTANT_CALL(set_step), FSDP_ERR_INVALID}},
    {.name = "backward-step-before-reduced",
     .text = "a unit is stepped by each rank's own gradient, before ranks meet",
     .evidence = "register_post_accumulate_grad_hook in front of the reduction",
     .kills = "step-in-backward.same-bits",
     .shows = {.in = steps},
     .calls = {.set_step = note_set, .at = note_at},
     .comm.run = step_by_own,
     .forget = forget},
    {.name = "backward-step-counts-again",
     .text = "steps in passes are counted once more, by themselves, and saved",
     .evidence = "a count of steps in a hook of each unit",
     .kills = "step-in-backward.same-files",
     .shows = {.script = "backward-step-saved"},
     .calls = {.set_step = note_set,
               .at = counts_passes,
               .save_begin = saves_count},
     .forget = forget_count},
    {.name = "backward-step-keeps-copy",
     .text = "a copy that is kept behind a backward outlives the step of its "
             "unit in that backward",
     .evidence = "set_reshard_after_backward(False), and an optimizer in "
                 "backward",
     .kills = "control.fresh-after-step",
     .shows = {.script = "backward-step-units"},
     .calls = {.set_step = note_set, .at = note_at},
     .fault = {MUTANT_LEAVES_OUT_COLLECTIVE, .of = FSDP_ALL_GATHER},
     .when = finds_copies,
     .forget = forget},
    {.name = "backward-step-keeps-gradient",
     .text = "what a unit was stepped by in a pass stays until the pass ends",
     .evidence = "an optimizer in backward that frees gradients in zero_grad",
     .kills = "step-in-backward.gradient-peak",
     .shows = {.in = steps},
     .fault = {MUTANT_HOLDS, .of = FSDP_GRAD_SHARD, .to = FSDP_END}},
    {.name = "backward-step-outlives",
     .text = "what was given for one pass is used in all that follow",
     .evidence = "a hook that nobody removes",
     .kills = "script.rest step-in-backward.same-bits thaw.loaded",
     .shows = {.in = mutant_sharded, .script = "backward-step-life"},
     .calls = {.set_step = note_set, .at = steps_always},
     .forget = forget},
    {.name = "backward-step-twice",
     .text = "in a pass that was given its step each unit takes two",
     .evidence = "a hook of a unit and one of its module",
     .kills = "step-in-backward.same-bits",
     .shows = {.in = steps_by_adamw},
     .fault = {MUTANT_REPEATS_OP, .of = FSDP_OP_ADAMW},
     .when = mutant_is_in_pass},
    {.name = "backward-step-undone",
     .text = "a pass that is cancelled takes back the weights of what it has "
             "stepped, and not the states",
     .evidence = "a copy of weights that is kept for a pass that fails",
     .kills = "step-in-backward.same-bits",
     .shows = {.script = "backward-step-units"},
     .calls = {.set_step = note_set, .at = undo},
     .forget = forget},
    {.name = "no-wait-optimizer-copy",
     .text = "the copy of a shard that rests on the host does not wait for its "
             "step",
     .evidence = "deepspeedai/DeepSpeed#1219",
     .kills = "stream.no-race",
     .shows = {.script = "backward-step-by-hand",
               .engine = "impl",
               .mixed = true,
               .offload = true},
     .forgets = "optimizer->copy"},
    {.name = "no-wait-step-compute",
     .text = "what comes behind a pass does not wait for the steps in it",
     .evidence = "deepspeedai/DeepSpeed#5216, of a step on another stream",
     .kills = "stream.no-race",
     .shows = {.in = steps_ahead, .engine = "impl"},
     .forgets = "step->compute"},
    {.name = "second-use-sees-new",
     .text = "a step is given to passes in which a unit has two backward "
             "windows, of which the second sees the first one's step",
     .evidence = "a module that is used twice, with an optimizer in backward",
     .kills = "error.step-in-backward-windows",
     .shows = {.in = mutant_bad_options},
     .fault = {MUTANT_FORGIVES, MUTANT_CALL(set_step), FSDP_ERR_INVALID}},
    {0},
};
