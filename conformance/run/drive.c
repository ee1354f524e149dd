/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drive.c - drives an engine through a case, one rank: the steps, their
 * microbatches, the points of a pass. What is recorded, and when, is said in
 * record.h.
 */
#include "run/drive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct fsdp_model *model_of(const struct driver *x)
{
    return &x->d->model->model->model;
}

/* For those who describe what happens: the run stands here. */
static void place(struct driver *x, uint32_t point, uint32_t index)
{
    if (point != RACE_AT_DESTROY) { /* which ends no run */
        x->point = point;
        x->index = index;
    }
    recorder_place(x->recorder, x->step, point, index);
}

/* ---- What the workload asks the engine for ----------------------------- */

static int access_param(void *self, uint32_t p, struct fsdp_tensor *out)
{
    struct driver *x = self;
    const struct record_rank *o = x->out;

    FSDP_TRY(x->engine.param(x->sharded, p, out));
    if (!out->data && fsdp_numel(model_of(x), p) != 0) {
        return FSDP_ERR_INVALID; /* an engine that says OK to everything */
    }
    if (x->recording && x->forward && x->microbatch == 0 &&
        !recorder_has(o, RECORD_UNSHARDED, x->step, 0, p, 0)) {
        FSDP_TRY(recorder_finish_compute(x->recorder));
        return recorder_tensor(x->recorder, x->out, RECORD_UNSHARDED, x->step,
                               0, p, 0, fsdp_numel(model_of(x), p), out->data);
    }
    return FSDP_OK;
}

static int access_grad(void *self, uint32_t p, struct fsdp_tensor *out)
{
    struct driver *x = self;

    FSDP_TRY(x->engine.grad(x->sharded, p, out));
    if (!out->data && fsdp_numel(model_of(x), p) != 0) {
        return FSDP_ERR_INVALID;
    }
    x->lent[p] = *out;
    return FSDP_OK;
}

/* A module's backward has been computed: what it left as gradients, before
 * the engine takes it. */
static int record_gradients(struct driver *x, uint32_t module)
{
    const struct fsdp_model *model = model_of(x);

    for (uint32_t p = 0; p < model->n_parameters; p++) {
        const uint64_t n = fsdp_numel(model, p);
        uint64_t first = 0;

        if (model->parameter_module[p] != module || !x->lent[p].data ||
            n == 0) {
            continue;
        }
        /* The module's backwards in this pass follow each other. */
        while (recorder_has(x->out, RECORD_LOCAL_GRADIENT, x->step,
                            x->microbatch, p, first)) {
            first += n;
        }
        FSDP_TRY(recorder_finish_compute(x->recorder));
        FSDP_TRY(recorder_tensor(x->recorder, x->out, RECORD_LOCAL_GRADIENT,
                                 x->step, x->microbatch, p, first, n,
                                 x->lent[p].data));
        x->lent[p].data = NULL;
    }
    return FSDP_OK;
}

/* ---- A pass over one microbatch ---------------------------------------- */

/* A line of the timeline, where one is wanted. Far more points than any
 * model here has would only make the record large. */
static int note_moment(struct driver *x, uint32_t point, uint32_t module)
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
    return note_moment(x, point, of_module ? index : 0);
}

static int pass_point(struct driver *x, uint32_t point, uint32_t module)
{
    const struct workload *w = x->d->model->model->workload;

    x->forward = point == FSDP_PRE_FORWARD;
    place(x, point, module);
    if (point == FSDP_POST_BACKWARD && x->recording) {
        FSDP_TRY(record_gradients(x, module));
    }
    FSDP_TRY(at(x, point, module));
    if (point == FSDP_PRE_FORWARD || point == FSDP_PRE_BACKWARD ||
        point == FSDP_PRE_RECOMPUTE) {
        FSDP_TRY(w->compute(x->run, point, module));
    }
    return FSDP_OK;
}

/* The watchdog counts what goes through the world: nothing would where a rank
 * is alone, or where an engine has brought a communicator of a GPU. */
static int show_progress(struct driver *x)
{
    uint64_t mine = x->step;
    uint64_t all[WORLD_MAX_RANKS];

    return x->alone || x->env.comm->place != FSDP_PLACE_HOST
               ? x->env.exchange(x->env.exchange_self, &mine, sizeof mine, all)
               : FSDP_OK;
}

static int pass_points(struct driver *x, const struct fsdp_sequence *q,
                       uint32_t n, bool wrong)
{
    for (uint32_t i = 0; i < n; i++) {
        if (wrong) {
            FSDP_TRY(drive_wrong_in_pass(x, i));
        }
        FSDP_TRY(pass_point(x, q->point[i], q->module[i]));
    }
    return FSDP_OK;
}

static int cancel_pass(struct driver *x)
{
    float ignored;

    place(x, FSDP_CANCEL, 0);
    FSDP_TRY(at(x, FSDP_CANCEL, 0));
    return x->d->model->model->workload->end(x->run, &ignored);
}

/* The first n points of a sequence, on rank's samples of (step, microbatch);
 * the loss is asked for if all are passed. */
static int pass(struct driver *x, uint32_t sequence, uint32_t n, uint32_t step,
                uint32_t microbatch, float *loss)
{
    const struct fsdp_sequence *q = model_of(x)->sequence[sequence];
    const struct workload *w = x->d->model->model->workload;
    bool wrong = x->d->c->scenario == CASE_MISUSE && x->step == 0 &&
                 microbatch == 0 && sequence == FSDP_SEQUENCE_TRAIN;

    place(x, FSDP_BEGIN, sequence);
    FSDP_TRY(w->begin(x->run, x->env.rank, step, microbatch));
    FSDP_TRY(at(x, FSDP_BEGIN, sequence));
    if (case_resumes(x->d->c) && x->step == 0 && microbatch == 0) {
        FSDP_TRY(drive_wrong_checkpoint_in_pass(x));
    }
    FSDP_TRY(pass_points(x, q, n, wrong));
    if (n < q->n) {
        return cancel_pass(x);
    }
    if (wrong) {
        FSDP_TRY(drive_wrong_before_end(x, q));
    }
    place(x, FSDP_END, sequence);
    FSDP_TRY(at(x, FSDP_END, sequence));
    FSDP_TRY(show_progress(x));
    return w->end(x->run, loss);
}

/* ---- Pieces ------------------------------------------------------------ */

struct pieces_visit {
    struct driver *x;
    uint32_t stage, step;
    int status;
};

/* Beyond any model here; a piece within it is for requirements to judge. */
#define PIECE_MOST ((uint64_t)1 << 52)

static void visit_piece(void *context, const struct fsdp_piece *piece)
{
    struct pieces_visit *v = context;
    const void *data = piece->value;

    if (v->stage == RECORD_REDUCED) {
        data = piece->grad;
    } else if (v->stage == RECORD_STATE0 || v->stage == RECORD_LOADED0) {
        data = piece->state[0];
    } else if (v->stage == RECORD_STATE1 || v->stage == RECORD_LOADED1) {
        data = piece->state[1];
    }
    if (piece->parameter >= 1u << 20 || piece->first > PIECE_MOST ||
        piece->n > PIECE_MOST) {
        v->status = FSDP_ERR_INVALID; /* no record could hold it */
    }
    if (v->status == FSDP_OK && data && piece->n) {
        v->status =
            recorder_tensor(v->x->recorder, v->x->out, v->stage, v->step, 0,
                            piece->parameter, piece->first, piece->n, data);
    }
}

int drive_record_pieces(struct driver *x, uint32_t stage, uint32_t step)
{
    struct pieces_visit v = {x, stage, step, FSDP_OK};

    place(x, RACE_AT_PIECES, 0);
    FSDP_TRY(x->engine.pieces(x->sharded, visit_piece, &v));
    return v.status;
}

/* ---- A step ------------------------------------------------------------ */

static int record_before(struct driver *x)
{
    if (!x->recording) {
        return FSDP_OK;
    }
    FSDP_TRY(drive_record_pieces(x, RECORD_REDUCED, x->step));
    return drive_record_pieces(x, RECORD_BEFORE, x->step);
}

static int record_after(struct driver *x)
{
    if (!x->recording) {
        return FSDP_OK;
    }
    FSDP_TRY(drive_record_pieces(x, RECORD_AFTER, x->step));
    FSDP_TRY(drive_record_pieces(x, RECORD_STATE0, x->step));
    return drive_record_pieces(x, RECORD_STATE1, x->step);
}

/* The microbatches of one rank. */
int drive_microbatches(struct driver *x)
{
    const struct run_case *c = x->d->c;
    uint32_t n = model_of(x)->sequence[FSDP_SEQUENCE_TRAIN]->n;

    for (uint32_t b = 0; b < c->microbatches; b++) {
        x->microbatch = b;
        FSDP_TRY(x->engine.set_gradient_sync(x->sharded, c->sync[b]));
        FSDP_TRY(pass(x, FSDP_SEQUENCE_TRAIN, n, x->step, b,
                      &x->out->loss[x->step * c->microbatches + b]));
        x->out->n_losses = x->step * c->microbatches + b + 1;
        if (c->scenario == CASE_MISUSE && x->step == 0 && !c->sync[b]) {
            FSDP_TRY(drive_wrong_step(x));
        }
    }
    x->microbatch = 0;
    return FSDP_OK;
}

int drive_optimize(struct driver *x)
{
    const struct run_case *c = x->d->c;
    struct fsdp_step step = {.size = sizeof step,
                             .n_groups = 1,
                             .lr = &c->lr,
                             .weight_decay = &c->weight_decay,
                             .found_inf = 1};

    FSDP_TRY(record_before(x));
    place(x, RACE_AT_STEP, 0);
    FSDP_TRY(x->engine.step(x->sharded, &step));
    FSDP_TRY(note_moment(x, RECORD_POINT_STEP, 0));
    if (c->scenario == CASE_MISUSE && x->step == 0) {
        FSDP_TRY(drive_answer(x, "found-inf", (int)step.found_inf));
    }
    FSDP_TRY(record_after(x));
    place(x, RACE_AT_ZERO_GRAD, 0);
    FSDP_TRY(x->engine.zero_grad(x->sharded));
    return note_moment(x, RECORD_POINT_ZERO_GRAD, 0);
}

/* An evaluation pass on the samples that the next step begins with. */
int drive_evaluate(struct driver *x)
{
    bool recording = x->recording;
    const struct fsdp_sequence *q = model_of(x)->sequence[FSDP_SEQUENCE_EVAL];

    if (x->d->c->scenario != CASE_EVAL) {
        return FSDP_OK;
    }
    x->recording = false;
    FSDP_TRY(pass(x, FSDP_SEQUENCE_EVAL, q->n, x->step + 1, 0,
                  &x->out->other_loss[x->step]));
    x->out->n_other_losses = x->step + 1;
    x->recording = recording;
    return FSDP_OK;
}

static int cancelled_pass(struct driver *x)
{
    const struct fsdp_sequence *q = model_of(x)->sequence[FSDP_SEQUENCE_TRAIN];
    bool recording = x->recording;
    float ignored;

    if (x->d->c->scenario != CASE_CANCEL) {
        return FSDP_OK;
    }
    x->recording = false;
    FSDP_TRY(x->engine.set_gradient_sync(x->sharded, 1));
    FSDP_TRY(pass(x, FSDP_SEQUENCE_TRAIN, 5 * q->n / 8, x->step, 0, &ignored));
    memset(x->lent, 0, model_of(x)->n_parameters * sizeof *x->lent);
    x->recording = recording;
    if (x->step == 0) {
        FSDP_TRY(drive_answer(x, "param-after-cancel",
                              drive_ask_all(x, x->engine.param)));
        FSDP_TRY(drive_answer(x, "grad-after-cancel",
                              drive_ask_all(x, x->engine.grad)));
    }
    return FSDP_OK;
}

int drive_end_step(struct driver *x)
{
    int64_t sequence = recorder_mark(x->recorder);
    struct record_memory *m = &x->out->memory;

    if (sequence < 0) {
        return FSDP_ERR_NOMEM;
    }
    x->out->step_sequence[x->step] = (uint32_t)sequence;
    x->out->n_steps = x->step + 1;
    recorder_rest(x->recorder, &m->after_step[x->step]);
    m->allocations[x->step] = recorder_allocations(x->recorder);
    m->launches[x->step] = recorder_launches(x->recorder);
    return FSDP_OK;
}

int drive_step(struct driver *x, uint32_t step)
{
    x->step = step;
    x->recording = step < x->d->c->recorded_steps;
    x->watching = x->env.rank == 0 && step == (x->d->c->steps > 1 ? 1u : 0u);
    if (x->watching) {
        FSDP_TRY(recorder_moment(x->recorder, NULL, 0, 0));
    }
    if (x->d->c->scenario == CASE_MISUSE && step == 0) {
        FSDP_TRY(drive_wrong_at_rest(x));
    }
    FSDP_TRY(cancelled_pass(x));
    FSDP_TRY(drive_microbatches(x));
    if (case_resumes(x->d->c) && step == 0) {
        FSDP_TRY(drive_wrong_save(x));
    }
    FSDP_TRY(drive_optimize(x));
    recorder_end_flights(x->recorder);
    FSDP_TRY(drive_evaluate(x));
    return drive_end_step(x);
}

/* ---- A life: from shard to destroy ------------------------------------- */

static int summon(struct driver *x)
{
    const struct fsdp_model *model = model_of(x);
    struct fsdp_tensor t;

    if (x->d->c->scenario != CASE_SUMMON || !x->engine.unshard_all) {
        return FSDP_OK;
    }
    place(x, RACE_AT_SUMMON, 0);
    FSDP_TRY(x->engine.unshard_all(x->sharded));
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        FSDP_TRY(x->engine.param(x->sharded, p, &t));
        FSDP_TRY(recorder_finish_compute(x->recorder));
        FSDP_TRY(recorder_tensor(x->recorder, x->out, RECORD_SUMMONED,
                                 x->d->c->steps, 0, p, 0, fsdp_numel(model, p),
                                 t.data));
    }
    FSDP_TRY(x->engine.reshard_all(x->sharded));
    return drive_answer(x, "param-after-reshard-all",
                        drive_ask_all(x, x->engine.param));
}

int drive_open_run(struct driver *x)
{
    const struct workload *w = x->d->model->model->workload;
    struct workload_access access = {access_param, access_grad, x};

    return w->open(x->d->model->model, recorder_model_device(x->recorder),
                   x->env.compute, &access, x->env.error, &x->run);
}

int drive_shard(struct driver *x)
{
    int64_t sequence;

    place(x, RACE_AT_SHARD, 0);
    drive_tell_model(x);
    FSDP_TRY(x->engine.shard(&x->env, &x->model, &x->d->model->units.units,
                             &x->options, &x->sharded));
    sequence = recorder_mark(x->recorder);
    if (sequence < 0) {
        return FSDP_ERR_NOMEM;
    }
    x->out->shard_sequence = (uint32_t)sequence;
    recorder_rest(x->recorder, &x->out->memory.after_shard);
    (void)recorder_allocations(x->recorder);
    (void)recorder_launches(x->recorder);
    return x->d->c->recorded_steps ? drive_record_pieces(x, RECORD_INITIAL, 0)
                                   : FSDP_OK;
}

int drive_end_life(struct driver *x)
{
    int64_t sequence;

    FSDP_TRY(summon(x));
    if (x->d->c->recorded_steps) {
        FSDP_TRY(drive_record_pieces(x, RECORD_FINAL, x->d->c->steps));
    }
    sequence = recorder_mark(x->recorder);
    if (sequence < 0) {
        return FSDP_ERR_NOMEM;
    }
    x->out->end_sequence = (uint32_t)sequence;
    return FSDP_OK;
}

static int train(struct driver *x)
{
    FSDP_TRY(drive_shard(x));
    FSDP_TRY(drive_open_run(x));
    for (uint32_t step = 0; step < x->d->c->steps; step++) {
        FSDP_TRY(drive_step(x, step));
    }
    return drive_end_life(x);
}

void drive_end_of_run(struct driver *x)
{
    place(x, RACE_AT_DESTROY, 0);
    x->d->model->model->workload->close(x->run);
    x->engine.destroy(x->sharded);
    x->run = NULL;
    x->sharded = NULL;
}

/* AGAIN: what the first life showed gives way to the second, but for its
 * losses. */
static void forget_first_life(struct record_rank *out)
{
    for (uint32_t i = 0; i < out->n_tensors; i++) {
        free(out->tensor[i].data);
    }
    out->n_tensors = 0;
    out->memory.n_moments = 0;
    memcpy(out->other_loss, out->loss, out->n_losses * sizeof *out->loss);
    out->n_other_losses = out->n_losses;
    out->n_losses = 0;
    out->n_steps = 0;
}

int drive_live(struct driver *x)
{
    switch (x->d->c->scenario) {
    case CASE_OPTIONS:
        return drive_options(x);
    case CASE_DISAGREE:
        return drive_disagree(x);
    case CASE_AGAIN:
        FSDP_TRY(train(x));
        drive_end_of_run(x);
        forget_first_life(x->out);
        return train(x);
    case CASE_RESUME:
    case CASE_RESUME_FULL:
    case CASE_RESUME_LOCAL:
    case CASE_GROW:
    case CASE_SHRINK:
        return drive_resume(x);
    default:
        return x->d->saves_only ? drive_save_only(x) : train(x);
    }
}
