/* SPDX-License-Identifier: Apache-2.0 */
/*
 * play_pass.c - plays a pass over one microbatch: the points of its sequence,
 * the model's computations there, and a script's actions on the way.
 */
#include "run/play/play.h"

#include <stdio.h>
#include <string.h>

/* ---- What the workload asks the engine for ----------------------------- */

/* An engine that says OK and lends nothing is caught here. */
static int check_lent(struct driver *x, const char *function, uint32_t p,
                      const struct fsdp_tensor *lent)
{
    if (lent->data || fsdp_numel(x->model, p) == 0) {
        return FSDP_OK;
    }
    if (x->error.status == FSDP_OK) {
        x->error = (struct fsdp_error){.status = FSDP_ERR_INVALID,
                                       .rank = (int32_t)x->rank};
        snprintf(x->error.where, sizeof(x->error.where), "%s", function);
        snprintf(x->error.message, sizeof(x->error.message),
                 "%s of %.80s answers OK and lends no data", function,
                 x->model->parameter_name[p]);
    }
    return FSDP_ERR_INVALID;
}

/* Checks that both names of a tied parameter are the same memory. */
static int look_at_tie(struct driver *x, uint32_t p, const void *data)
{
    const uint32_t original = fsdp_original(x->model, p);
    struct fsdp_tensor other;
    int status = FSDP_OK;

    if (original == p || x->serial || x->by_action) {
        return FSDP_OK;
    }
    FSDP_TRY(x->engine.param(x->sharded, original, &other));
    if (other.data != data) {
        status = FSDP_ERR_MISMATCH;
        *x->env.error = (struct fsdp_error){.status = status,
                                            .rank = (int32_t)x->env.rank,
                                            .where = "driver",
                                            .message = "two places"};
    }
    return drive_answer(x, "tied-memory", status);
}

static int access_param(void *self, uint32_t p, struct fsdp_tensor *out)
{
    struct driver *x = self;
    const struct record_rank *o = x->out;

    FSDP_TRY(x->engine.param(x->sharded, p, out));
    FSDP_TRY(check_lent(x, "param", p, out));
    if (x->forward && out->data && witness_wants(&x->witness, p)) {
        FSDP_TRY(recorder_finish_compute(x->recorder));
        witness_lent(&x->witness, p, out);
    }
    if (x->recording && x->forward && x->microbatch == 0 &&
        !recorder_has(o, RECORD_UNSHARDED, x->step, 0, p, 0)) {
        FSDP_TRY(look_at_tie(x, p, out->data));
        FSDP_TRY(recorder_finish_compute(x->recorder));
        return recorder_tensor(x->recorder, x->out, RECORD_UNSHARDED, x->step,
                               0, p, 0, fsdp_numel(x->model, p), out->dtype,
                               out->data);
    }
    return FSDP_OK;
}

static int access_grad(void *self, uint32_t p, struct fsdp_tensor *out)
{
    struct driver *x = self;

    FSDP_TRY(x->engine.grad(x->sharded, p, out));
    FSDP_TRY(check_lent(x, "grad", p, out));
    x->lent[p] = *out;
    return FSDP_OK;
}

int play_open_run(struct driver *x)
{
    struct workload_access access = {
        .param = access_param,
        .grad = access_grad,
        .self = x,
        .loss_scale = x->d->script->scale.said ? &x->scaler.scale : NULL,
        .flags = x->flags,
        .ignored = x->units->unit_of_parameter ? x->ignored : NULL,
        .buffer = play_lend_buffer};

    return x->workload->open(x->d->model->model,
                             recorder_model_device(x->recorder), x->env.compute,
                             &access, x->env.error, &x->run);
}

/* Records the gradients that a module's backward has left, before the engine
 * takes them. */
static int record_gradients(struct driver *x, uint32_t module)
{
    const struct fsdp_model *model = x->model;

    for (uint32_t p = 0; p < model->n_parameters; p++) {
        const uint64_t n = fsdp_numel(model, p);
        uint64_t first = 0;

        if (model->parameter_module[p] != module || !x->lent[p].data ||
            n == 0) {
            continue;
        }
        /* Several backwards of the module in this pass are recorded one behind
         * the other. */
        while (recorder_has(x->out, RECORD_LOCAL_GRADIENT, x->step,
                            x->microbatch, p, first)) {
            first += n;
        }
        FSDP_TRY(recorder_finish_compute(x->recorder));
        FSDP_TRY(recorder_tensor(x->recorder, x->out, RECORD_LOCAL_GRADIENT,
                                 x->step, x->microbatch, p, first, n,
                                 x->lent[p].dtype, x->lent[p].data));
        x->lent[p].data = NULL;
    }
    return FSDP_OK;
}

/* Does that if it is recorded; in any case the gradients are lent no longer. */
static int take_gradients(struct driver *x, uint32_t module)
{
    bool waited = !x->witness.wire;

    for (uint32_t p = 0; p < x->model->n_parameters; p++) {
        if (x->model->parameter_module[p] != module || !x->lent[p].data) {
            continue;
        }
        if (!waited) {
            FSDP_TRY(recorder_finish_compute(x->recorder));
            waited = true;
        }
        witness_left(&x->witness, p, &x->lent[p]);
        if (!x->recording) { /* else record_gradients looks at it first */
            x->lent[p].data = NULL;
        }
    }
    return x->recording ? record_gradients(x, module) : FSDP_OK;
}

/* ---- Points ------------------------------------------------------------- */

/* Adds a line to the timeline, if there is one. A model with far more points
 * than any here would only make the record large. */
int play_note_moment(struct driver *x, uint32_t point, uint32_t module)
{
    enum {
        MOST = 1 << 16
    };

    return x->watching && x->out->memory.n_moments < MOST
               ? recorder_moment(x->recorder, x->out, point, module)
               : FSDP_OK;
}

/* Tells the engine; `index` is a module or a sequence. */
static int at(struct driver *x, uint32_t point, uint32_t index)
{
    bool of_module = point != FSDP_BEGIN && point != FSDP_END;

    FSDP_TRY(x->engine.at(x->sharded, point, index));
    return play_note_moment(x, point, of_module ? index : 0);
}

static int pass_point(struct driver *x, const struct script_action *a,
                      uint32_t point, uint32_t module)
{
    x->forward = point == FSDP_PRE_FORWARD;
    drive_place(x, point, module);
    if (point == FSDP_POST_BACKWARD && x->by_action) {
        FSDP_TRY(play_edits(x, a, module));
    }
    if (point == FSDP_POST_BACKWARD) {
        FSDP_TRY(take_gradients(x, module));
    }
    FSDP_TRY(at(x, point, module));
    if (point == FSDP_PRE_FORWARD || point == FSDP_PRE_BACKWARD ||
        point == FSDP_PRE_RECOMPUTE) {
        FSDP_TRY(x->workload->compute(x->run, point, module));
        if (x->model->n_buffers > 0) {
            FSDP_TRY(play_buffers_left(x));
        }
    }
    return FSDP_OK;
}

/* Makes the script's actions that come when i points have been passed. */
static int play_inside(struct driver *x, const struct script_action *a,
                       uint32_t i, uint32_t length)
{
    const struct script_inside *in = x->d->script->inside + a->first_inside;

    for (uint32_t k = 0; k < a->n_inside; k++, in++) {
        if (script_place_in(in->place, length) != i) {
            continue;
        }
        if (in->by_hand != 0) {
            FSDP_TRY(play_by_hand(x, in->by_hand, in->unit));
        } else if (in->sync != SCRIPT_SYNC_UNSAID) {
            FSDP_TRY(x->engine.set_gradient_sync(x->sharded,
                                                 in->sync == SCRIPT_SYNC_ON));
        } else {
            FSDP_TRY(play_wrong(x, in->call));
        }
    }
    return FSDP_OK;
}

/* Plays the first n points, and the actions before, between and behind them. */
static int pass_points(struct driver *x, const struct script_action *a,
                       const struct fsdp_sequence *q, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        FSDP_TRY(play_inside(x, a, i, q->n));
        FSDP_TRY(pass_point(x, a, q->point[i], q->module[i]));
    }
    return play_inside(x, a, n, q->n);
}

/* ---- Passes ------------------------------------------------------------- */

/* The watchdog counts what goes through the world. Nothing does if a rank is
 * alone, or the engine has brought a communicator of a GPU, so the pass shows
 * progress here. */
static int show_progress(struct driver *x)
{
    uint64_t mine = x->step;
    uint64_t all[WORLD_MAX_RANKS];

    return x->alone || x->env.comm->place != FSDP_PLACE_HOST
               ? drive_exchange(x, &mine, sizeof(mine), all)
               : FSDP_OK;
}

static int cancel(struct driver *x)
{
    float ignored;

    drive_place(x, FSDP_CANCEL, 0);
    FSDP_TRY(at(x, FSDP_CANCEL, 0));
    x->unscaled = false;
    FSDP_TRY(x->workload->end(x->run, &ignored));
    memset(x->lent, 0, x->model->n_parameters * sizeof(*x->lent));
    return FSDP_OK;
}

static int begin_pass(struct driver *x, const struct script_action *a,
                      uint32_t sequence)
{
    if (a->sync != SCRIPT_SYNC_UNSAID) {
        FSDP_TRY(
            x->engine.set_gradient_sync(x->sharded, a->sync == SCRIPT_SYNC_ON));
    }
    drive_place(x, FSDP_BEGIN, sequence);
    x->microbatch = a->batch.microbatch;
    witness_begin(&x->witness, x->step, x->microbatch);
    FSDP_TRY(x->workload->begin(x->run, x->env.rank, script_step(&x->walk, a),
                                x->microbatch));
    return at(x, FSDP_BEGIN, sequence);
}

/* A record has room for the steps of its case and their microbatches; a script
 * that needs more does not belong to this case. */
static int check_room(struct driver *x, const struct script_action *a)
{
    const struct run_case *c = x->d->c;

    if (a->ending == SCRIPT_LEFT_OPEN ||
        (x->step < c->steps &&
         (a->verb == SCRIPT_EVAL || a->batch.microbatch < c->microbatches))) {
        return FSDP_OK;
    }
    drive_place(x, FSDP_BEGIN, 0);
    *x->env.error = (struct fsdp_error){.status = FSDP_ERR_INVALID,
                                        .rank = (int32_t)x->env.rank,
                                        .where = "script"};
    snprintf(x->env.error->message, sizeof(x->env.error->message),
             "step %u, microbatch %u: the case has %u of %u, from 0", x->step,
             a->batch.microbatch, c->steps, c->microbatches);
    return FSDP_ERR_INVALID;
}

/* The place in the record for the loss of a whole pass. */
static float *loss_of(struct driver *x, const struct script_action *a)
{
    uint32_t i = x->step * x->d->c->microbatches + x->microbatch;

    if (x->by_action) {
        return &x->out->loss[x->step];
    }
    if (a->verb == SCRIPT_EVAL) {
        x->out->n_other_losses = x->step + 1;
        return &x->out->other_loss[x->step];
    }
    if (x->saving && !x->serial) { /* the same step is played again */
        return &x->out->other_loss[x->out->n_other_losses++];
    }
    x->out->n_losses = i + 1;
    return &x->out->loss[i];
}

int play_pass(struct driver *x, const struct script_action *a)
{
    uint32_t sequence =
        a->verb == SCRIPT_EVAL ? FSDP_SEQUENCE_EVAL : FSDP_SEQUENCE_TRAIN;
    const struct fsdp_sequence *q = x->model->sequence[sequence];
    uint32_t n =
        a->ending == SCRIPT_WHOLE ? q->n : script_place_in(a->until, q->n);

    FSDP_TRY(check_room(x, a));
    FSDP_TRY(begin_pass(x, a, sequence));
    FSDP_TRY(pass_points(x, a, q, n));
    if (a->ending != SCRIPT_WHOLE) {
        return a->ending == SCRIPT_CANCELLED ? cancel(x) : FSDP_OK;
    }
    drive_place(x, FSDP_END, sequence);
    FSDP_TRY(at(x, FSDP_END, sequence));
    FSDP_TRY(witness_end(&x->witness, x->out));
    /* The pass adds scaled gradients, even if those before were unscaled. */
    x->unscaled = x->unscaled && a->verb == SCRIPT_EVAL;
    FSDP_TRY(show_progress(x));
    return x->workload->end(x->run, loss_of(x, a));
}
