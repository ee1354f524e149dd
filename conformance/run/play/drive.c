/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drive.c - plays one case on one rank. It makes record, environment, engine
 * and device, plays the script (play.c), gives everything back, and writes the
 * record, whatever happened.
 */
#include "run/play/drive.h"
#include "judge/oracle/expect.h"
#include "run/process/process.h"
#include "run/witness/call_guard.h"
#include "run/witness/crossing.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int make_record(const struct drive *d, uint32_t rank,
                       struct record_rank *out)
{
    const struct run_case *const c = d->c;
    size_t losses = (size_t)c->steps * case_losses_a_step(c) + 1;

    out->present = true;
    out->unsampled = !record_is_drawn(c, d->sample, rank);
    out->sequence = calloc(1, sizeof(*out->sequence)); /* nothing was sent */
    out->n_sequences = out->sequence != NULL;
    out->loss = calloc(losses, sizeof(*out->loss));
    out->other_loss = calloc(losses, sizeof(*out->other_loss));
    out->step_sequence = calloc(c->steps + 1u, sizeof(*out->step_sequence));
    out->memory.after_step =
        calloc(c->steps + 1u, sizeof(*out->memory.after_step));
    out->memory.allocations =
        calloc(c->steps + 1u, sizeof(*out->memory.allocations));
    out->memory.launches = calloc(c->steps + 1u, sizeof(*out->memory.launches));
    out->memory.hosted = calloc(c->steps + 1u, sizeof(*out->memory.hosted));
    return out->sequence && out->loss && out->other_loss &&
                   out->step_sequence && out->memory.after_step &&
                   out->memory.allocations && out->memory.launches &&
                   out->memory.hosted
               ? FSDP_OK
               : FSDP_ERR_NOMEM;
}

static struct driver driver_of(const struct drive *d, struct record_rank *out)
{
    return (struct driver){.d = d,
                           .model = &d->model->model->model,
                           .units = &d->model->units.units,
                           .workload = d->model->model->workload,
                           .by_action = case_is_script(d->c),
                           .out = out};
}

static void make_env(struct driver *x, struct world_rank *rank)
{
    static const char *const names[] = {"replicate", "shard"};
    const struct run_case *c = x->d->c;

    x->rank = rank->rank;
    x->alone = rank->world == 1;
    x->extent[FSDP_DIM_REPLICATE] = c->replicas;
    x->extent[FSDP_DIM_SHARD] = case_shard_degree(c);
    x->mesh = (struct fsdp_mesh){sizeof(x->mesh), 2, names, x->extent};
    x->env = (struct fsdp_env){.size = sizeof(x->env),
                               .rank = rank->rank,
                               .world = c->ranks,
                               .mesh = &x->mesh,
                               .comm = &rank->comm,
                               .error = &x->error};
    x->world_comm = &rank->comm;
    drive_count_exchanges(x, rank);
    x->shared = rank->shared;
    x->shared_bytes = rank->shared_bytes;
}

/* Opens the engine's own device and communicator, or the suite's device; beside
 * it the host, as a second device; and the model's stream. `lender` lends
 * devices to an engine that has none. */
static int open_engine(struct driver *x, struct fsdp_env *lender)
{
    const bool records = x->d->purpose == DRIVE_TO_RECORD;
    int status = FSDP_OK;

    call_guard_begin(records ? x->out : NULL,
                     records && x->d->loading ? x->d->loading : "",
                     x->d->own_process);
    x->engine = *x->d->engine;
    if (x->engine.open) {
        status = x->engine.open(&x->env);
        call_guard_look("open");
    }
    *lender = x->env;
    lender->engine = NULL;
    x->own_device =
        x->env.device && x->engine.open != x->d->device_engine->open;
    if (status == FSDP_OK && !x->env.device) {
        status = x->d->device_engine->open(lender);
        x->env.device = lender->device;
        x->env.host = x->env.host ? x->env.host : lender->host;
    }
    if (status == FSDP_OK && !x->env.compute) {
        status = x->env.device->stream_open(x->env.device->self, "compute",
                                            &x->compute);
        x->env.compute = x->compute;
    }
    return status;
}

static void close_engine(struct driver *x, struct fsdp_env *lender)
{
    if (x->env.device && x->compute) {
        x->env.device->stream_close(x->env.device->self, x->compute);
    }
    if (lender->engine) {
        x->d->device_engine->close(lender);
        x->env.device = NULL;
        x->env.host = NULL;
    }
    if (x->d->engine->close) {
        x->d->engine->close(&x->env);
        call_guard_look("close");
    }
}

void drive_place(struct driver *x, uint32_t point, uint32_t index)
{
    if (point != RACE_AT_DESTROY) { /* a run has ended before that, and its
                                       place is kept */
        x->point = point;
        x->index = index;
    }
    call_guard_step(x->step);
    recorder_place(x->recorder, x->step, point, index);
}

/* The wire compares values only if tensors are recorded: a model that is too
 * large for that is too large to be made again here. */
static int watch_wire(struct driver *x)
{
    const struct run_case *c = x->d->c;
    int status;

    if (x->d->without_values || x->d->purpose != DRIVE_TO_RECORD) {
        return FSDP_OK;
    }
    status = wire_make(&x->now, x->units, c->layout, x->extent[FSDP_DIM_SHARD],
                       c->recorded_steps > 0, &x->wire);

    if (status == FSDP_OK) {
        recorder_watch(x->recorder, &x->wire);
    }
    if (status == FSDP_OK && x->d->crossing && !x->serial &&
        x->env.device->place == FSDP_PLACE_HOST) {
        status = witness_make(&x->wire, x->units,
                              x->rank % x->extent[FSDP_DIM_SHARD], &x->witness);
    }
    return status;
}

/* A trace is for people: that it could not be written is no failure. */
static void write_trace(struct driver *x)
{
    char path[4096];
    const struct case_model *m = x->d->model;
    struct expect e = {0};
    int n = snprintf(path, sizeof(path), "%s/rank-%u.trace.partial",
                     x->d->own ? x->d->own : x->d->directory, x->env.rank);
    const bool known =
        expect_make_idle(x->d->c, &m->model->model, &m->units.units,
                         m->model->idle, &e) == FSDP_OK;

    if (n > 0 && (size_t)n < sizeof(path)) {
        (void)recorder_write_trace(x->recorder, known ? &e : NULL, path);
    }
    expect_release(&e);
}

/* Watches races and flights, and times for a trace; nothing if nothing is
 * recorded. */
static int watch_streams(struct driver *x)
{
    if (x->d->purpose != DRIVE_TO_RECORD) {
        recorder_hold_nothing(x->recorder);
        return FSDP_OK;
    }
    if (x->serial) {
        return FSDP_OK;
    }
    FSDP_TRY(recorder_watch_races(x->recorder));
    recorder_watch_flights(x->recorder, x->d->c->steps - 1);
    return x->d->trace ? recorder_watch_time(x->recorder) : FSDP_OK;
}

/* Plays the case between recorder and mutant; other ranks learn of a failure at
 * once. */
static int play_recorded(struct driver *x)
{
    const struct fsdp_comm *comm = x->env.comm;
    struct process_view before = {0};
    int status;
    int seen;

    drive_look_below(x);
    FSDP_TRY(recorder_open(&x->env, x->out, &x->recorder));
    recorder_cross(x->recorder, x->d->crossing);
    status = watch_wire(x);
    if (status == FSDP_OK) {
        status = watch_streams(x);
    }
    if (x->d->mutant) {
        x->d->mutate(x->d->mutant, &x->env, &x->engine);
    }
    call_guard_wrap(&x->engine);
    case_options(x->d->c, &x->options);
    script_options(x->d->script, &x->options);
    seen = drive_process_begin(x, &before);
    status = status != FSDP_OK ? status : seen;
    if (status == FSDP_OK) {
        status = play_script(x);
    }
    if (status == FSDP_OK) {
        status = recorder_status(x->recorder);
    }
    if (status != FSDP_OK) {
        comm->abort(comm->self, status);
    }
    seen = drive_process_end(x, &before);
    status = status != FSDP_OK ? status : seen;
    play_end_of_run(x);
    drive_process_helpers(x);
    if (x->d->trace && x->d->directory) {
        write_trace(x);
    }
    recorder_close(x->recorder);
    return status;
}

/* All streams have ended. The error of a communicator comes first: the others
 * followed from it. */
static void settle_error(struct driver *x, struct world_rank *rank, int status)
{
    if (rank->error->status == FSDP_OK) {
        *rank->error = x->error;
    }
    drive_tell_end(x, status, rank->error);
}

static void release_rooms(struct driver *x)
{
    for (uint32_t p = 0; x->summoned && p < x->model->n_parameters; p++) {
        free(x->summoned[p]);
    }
    free(x->summoned);
    free(x->lent);
    free(x->flags);
    free(x->ignored);
    free(x->lent_buffer);
}

/* Allocates what the driver keeps for each parameter and buffer. */
static int make_rooms(struct driver *x)
{
    const size_t n = x->model->n_parameters + (size_t)1;

    x->lent = calloc(n, sizeof(*x->lent));
    x->flags = calloc(n, sizeof(*x->flags));
    x->ignored = calloc(n, sizeof(*x->ignored));
    x->lent_buffer = calloc(x->model->n_buffers + 1u, sizeof(*x->lent_buffer));
    x->summoned = calloc(n, sizeof(*x->summoned));
    if (!x->lent || !x->flags || !x->ignored || !x->lent_buffer ||
        !x->summoned) {
        release_rooms(x);
        return FSDP_ERR_NOMEM;
    }
    for (uint32_t p = 0; p < x->model->n_parameters; p++) {
        x->ignored[p] = fsdp_unit_of(x->model, x->units, p) == FSDP_NO_UNIT;
    }
    memcpy(x->flags, x->model->parameter_flags,
           x->model->n_parameters * sizeof(*x->flags));
    x->now = *x->model;
    x->now.parameter_flags = x->flags;
    return FSDP_OK;
}

/* Opens engine and device, plays, and gives everything back. */
static int with_engine(struct driver *x)
{
    struct fsdp_env lender = {.engine = NULL};
    const struct fsdp_device *device;
    const struct fsdp_device *host;
    const struct fsdp_comm *comm;
    int status;

    FSDP_TRY(make_rooms(x));
    status = open_engine(x, &lender);
    device = x->env.device;
    host = x->env.host;
    comm = x->env.comm;
    if (status == FSDP_OK) {
        status = play_recorded(x);
    }
    x->env.device = device; /* the device itself, not the recorder's or the
                               mutant's */
    x->env.host = host;
    x->env.comm = comm;
    close_engine(x, &lender);
    witness_release(&x->witness);
    wire_release(&x->wire);
    drive_forget_names(x);
    release_rooms(x);
    return status;
}

/* Returns the rank's status; or, whatever that was, that its record could not
 * be written, and then *why says so (drive_is_unwritten). */
static int write_record(const struct drive *d, uint32_t rank, int status,
                        struct fsdp_error *why, double seconds,
                        struct record_rank *out)
{
    struct fsdp_error error = {0};

    out->status = status;
    out->error = *why;
    out->seconds = seconds;
    if (out->error.status == FSDP_OK && status != FSDP_OK) {
        out->error.status = status;
        snprintf(out->error.message, sizeof(out->error.message), "%s",
                 fsdp_status_text(status));
    }
    if (d->crossing) {
        if (crossing_end(d->crossing, out, &error) && error.status != FSDP_OK) {
            *why = error;
            return error.status;
        }
        return status; /* if the other end is gone, so is the record */
    }
    record_leave_out(out);
    record_sort(out);
    if (d->directory &&
        record_write_rank(d->directory, rank, out, &error) != FSDP_OK) {
        *why = error;
        return error.status;
    }
    return status;
}

bool drive_is_unwritten(const struct world_result *end)
{
    return end->end == WORLD_RETURNED &&
           (end->status == FSDP_ERR_IO || end->status == FSDP_ERR_NOMEM) &&
           strcmp(end->error.where, RECORD_WRITE_WHERE) == 0;
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
    struct driver x = driver_of(d, &out);
    double began = now();
    int status = make_record(d, rank->rank, &out);

    if (d->look_at_process) {
        mallopt(M_MMAP_THRESHOLD, 128 * 1024); /* freed memory goes back */
    }
    if (d->purpose != DRIVE_TO_RECORD) {
        drive_allocate_tightly();
    }
    make_env(&x, rank);
    if (status == FSDP_OK) {
        status = with_engine(&x);
    }
    settle_error(&x, rank, status);
    if (status != FSDP_OK) {
        rank->comm.abort(rank->comm.self, status);
    }
    status =
        write_record(d, rank->rank, status, rank->error, now() - began, &out);
    if (d->keep) {
        *d->keep = out;
    } else {
        record_rank_release(&out);
    }
    return status;
}

int drive_unloaded(const struct drive *d, struct world_rank *rank,
                   const struct fsdp_error *why)
{
    struct record_rank out = {0};
    int status = make_record(d, rank->rank, &out);

    *rank->error = *why;
    rank->error->rank = (int32_t)rank->rank;
    rank->error->status = status == FSDP_OK ? why->status : status;
    snprintf(rank->error->where, sizeof(rank->error->where), "load");
    rank->comm.abort(rank->comm.self, rank->error->status);
    status = write_record(d, rank->rank, rank->error->status, rank->error, 0.0,
                          &out);
    record_rank_release(&out);
    return status;
}

/* Plays all ranks, one after the other. */
int drive_serial(void *context, struct world_rank *rank)
{
    const struct drive *d = context;
    struct record_rank *all = calloc(d->c->ranks, sizeof(*all));
    struct driver x = driver_of(d, all);
    double began = now();
    int status = all ? FSDP_OK : FSDP_ERR_NOMEM;
    int returned;

    for (uint32_t r = 0; all && r < d->c->ranks; r++) {
        status = status != FSDP_OK ? status : make_record(d, r, &all[r]);
    }
    if (status == FSDP_OK) {
        make_env(&x, rank);
        x.env.rank = 0;
        x.serial = true;
        status = with_engine(&x);
        settle_error(&x, rank, status);
    }
    returned = status;
    for (uint32_t r = 0; all && r < d->c->ranks; r++) {
        if (returned == status) { /* if one could not be written, no other
                                     can */
            returned =
                write_record(d, r, status, rank->error, now() - began, &all[r]);
        }
        record_rank_release(&all[r]);
    }
    free(all);
    return returned;
}
