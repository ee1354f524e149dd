/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drive_step.c - a step of training on one rank: its microbatches, the points
 * of their passes, the optimizer, evaluation. What is recorded, and when, is
 * said in record.h.
 */
#include "run/drive.h"
#include "run/orphans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* For those who describe what happens: the run stands here. */
void drive_place(struct driver *x, uint32_t point, uint32_t index)
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
    if (!out->data && fsdp_numel(x->model, p) != 0) {
        return FSDP_ERR_INVALID; /* an engine that says OK to everything */
    }
    if (x->recording && x->forward && x->microbatch == 0 &&
        !recorder_has(o, RECORD_UNSHARDED, x->step, 0, p, 0)) {
        FSDP_TRY(recorder_finish_compute(x->recorder));
        return recorder_tensor(x->recorder, x->out, RECORD_UNSHARDED, x->step,
                               0, p, 0, fsdp_numel(x->model, p), out->data);
    }
    return FSDP_OK;
}

static int access_grad(void *self, uint32_t p, struct fsdp_tensor *out)
{
    struct driver *x = self;

    FSDP_TRY(x->engine.grad(x->sharded, p, out));
    if (!out->data && fsdp_numel(x->model, p) != 0) {
        return FSDP_ERR_INVALID;
    }
    x->lent[p] = *out;
    return FSDP_OK;
}

int drive_open_run(struct driver *x)
{
    struct workload_access access = {access_param, access_grad, x};

    return x->workload->open(x->d->model->model,
                             recorder_model_device(x->recorder), x->env.compute,
                             &access, x->env.error, &x->run);
}

/* A module's backward has been computed: what it left as gradients, before
 * the engine takes it. */
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
    x->forward = point == FSDP_PRE_FORWARD;
    drive_place(x, point, module);
    if (point == FSDP_POST_BACKWARD && x->recording) {
        FSDP_TRY(record_gradients(x, module));
    }
    FSDP_TRY(at(x, point, module));
    if (point == FSDP_PRE_FORWARD || point == FSDP_PRE_BACKWARD ||
        point == FSDP_PRE_RECOMPUTE) {
        FSDP_TRY(x->workload->compute(x->run, point, module));
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
               ? x->env.exchange(x->env.exchange_self, &mine, sizeof(mine), all)
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

    drive_place(x, FSDP_CANCEL, 0);
    FSDP_TRY(at(x, FSDP_CANCEL, 0));
    return x->workload->end(x->run, &ignored);
}

/* The first n points of a sequence, on rank's samples of (step, microbatch);
 * the loss is asked for if all are passed. */
static int pass(struct driver *x, uint32_t sequence, uint32_t n, uint32_t step,
                uint32_t microbatch, float *loss)
{
    const struct fsdp_sequence *q = x->model->sequence[sequence];
    bool wrong = x->d->c->scenario == CASE_MISUSE && x->step == 0 &&
                 microbatch == 0 && sequence == FSDP_SEQUENCE_TRAIN;

    drive_place(x, FSDP_BEGIN, sequence);
    FSDP_TRY(x->workload->begin(x->run, x->env.rank, step, microbatch));
    FSDP_TRY(at(x, FSDP_BEGIN, sequence));
    if (case_resumes(x->d->c) && x->step == 0 && microbatch == 0) {
        FSDP_TRY(drive_wrong_checkpoint_in_pass(x));
    }
    FSDP_TRY(drive_wrong_clip(x, true));
    FSDP_TRY(pass_points(x, q, n, wrong));
    if (n < q->n) {
        return cancel_pass(x);
    }
    if (wrong) {
        FSDP_TRY(drive_wrong_before_end(x, q));
    }
    drive_place(x, FSDP_END, sequence);
    FSDP_TRY(at(x, FSDP_END, sequence));
    FSDP_TRY(show_progress(x));
    return x->workload->end(x->run, loss);
}

/* CANCEL: the last pass is left in its middle, and destroy takes it all. */
int drive_abandon_pass(struct driver *x)
{
    const struct fsdp_sequence *q = x->model->sequence[FSDP_SEQUENCE_TRAIN];

    if (x->d->c->scenario != CASE_CANCEL) {
        return FSDP_OK;
    }
    x->recording = x->watching = false;
    drive_place(x, FSDP_BEGIN, FSDP_SEQUENCE_TRAIN);
    FSDP_TRY(x->workload->begin(x->run, x->env.rank, x->d->c->steps, 0));
    FSDP_TRY(at(x, FSDP_BEGIN, FSDP_SEQUENCE_TRAIN));
    return pass_points(x, q, 5 * q->n / 8, false);
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
    uint32_t n = x->model->sequence[FSDP_SEQUENCE_TRAIN]->n;

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
    struct fsdp_step step = {.size = sizeof(step), .found_inf = 1};

    FSDP_TRY(record_before(x));
    drive_place(x, RACE_AT_STEP, 0);
    FSDP_TRY(drive_clip(x));
    FSDP_TRY(drive_step_groups(x, &step));
    FSDP_TRY(note_moment(x, RECORD_POINT_STEP, 0));
    if (c->scenario == CASE_MISUSE && x->step == 0) {
        FSDP_TRY(drive_answer(x, "found-inf", (int)step.found_inf));
    }
    FSDP_TRY(record_after(x));
    drive_place(x, RACE_AT_ZERO_GRAD, 0);
    FSDP_TRY(x->engine.zero_grad(x->sharded));
    return note_moment(x, RECORD_POINT_ZERO_GRAD, 0);
}

/* An evaluation pass on the samples that the next step begins with. */
int drive_evaluate(struct driver *x)
{
    bool recording = x->recording;
    const struct fsdp_sequence *q = x->model->sequence[FSDP_SEQUENCE_EVAL];

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
    const struct fsdp_sequence *q = x->model->sequence[FSDP_SEQUENCE_TRAIN];
    bool recording = x->recording;
    float ignored;

    if (x->d->c->scenario != CASE_CANCEL) {
        return FSDP_OK;
    }
    x->recording = false;
    FSDP_TRY(x->engine.set_gradient_sync(x->sharded, 1));
    FSDP_TRY(pass(x, FSDP_SEQUENCE_TRAIN, 5 * q->n / 8, x->step, 0, &ignored));
    memset(x->lent, 0, x->model->n_parameters * sizeof(*x->lent));
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
    if (x->d->look_at_process) {
        x->has_helpers = x->has_helpers || orphans_are_there();
    }
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
