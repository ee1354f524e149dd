/* SPDX-License-Identifier: Apache-2.0 */
/*
 * play_record.c - notes the parts of a run that go into the record, at their
 * places. A record is by steps: a step begins with its first pass, and ends
 * with its zero_grad and the evaluation behind that. Steps that are made while
 * a checkpoint is being saved are not recorded: another life plays them again.
 */
#include "run/play/play.h"
#include "run/process/orphans.h"
#include "run/witness/rank_line.h"

#include <stdlib.h>
#include <string.h>

/* ---- Marks -------------------------------------------------------------- */

/* Makes a sequence of what was communicated since the last mark. */
static int mark(struct driver *x, uint32_t *out)
{
    int64_t sequence = recorder_mark(x->recorder);

    if (sequence < 0) {
        return FSDP_ERR_NOMEM;
    }
    *out = (uint32_t)sequence;
    return FSDP_OK;
}

int play_note_outside(struct driver *x)
{
    uint32_t ignored;

    (void)recorder_allocations(x->recorder);
    (void)recorder_hosted(x->recorder);
    return mark(x, &ignored);
}

int play_note_shard(struct driver *x)
{
    x->last = SCRIPT_AGAIN;
    if (x->goes_on) {
        return play_note_outside(x);
    }
    FSDP_TRY(mark(x, &x->out->shard_sequence));
    witness_forget(&x->witness);
    recorder_rest(x->recorder, &x->out->memory.after_shard);
    (void)recorder_allocations(x->recorder);
    (void)recorder_launches(x->recorder);
    (void)recorder_hosted(x->recorder);
    return FSDP_OK;
}

int play_note_end(struct driver *x)
{
    if (x->exchanges > 0 && x->d->c->scenario == CASE_TRAIN) {
        FSDP_TRY(drive_answer_number(x, "exchanges", x->exchanges));
    }
    return mark(x, &x->out->end_sequence);
}

static void give_way(struct record_rank *out)
{
    for (uint32_t i = 0; i < out->n_tensors; i++) {
        free(out->tensor[i].data);
    }
    out->n_tensors = 0;
    out->memory.n_moments = 0;
    out->n_passes = 0;
    memcpy(out->other_loss, out->loss, out->n_losses * sizeof(*out->loss));
    out->n_other_losses = out->n_losses;
    out->n_losses = 0;
    out->n_steps = 0;
}

/* A life that begins with a load goes on with the record of the life before. To
 * any other the record so far gives way, but for its losses. */
void play_note_again(struct driver *x)
{
    const uint32_t played = x->serial ? x->d->c->ranks : 1;
    struct script_walk ahead = x->walk;
    const struct script_action *next = script_next(&ahead);

    x->reborn = next && next->verb == SCRIPT_LOAD && !next->lenient;
    x->goes_on = x->by_action || x->reborn;
    for (uint32_t r = 0; !x->goes_on && r < played; r++) {
        give_way(&x->out[r]);
    }
}

/* ---- Steps -------------------------------------------------------------- */

void play_note_begin(struct driver *x, const struct script_action *a)
{
    if (x->by_action) {
        x->step = x->played++;
        return;
    }
    if (a->ending == SCRIPT_LEFT_OPEN) {
        x->watching = false;
    }
    if (a->verb != SCRIPT_PASS || a->ending == SCRIPT_LEFT_OPEN ||
        x->stepping) {
        return;
    }
    x->step = script_step(&x->walk, a);
    x->clips = 0;
    x->stepping = true;
    x->stepped = false;
    if (x->saving) {
        return;
    }
    x->watching = !x->serial && x->d->purpose == DRIVE_TO_RECORD &&
                  x->step == (x->d->c->steps > 1 ? 1u : 0u);
    if (x->watching) {
        (void)recorder_moment(x->recorder, NULL, 0, 0);
    }
}

static int end_step(struct driver *x)
{
    struct record_memory *m = &x->out->memory;

    if (x->step >= x->d->c->steps) {
        return FSDP_ERR_INTERNAL; /* the record has no room for it */
    }
    FSDP_TRY(mark(x, &x->out->step_sequence[x->step]));
    x->out->n_steps = x->step + 1;
    recorder_rest(x->recorder, &m->after_step[x->step]);
    m->allocations[x->step] = recorder_allocations(x->recorder);
    m->launches[x->step] = recorder_launches(x->recorder);
    m->hosted[x->step] = recorder_hosted(x->recorder);
    if (x->d->look_at_process) {
        x->has_helpers = x->has_helpers || orphans_are_there();
    }
    FSDP_TRY(drive_weigh(x, RANK_LINE_STEP));
    x->out->n_losses = x->by_action ? x->out->n_steps : x->out->n_losses;
    for (uint32_t r = 1; x->serial && r < x->d->c->ranks; r++) {
        x->out[r].n_steps = x->out->n_steps;
        x->out[r].n_losses =
            x->by_action ? x->out->n_steps : x->out[r].n_losses;
    }
    return FSDP_OK;
}

int play_note_action(struct driver *x, const struct script_action *a,
                     const struct script_action *next)
{
    bool ends = x->stepping && x->stepped &&
                (a->verb == SCRIPT_ZERO || a->verb == SCRIPT_EVAL);

    if (x->by_action) {
        return end_step(x);
    }
    if (!ends) {
        return FSDP_OK;
    }
    if (a->verb == SCRIPT_ZERO && !x->saving) {
        recorder_end_flights(x->recorder);
    }
    if (next && next->verb == SCRIPT_EVAL) {
        return FSDP_OK;
    }
    x->stepping = false;
    return x->saving ? FSDP_OK : end_step(x);
}

/* ---- Looks -------------------------------------------------------------- */

bool play_is_looked_at(const struct driver *x, const struct script_action *a)
{
    struct script_walk ahead = x->walk;
    const struct script_action *next = a;

    if (x->by_action || x->d->purpose != DRIVE_TO_RECORD) {
        return false; /* tensors are seen by looks; or none is recorded */
    }
    if ((a->verb != SCRIPT_PASS && a->verb != SCRIPT_CLIP) ||
        a->ending != SCRIPT_WHOLE) {
        return false;
    }
    do {
        next = script_next(&ahead);
    } while (next && (next->verb == SCRIPT_PASS || next->verb == SCRIPT_CLIP ||
                      next->verb == SCRIPT_WRONG || next->verb == SCRIPT_SYNC));
    return next && next->verb == SCRIPT_LOOK;
}

struct pieces_visit {
    struct driver *x;
    uint32_t stage, step;
    int status;
};

/* More than any model here has; whether a smaller piece is right is for
 * requirements to judge. */
#define PIECE_MOST ((uint64_t)1 << 52)

static void visit_piece(void *context, const struct fsdp_piece *piece)
{
    struct pieces_visit *v = context;
    const void *data = piece->value;

    if (v->stage == RECORD_REDUCED || v->stage == RECORD_CLIPPED) {
        data = piece->grad;
    } else if (v->stage == RECORD_STATE0 || v->stage == RECORD_LOADED0) {
        data = piece->state[0];
    } else if (v->stage == RECORD_STATE1 || v->stage == RECORD_LOADED1) {
        data = piece->state[1];
    }
    if (piece->parameter >= 1u << 20 || piece->first > PIECE_MOST ||
        piece->n > PIECE_MOST) {
        v->status = FSDP_ERR_INVALID; /* such a piece could not be recorded */
    }
    if (v->status == FSDP_OK && data && piece->n &&
        v->x->d->purpose == DRIVE_TO_RECORD) {
        v->status = recorder_tensor(v->x->recorder, v->x->out, v->stage,
                                    v->step, 0, piece->parameter, piece->first,
                                    piece->n, FSDP_DTYPE_F32, data);
    }
}

/* The same for buffers; those after an optimizer step count as those of the
 * next step. */
static int look_at_buffers(struct driver *x, uint32_t stage, uint32_t step)
{
    if (x->model->n_buffers == 0) {
        return FSDP_OK;
    }
    drive_place(x, RACE_AT_PIECES, 0);
    if (stage == RECORD_LOADED) {
        return play_look_at_buffers(x, RECORD_BUFFER_LOADED, step);
    }
    return stage == RECORD_REDUCED || stage == RECORD_CLIPPED
               ? FSDP_OK
               : play_look_at_buffers(
                     x, RECORD_BUFFER,
                     stage == RECORD_AFTER && !x->by_action ? step + 1 : step);
}

/* By the verb that a look follows: the number of stages of the record that the
 * look fills, and which. */
static const uint32_t stages[SCRIPT_N_VERBS][4] = {
    [SCRIPT_AGAIN] = {1, RECORD_INITIAL},
    [SCRIPT_PASS] = {2, RECORD_REDUCED, RECORD_BEFORE},
    [SCRIPT_CLIP] = {1, RECORD_CLIPPED},
    [SCRIPT_STEP] = {3, RECORD_AFTER, RECORD_STATE0, RECORD_STATE1},
    [SCRIPT_LOAD] = {3, RECORD_LOADED, RECORD_LOADED0, RECORD_LOADED1},
    [SCRIPT_ZERO] = {1, RECORD_FINAL},
    [SCRIPT_EVAL] = {1, RECORD_FINAL},
    [SCRIPT_SUMMON] = {1, RECORD_FINAL},
};

int play_look(struct driver *x, const struct script_action *a)
{
    static const uint32_t all[] = {4, RECORD_AFTER, RECORD_REDUCED,
                                   RECORD_STATE0, RECORD_STATE1};
    const uint32_t *stage = x->by_action ? all : stages[x->last];
    uint32_t step = x->step;

    (void)a;
    if (stage[1] == RECORD_INITIAL) {
        step = 0;
    } else if (stage[1] == RECORD_FINAL) {
        step = x->d->c->steps;
    } else if (stage[1] == RECORD_LOADED) {
        step = x->out->n_steps;
    }
    for (uint32_t i = 1; i <= stage[0]; i++) {
        struct pieces_visit v = {x, stage[i], step, FSDP_OK};

        drive_place(x, RACE_AT_PIECES, 0);
        FSDP_TRY(x->engine.pieces(x->sharded, visit_piece, &v));
        FSDP_TRY(v.status);
    }
    if (stage[1] == RECORD_LOADED && !x->serial) {
        FSDP_TRY(play_look_into_save(x, step));
    }
    return look_at_buffers(x, stage[1], step);
}
