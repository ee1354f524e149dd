/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drive.c - drives an engine through a case, one rank: the steps, their
 * microbatches, the points of a pass. What is recorded, and when, is said in
 * record.h.
 */
#include "run/drive.h"
#include "run/process.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct fsdp_model *model_of(const struct driver *x)
{
    return &x->d->model->model->model;
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
        !record_find(o, RECORD_UNSHARDED, x->step, 0, p, 0)) {
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
        if (model->parameter_module[p] == module && x->lent[p].data) {
            FSDP_TRY(recorder_tensor(x->recorder, x->out, RECORD_LOCAL_GRADIENT,
                                     x->step, x->microbatch, p, 0,
                                     fsdp_numel(model, p), x->lent[p].data));
            x->lent[p].data = NULL;
        }
    }
    return FSDP_OK;
}

/* ---- A pass over one microbatch ---------------------------------------- */

static int pass_point(struct driver *x, uint32_t point, uint32_t module)
{
    const struct workload *w = x->d->model->model->workload;

    x->forward = point == FSDP_PRE_FORWARD;
    if (point == FSDP_POST_BACKWARD && x->recording) {
        FSDP_TRY(record_gradients(x, module));
    }
    FSDP_TRY(x->engine.at(x->sharded, point, module));
    if (point == FSDP_PRE_FORWARD || point == FSDP_PRE_BACKWARD ||
        point == FSDP_PRE_RECOMPUTE) {
        FSDP_TRY(w->compute(x->run, point, module));
    }
    return FSDP_OK;
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
    float ignored;

    FSDP_TRY(w->begin(x->run, x->env.rank, step, microbatch));
    FSDP_TRY(x->engine.at(x->sharded, FSDP_BEGIN, sequence));
    for (uint32_t i = 0; i < n; i++) {
        if (wrong) {
            FSDP_TRY(drive_wrong_in_pass(x, i));
        }
        FSDP_TRY(pass_point(x, q->point[i], q->module[i]));
    }
    if (n < q->n) {
        FSDP_TRY(x->engine.at(x->sharded, FSDP_CANCEL, 0));
        return w->end(x->run, &ignored);
    }
    FSDP_TRY(x->engine.at(x->sharded, FSDP_END, sequence));
    return w->end(x->run, loss);
}

/* ---- Pieces ------------------------------------------------------------ */

struct pieces_visit {
    struct driver *x;
    uint32_t stage, step;
    int status;
};

static void visit_piece(void *context, const struct fsdp_piece *piece)
{
    struct pieces_visit *v = context;
    const void *data = piece->value;

    if (v->stage == RECORD_REDUCED) {
        data = piece->grad;
    } else if (v->stage == RECORD_STATE0) {
        data = piece->state[0];
    } else if (v->stage == RECORD_STATE1) {
        data = piece->state[1];
    }
    if (v->status == FSDP_OK && data && piece->n) {
        v->status =
            recorder_tensor(v->x->recorder, v->x->out, v->stage, v->step, 0,
                            piece->parameter, piece->first, piece->n, data);
    }
}

static int record_pieces(struct driver *x, uint32_t stage, uint32_t step)
{
    struct pieces_visit v = {x, stage, step, FSDP_OK};

    FSDP_TRY(x->engine.pieces(x->sharded, visit_piece, &v));
    return v.status;
}

/* ---- A step ------------------------------------------------------------ */

static int record_before(struct driver *x)
{
    if (!x->recording) {
        return FSDP_OK;
    }
    FSDP_TRY(record_pieces(x, RECORD_REDUCED, x->step));
    return record_pieces(x, RECORD_BEFORE, x->step);
}

static int record_after(struct driver *x)
{
    if (!x->recording) {
        return FSDP_OK;
    }
    FSDP_TRY(record_pieces(x, RECORD_AFTER, x->step));
    FSDP_TRY(record_pieces(x, RECORD_STATE0, x->step));
    return record_pieces(x, RECORD_STATE1, x->step);
}

/* The microbatches of one rank. */
static int microbatches(struct driver *x)
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

static int optimize(struct driver *x)
{
    const struct run_case *c = x->d->c;
    struct fsdp_step step = {.size = sizeof step,
                             .n_groups = 1,
                             .lr = &c->lr,
                             .weight_decay = &c->weight_decay};

    FSDP_TRY(record_before(x));
    FSDP_TRY(x->engine.step(x->sharded, &step));
    FSDP_TRY(record_after(x));
    return x->engine.zero_grad(x->sharded);
}

/* An evaluation pass on the samples that the next step begins with. */
static int evaluate(struct driver *x)
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
    return FSDP_OK;
}

static int end_step(struct driver *x)
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
    return FSDP_OK;
}

static int one_step(struct driver *x, uint32_t step)
{
    x->step = step;
    x->recording = step < x->d->c->recorded_steps;
    if (x->d->c->scenario == CASE_MISUSE && step == 0) {
        FSDP_TRY(drive_wrong_at_rest(x));
    }
    FSDP_TRY(cancelled_pass(x));
    FSDP_TRY(microbatches(x));
    FSDP_TRY(optimize(x));
    FSDP_TRY(evaluate(x));
    return end_step(x);
}

/* ---- A life: from shard to destroy ------------------------------------- */

static int summon(struct driver *x)
{
    const struct fsdp_model *model = model_of(x);
    struct fsdp_tensor t;

    if (x->d->c->scenario != CASE_SUMMON || !x->engine.unshard_all) {
        return FSDP_OK;
    }
    FSDP_TRY(x->engine.unshard_all(x->sharded));
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        FSDP_TRY(x->engine.param(x->sharded, p, &t));
        FSDP_TRY(recorder_tensor(x->recorder, x->out, RECORD_SUMMONED,
                                 x->d->c->steps, 0, p, 0, fsdp_numel(model, p),
                                 t.data));
    }
    return x->engine.reshard_all(x->sharded);
}

static int open_run(struct driver *x)
{
    const struct workload *w = x->d->model->model->workload;
    struct workload_access access = {access_param, access_grad, x};

    return w->open(x->d->model->model, recorder_model_device(x->recorder),
                   x->env.compute, &access, x->env.error, &x->run);
}

static int shard(struct driver *x)
{
    int64_t sequence;

    FSDP_TRY(x->engine.shard(&x->env, model_of(x), &x->d->model->units.units,
                             &x->options, &x->sharded));
    sequence = recorder_mark(x->recorder);
    if (sequence < 0) {
        return FSDP_ERR_NOMEM;
    }
    x->out->shard_sequence = (uint32_t)sequence;
    recorder_rest(x->recorder, &x->out->memory.after_shard);
    (void)recorder_allocations(x->recorder);
    return x->d->c->recorded_steps ? record_pieces(x, RECORD_INITIAL, 0)
                                   : FSDP_OK;
}

static int end_life(struct driver *x)
{
    int64_t sequence;

    FSDP_TRY(summon(x));
    if (x->d->c->recorded_steps) {
        FSDP_TRY(record_pieces(x, RECORD_FINAL, x->d->c->steps));
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
    FSDP_TRY(shard(x));
    FSDP_TRY(open_run(x));
    for (uint32_t step = 0; step < x->d->c->steps; step++) {
        FSDP_TRY(one_step(x, step));
    }
    return end_life(x);
}

static void end_of_run(struct driver *x)
{
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
    memcpy(out->other_loss, out->loss, out->n_losses * sizeof *out->loss);
    out->n_other_losses = out->n_losses;
    out->n_losses = 0;
    out->n_steps = 0;
}

static int live(struct driver *x)
{
    switch (x->d->c->scenario) {
    case CASE_OPTIONS:
        return drive_options(x);
    case CASE_DISAGREE:
        return drive_disagree(x);
    case CASE_AGAIN:
        FSDP_TRY(train(x));
        end_of_run(x);
        forget_first_life(x->out);
        return train(x);
    default:
        return train(x);
    }
}

/* ---- A rank ------------------------------------------------------------ */

static int make_record(const struct run_case *c, struct record_rank *out)
{
    size_t losses = (size_t)c->steps * c->microbatches + 1;

    out->present = true;
    out->sequence = calloc(1, sizeof *out->sequence); /* nothing was sent */
    out->n_sequences = out->sequence != NULL;
    out->loss = calloc(losses, sizeof *out->loss);
    out->other_loss = calloc(losses, sizeof *out->other_loss);
    out->step_sequence = calloc(c->steps + 1u, sizeof *out->step_sequence);
    out->memory.after_step =
        calloc(c->steps + 1u, sizeof *out->memory.after_step);
    out->memory.allocations =
        calloc(c->steps + 1u, sizeof *out->memory.allocations);
    return out->sequence && out->loss && out->other_loss &&
                   out->step_sequence && out->memory.after_step &&
                   out->memory.allocations
               ? FSDP_OK
               : FSDP_ERR_NOMEM;
}

static void make_env(struct driver *x, struct world_rank *rank)
{
    static const char *const names[] = {"replicate", "shard"};
    const struct run_case *c = x->d->c;

    x->extent[FSDP_DIM_REPLICATE] = c->replicas;
    x->extent[FSDP_DIM_SHARD] = case_shard_degree(c);
    x->mesh = (struct fsdp_mesh){sizeof x->mesh, 2, names, x->extent};
    x->env = (struct fsdp_env){.size = sizeof x->env,
                               .rank = rank->rank,
                               .world = c->ranks,
                               .mesh = &x->mesh,
                               .comm = &rank->comm,
                               .error = rank->error,
                               .exchange = rank->exchange,
                               .exchange_self = rank->exchange_self};
}

/* Opens engine and device, lives, and gives everything back. `play` does what
 * lies between. */
static int with_engine(struct driver *x, int (*play)(struct driver *))
{
    struct fsdp_env lender; /* of the device, to an engine that has none */
    struct process_view before, after;
    int status = FSDP_OK;

    x->engine = *x->d->engine;
    x->lent = calloc(model_of(x)->n_parameters + 1u, sizeof *x->lent);
    if (!x->lent) {
        return FSDP_ERR_NOMEM;
    }
    if (x->engine.open) {
        status = x->engine.open(&x->env);
    }
    lender = x->env;
    lender.engine = NULL;
    if (status == FSDP_OK && !x->env.device) {
        status = x->d->device_engine->open(&lender);
        x->env.device = lender.device;
    }
    if (status == FSDP_OK) {
        const struct fsdp_device *device = x->env.device;
        const struct fsdp_comm *comm = x->env.comm;
        status = recorder_open(&x->env, x->out, &x->recorder);
        if (status == FSDP_OK) {
            if (x->d->wrap) {
                x->d->wrap(&x->env, &x->engine);
            }
            case_options(x->d->c, &x->options);
            process_look(&before);
            status = play(x);
            if (status != FSDP_OK) {
                comm->abort(comm->self, status);
            }
            process_look(&after);
            end_of_run(x);
            recorder_close(x->recorder);
        }
        if (x->d->look_at_process && status == FSDP_OK) {
            struct record_memory *m = &x->out->memory;
            m->process_growth = after.peak_bytes > before.resident_bytes
                                    ? after.peak_bytes - before.resident_bytes
                                    : 0;
            m->new_channels = after.channels > before.channels
                                  ? after.channels - before.channels
                                  : 0;
        }
        x->env.device = device;
        x->env.comm = comm;
    }
    if (lender.engine) {
        x->d->device_engine->close(&lender);
        x->env.device = NULL;
    }
    if (x->d->engine->close) {
        x->d->engine->close(&x->env);
    }
    free(x->lent);
    return status;
}

static int write_record(const struct drive *d, uint32_t rank, int status,
                        const struct fsdp_error *why, double seconds,
                        struct record_rank *out)
{
    struct fsdp_error error = {0};

    out->status = status;
    out->error = *why;
    out->seconds = seconds;
    if (out->error.status == FSDP_OK && status != FSDP_OK) {
        out->error.status = status;
        snprintf(out->error.message, sizeof out->error.message, "%s",
                 fsdp_status_text(status));
    }
    record_sort(out);
    return d->directory ? record_write_rank(d->directory, rank, out, &error)
                        : FSDP_OK;
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int drive_rank(void *context, struct world_rank *rank)
{
    const struct drive *d = context;
    struct record_rank out = {0};
    struct driver x = {.d = d, .out = &out};
    double began = now();
    int status = make_record(d->c, &out);
    int written;

    if (d->look_at_process) {
        mallopt(M_MMAP_THRESHOLD, 128 * 1024); /* freed memory goes back */
    }
    make_env(&x, rank);
    if (status == FSDP_OK) {
        status = with_engine(&x, live);
    }
    if (status != FSDP_OK) {
        rank->comm.abort(rank->comm.self, status);
    }
    written =
        write_record(d, rank->rank, status, rank->error, now() - began, &out);
    record_rank_release(&out);
    return status != FSDP_OK ? status : written;
}

/* ---- All ranks, one after the other ------------------------------------ */

/* Every rank's microbatches, then one step. Rank 0's record has what all have
 * in common. */
static int live_serial(struct driver *x)
{
    const struct run_case *c = x->d->c;
    struct record_rank *all = x->out;

    FSDP_TRY(shard(x));
    FSDP_TRY(open_run(x));
    for (x->step = 0; x->step < c->steps; x->step++) {
        x->recording = x->step < c->recorded_steps;
        for (uint32_t r = 0; r < c->ranks; r++) {
            x->env.rank = r;
            x->out = &all[r];
            FSDP_TRY(microbatches(x));
        }
        x->env.rank = 0;
        x->out = all;
        FSDP_TRY(optimize(x));
        for (uint32_t r = 0; r < c->ranks; r++) {
            x->env.rank = r;
            x->out = &all[r];
            FSDP_TRY(evaluate(x));
        }
        x->env.rank = 0;
        x->out = all;
        FSDP_TRY(end_step(x));
        for (uint32_t r = 1; r < c->ranks; r++) {
            all[r].n_steps = all->n_steps;
        }
    }
    return end_life(x);
}

int drive_serial(void *context, struct world_rank *rank)
{
    const struct drive *d = context;
    struct record_rank *all = calloc(d->c->ranks, sizeof *all);
    struct driver x = {.d = d, .out = all};
    double began = now();
    int status = all ? FSDP_OK : FSDP_ERR_NOMEM;
    int written = FSDP_OK;

    for (uint32_t r = 0; all && r < d->c->ranks; r++) {
        status = status != FSDP_OK ? status : make_record(d->c, &all[r]);
    }
    if (status == FSDP_OK) {
        make_env(&x, rank);
        x.env.rank = 0;
        status = with_engine(&x, live_serial);
    }
    for (uint32_t r = 0; all && r < d->c->ranks; r++) {
        int s = write_record(d, r, status, rank->error, now() - began, &all[r]);
        written = written != FSDP_OK ? written : s;
        record_rank_release(&all[r]);
    }
    free(all);
    return status != FSDP_OK ? status : written;
}
