/* SPDX-License-Identifier: Apache-2.0 */
/*
 * play.c - plays a script on one rank: its actions one after the other, and
 * the lives that they are part of.
 */
#include "run/play/play.h"
#include "run/witness/crossing.h"
#include "run/witness/rank_line.h"

/* ---- A life ------------------------------------------------------------ */

static int begin_life(struct driver *x)
{
    drive_place(x, RACE_AT_SHARD, 0);
    drive_tell_model(x);
    FSDP_TRY(drive_tell_trained(x));
    FSDP_TRY(drive_weigh(x, x->own_device ? RANK_LINE_BEFORE_OWN
                                          : RANK_LINE_BEFORE));
    FSDP_TRY(play_shard(x));
    x->living = true;
    x->unscaled = false;
    x->extras = 0;
    FSDP_TRY(play_note_shard(x));
    FSDP_TRY(drive_weigh(x, RANK_LINE_SHARD));
    FSDP_TRY(play_open_run(x));
    return drive_weigh(x, RANK_LINE_OPENED);
}

/* Notes the end of a life for the record; a pass that is left open comes after
 * that. */
static int end_life(struct driver *x)
{
    if (!x->living || x->ended) {
        return FSDP_OK;
    }
    x->ended = true;
    return play_note_end(x);
}

void play_end_of_run(struct driver *x)
{
    drive_place(x, RACE_AT_DESTROY, 0);
    x->workload->close(x->run);
    x->engine.destroy(x->sharded);
    x->run = NULL;
    x->sharded = NULL;
    x->living = x->ended = false;
}

static int again(struct driver *x, const struct script_action *a)
{
    FSDP_TRY(end_life(x));
    play_end_of_run(x);
    play_note_again(x);
    FSDP_TRY(play_rename(x, a->renamed));
    return begin_life(x);
}

/* ---- Actions ----------------------------------------------------------- */

/* A serial run, which plays all ranks, tells the engine as each of them. */
static int sync(struct driver *x, const struct script_action *a)
{
    const uint32_t on = a->sync == SCRIPT_SYNC_ON;

    for (uint32_t r = 1; x->serial && r < x->d->c->ranks; r++) {
        x->env.rank = r;
        FSDP_TRY(x->engine.set_gradient_sync(x->sharded, on));
    }
    if (x->serial) {
        x->env.rank = 0;
    }
    return x->engine.set_gradient_sync(x->sharded, on);
}

static int wrong(struct driver *x, const struct script_action *a)
{
    return play_wrong(x, a->call);
}

static bool is_pass(const struct script_action *a)
{
    return a->verb == SCRIPT_PASS || a->verb == SCRIPT_EVAL;
}

static int play_action(struct driver *x, const struct script_action *a)
{
    static int (*const play[SCRIPT_N_VERBS])(struct driver *,
                                             const struct script_action *) = {
        [SCRIPT_PASS] = play_pass,
        [SCRIPT_EVAL] = play_pass,
        [SCRIPT_STEP] = play_step,
        [SCRIPT_ZERO] = play_zero,
        [SCRIPT_CLIP] = play_clip,
        [SCRIPT_LOOK] = play_look,
        [SCRIPT_SUMMON] = play_summon,
        [SCRIPT_UNSHARD] = play_unshard,
        [SCRIPT_RESHARD] = play_reshard,
        [SCRIPT_SYNC] = sync,
        [SCRIPT_SAVE] = play_save,
        [SCRIPT_WAIT] = play_wait,
        [SCRIPT_LOAD] = play_load,
        [SCRIPT_AGAIN] = again,
        [SCRIPT_WRONG] = wrong,
        [SCRIPT_SET] = play_set,
        [SCRIPT_UNSHARD_UNIT] = play_unshard_unit,
        [SCRIPT_RESHARD_UNIT] = play_reshard_unit,
        [SCRIPT_FREEZE] = play_freeze,
        [SCRIPT_THAW] = play_freeze,
        [SCRIPT_BACKWARD_STEP] = play_backward_step,
        [SCRIPT_ASSIGN] = play_assign,
        [SCRIPT_SUMMON_SOME] = play_summon_some,
        [SCRIPT_SEND] = play_send};

    if (a->verb == SCRIPT_PASS && a->ending == SCRIPT_LEFT_OPEN) {
        FSDP_TRY(end_life(x));
        if (x->serial) {
            return FSDP_OK; /* an open pass leaves no numbers */
        }
    }
    if (!play[a->verb]) {
        return FSDP_ERR_UNSUPPORTED;
    }
    x->recording = play_is_looked_at(x, a);
    FSDP_TRY(play[a->verb](x, a));
    if (a->verb != SCRIPT_WRONG && a->verb != SCRIPT_LOOK) {
        x->last = a->verb;
    }
    return FSDP_OK;
}

/* The next action, or NULL. */
static const struct script_action *peek(const struct driver *x)
{
    struct script_walk ahead = x->walk;

    return script_next(&ahead);
}

/* Plays the whole passes of one kind that follow each other: all of one rank's,
 * then the next rank's. A cancelled pass drops the gradients of all ranks,
 * since each of them has come as far. */
static int play_passes_of_all(struct driver *x, const struct script_action *a)
{
    const struct script_walk first = x->walk;
    const struct script_action *next;
    struct record_rank *all = x->out;

    for (uint32_t r = 0; r < x->d->c->ranks; r++) {
        x->env.rank = r;
        x->out = &all[r];
        x->walk = first;
        FSDP_TRY(play_action(x, a));
        while (!x->by_action && a->ending == SCRIPT_WHOLE && (next = peek(x)) &&
               next->verb == a->verb && next->ending == SCRIPT_WHOLE) {
            FSDP_TRY(play_action(x, script_next(&x->walk)));
        }
    }
    x->env.rank = 0;
    x->out = all;
    return FSDP_OK;
}

/* Whether the engine has the functions to save, and the run has a place for
 * checkpoints. */
static bool can_save(const struct driver *x)
{
    return x->engine.save_begin && x->engine.save_wait && x->engine.load &&
           (x->engine.loaded_extra || x->serial) && x->d->checkpoints;
}

int play_script(struct driver *x)
{
    const struct script_action *a;

    if (!can_save(x) && play_saves(x)) {
        return FSDP_ERR_UNSUPPORTED;
    }
    x->walk = script_begin(x->d->script);
    play_begin_scale(x);
    while ((a = script_next(&x->walk))) {
        if (!script_is_offer(a) && !x->living) {
            FSDP_TRY(begin_life(x));
        }
        play_note_begin(x, a);
        FSDP_TRY(x->serial && is_pass(a) ? play_passes_of_all(x, a)
                                         : play_action(x, a));
        FSDP_TRY(play_note_action(x, a, peek(x)));
        if (x->d->crossing) {
            crossing_lists(x->d->crossing, x->out);
        }
    }
    return end_life(x);
}
