/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script_mutants.c - engines that are right as long as every step is like the
 * one before, and wrong where calls come in another order.
 */
#include "mutants/mutant_kit.h"

#include <string.h>

enum {
    PIECES = 64,
    ELEMENTS = 1024,
    LAST_REDUCED = 41 /* steps */
};

static _Thread_local bool on;       /* what set_gradient_sync was told last */
static _Thread_local bool synced;   /* of the last BEGIN */
static _Thread_local bool pending;  /* the last training pass left pending
                                     * gradients */
static _Thread_local uint32_t sums; /* training passes since zero_grad */
static _Thread_local uint32_t loads;
/* What is kept of each piece, in their order: its gradient, or its states. */
struct kept {
    float x[2][ELEMENTS];
};
static _Thread_local void *kept_room; /* struct kept[PIECES] */
static _Thread_local uint32_t n_kept;

/* The entry of the next piece; NULL if there is none. */
static struct kept *next_kept(void)
{
    struct kept *all = mutant_room(&kept_room, PIECES * sizeof(struct kept));
    const uint32_t i = n_kept++;

    return all && i < PIECES ? &all[i] : NULL;
}

static void script_forget(void)
{
    on = true;
    synced = pending = false;
    sums = loads = n_kept = 0;
}

static int note_sync(struct fsdp_sharded *s, uint32_t now)
{
    on = now != 0;
    return mutant_real.engine.set_gradient_sync(s, now);
}

/* Notes points that the engine has accepted. */
static int note_at(struct fsdp_sharded *s, uint32_t point, uint32_t index)
{
    FSDP_TRY(mutant_real.engine.at(s, point, index));
    if (point == FSDP_BEGIN) {
        synced = on;
    } else if (point == FSDP_CANCEL) {
        pending = false;
        sums = 0;
    } else if (point == FSDP_END && index == FSDP_SEQUENCE_TRAIN) {
        pending = !synced;
        sums++;
    }
    return FSDP_OK;
}

static int note_zero(struct fsdp_sharded *s)
{
    FSDP_TRY(mutant_real.engine.zero_grad(s));
    pending = false;
    sums = 0;
    return FSDP_OK;
}

/* ---- Gradients that go, or stay ----------------------------------------- */

static int eval_drops_pending(struct fsdp_sharded *s, uint32_t point,
                              uint32_t index)
{
    if (point == FSDP_BEGIN && index == FSDP_SEQUENCE_EVAL && pending) {
        FSDP_TRY(note_zero(s));
    }
    return note_at(s, point, index);
}

static int zero_keeps_pending(struct fsdp_sharded *s)
{
    return pending && !mutant_now.in_pass ? FSDP_OK : note_zero(s);
}

static int step_drops_gradients(struct fsdp_sharded *s, struct fsdp_step *how)
{
    FSDP_TRY(mutant_real.engine.step(s, how));
    return mutant_real.engine.zero_grad(s);
}

/* Keeps n floats of a piece, which may be NULL. */
static void keep(const void *from, uint64_t n, float *to)
{
    memset(to, 0, ELEMENTS * sizeof(*to));
    if (from && n <= ELEMENTS) {
        (void)mutant_get(NULL, from, n, to);
    }
}

static void keep_gradient(const struct fsdp_piece *piece)
{
    struct kept *to = next_kept();

    if (to) {
        keep(piece->grad, piece->n, to->x[0]);
    }
}

static void add_gradient(const struct fsdp_piece *piece)
{
    const struct kept *from = next_kept();
    float x[ELEMENTS];

    if (!from || !piece->grad || piece->n > ELEMENTS) {
        return;
    }
    keep(piece->grad, piece->n, x);
    for (uint64_t i = 0; i < piece->n; i++) {
        x[i] += from->x[0][i];
    }
    (void)mutant_put(NULL, x, piece->n, (float *)piece->grad);
}

/* Gradients from before a load are added to the next reduced ones. */
static int load_keeps_gradients(struct fsdp_sharded *s, const char *directory)
{
    n_kept = 0;
    if (sums > 0 && !pending && !mutant_now.in_pass) {
        FSDP_TRY(mutant_each_piece(s, keep_gradient));
    }
    return mutant_real.engine.load(s, directory);
}

static int load_keeps_gradients_at(struct fsdp_sharded *s, uint32_t point,
                                   uint32_t index)
{
    FSDP_TRY(note_at(s, point, index));
    if (point == FSDP_END && n_kept > 0 && synced) {
        n_kept = 0;
        FSDP_TRY(mutant_each_piece(s, add_gradient));
        n_kept = 0;
    }
    return FSDP_OK;
}

/* ---- Which pass it is --------------------------------------------------- */

static int sync_in_pass_ignored(struct fsdp_sharded *s, uint32_t now)
{
    return mutant_now.in_pass ? FSDP_OK : note_sync(s, now);
}

static int fourth_overwrites(void *self, struct fsdp_stream *stream,
                             const struct fsdp_op *op)
{
    const struct fsdp_device *d = mutant_real.device;

    (void)self;
    if (op->kind != FSDP_OP_ADD || sums != 3) {
        return mutant_run(stream, op);
    }
    return d->copy(d->self, stream, op->out[0].p, op->in[1].p,
                   op->out[0].bytes);
}

static bool is_cancelled_early(void)
{
    return mutant_now.point == FSDP_CANCEL && !mutant_now.backward;
}

static bool plays_cancel_early(const struct run_case *c)
{
    return mutant_plays(c, "cancel-early") && c->strategy == CASE_FULL_SHARD;
}

static bool is_fifth_pass(void)
{
    return mutant_now.point == FSDP_BEGIN && sums == 4;
}

static bool is_past_last_reduced(void)
{
    return mutant_now.steps >= LAST_REDUCED;
}

/* ---- What is remembered for too long ------------------------------------ */

static void keep_states(const struct fsdp_piece *piece)
{
    struct kept *to = next_kept();

    for (uint32_t i = 0; i < 2 && to; i++) {
        keep(piece->state[i], piece->n, to->x[i]);
    }
}

static void put_states(const struct fsdp_piece *piece)
{
    const struct kept *from = next_kept();

    for (uint32_t i = 0;
         i < 2 && from && piece->n <= ELEMENTS && piece->state[i]; i++) {
        (void)mutant_put(NULL, from->x[i], piece->n, (float *)piece->state[i]);
    }
}

static int first_load_kept(struct fsdp_sharded *s, const char *directory)
{
    FSDP_TRY(mutant_real.engine.load(s, directory));
    n_kept = 0;
    return mutant_each_piece(s, loads++ == 0 ? keep_states : put_states);
}

const struct mutant script_mutants[] = {
    /* Half of an accumulation is lost to a look at the validation set. */
    {.name = "eval-drops-pending",
     .text = "an evaluation drops gradients that are not reduced yet",
     .evidence =
         "an evaluation between two microbatches that zeroes what it finds",
     .kills = "script.rest script.values",
     .shows = {.script = "eval-pending"},
     .calls = {.at = eval_drops_pending,
               .set_gradient_sync = note_sync,
               .zero_grad = note_zero},
     .forget = script_forget},
    /* Gradients that are not reduced yet are not zeroed. */
    {.name = "zero-keeps-pending",
     .text = "zero_grad keeps gradients that are not reduced yet",
     .evidence = "an accumulator that zero_grad does not know of",
     .kills = "script.rest script.values",
     .shows = {.script = "zero-pending"},
     .calls = {.at = note_at,
               .set_gradient_sync = note_sync,
               .zero_grad = zero_keeps_pending},
     .forget = script_forget},
    /* Gradients count as used up by a step. */
    {.name = "step-drops-gradients",
     .text = "step drops the gradients that it has used",
     .evidence = "a fused step that frees what it reads",
     .kills = "script.rest script.values",
     .shows = {.script = "two-steps"},
     .calls = {.step = step_drops_gradients},
     .forget = script_forget},
    /* A run that goes back in time brings gradients along. */
    {.name = "load-keeps-gradients",
     .text = "gradients from before a load are added to those after it",
     .evidence = "a load that knows weights and states alone",
     .kills = "script.values",
     .shows = {.script = "load-drops"},
     .calls = {.at = load_keeps_gradients_at,
               .set_gradient_sync = note_sync,
               .zero_grad = note_zero,
               .load = load_keeps_gradients},
     .forget = script_forget},
    /* The switch is read at the end of the pass, or not at all. */
    {.name = "sync-in-pass-ignored",
     .text = "set_gradient_sync in a pass has no effect on the next one",
     .evidence = "a context manager that is left before the backward",
     .kills = "script.collectives script.rest",
     .shows = {.script = "sync-inside"},
     .calls = {.at = note_at, .set_gradient_sync = sync_in_pass_ignored},
     .forget = script_forget},
    /* A ring of three buffers begins again. */
    {.name = "fourth-overwrites",
     .text = "the fourth microbatch overwrites the sum of the first three",
     .evidence = "a ring of buffers that is too short",
     .kills = "script.values",
     .shows = {.script = "five-kept"},
     .calls = {.at = note_at,
               .set_gradient_sync = note_sync,
               .zero_grad = note_zero},
     .device = {.run = fourth_overwrites},
     .forget = script_forget},
    /* A buffer for each microbatch that was ever seen. */
    {.name = "fifth-needs-more",
     .text = "in the fifth pass since zero_grad as much as all shards is live "
             "beside what is needed",
     .evidence = "a pool that doubles when it is full",
     .kills = "script.peak",
     .shows = {.script = "five-kept"},
     .fault = {MUTANT_HAS_BALLAST, FSDP_STAGING},
     .when = is_fifth_pass,
     .calls = {.set_gradient_sync = note_sync, .zero_grad = note_zero},
     .forget = script_forget},
    /* A cancel knows the backward's windows alone. */
    {.name = "cancel-leaves-open",
     .text = "a pass that is cancelled in its forward leaves units unsharded",
     .evidence = "an exception in a forward, after which hooks are not run",
     .kills = "script.rest",
     .shows = {.in = plays_cancel_early},
     .fault = {MUTANT_HOLDS, FSDP_PARAM_FULL, FSDP_BEGIN},
     .when = is_cancelled_early},
    /* A counter in a byte, a ring, a cache: such things go well for a while. */
    {.name = "reductions-stop",
     .text = "from step 42 on gradients are not reduced any more",
     .evidence = "a handle for each step, of which there are 41",
     .kills = "script.collectives",
     .shows = {.script = "sixty-steps"},
     .fault = {MUTANT_LEAVES_OUT_COLLECTIVE, FSDP_REDUCE_SCATTER},
     .when = is_past_last_reduced},
    /* A second load leaves states that are already there. */
    {.name = "first-load-kept",
     .text = "a second load leaves the states of the first one",
     .evidence = "states that are made only where there are none",
     .kills = "script.values",
     .shows = {.script = "worn-out"},
     .calls = {.load = first_load_kept},
     .forget = script_forget},
    {0},
};
