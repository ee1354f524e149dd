/* SPDX-License-Identifier: Apache-2.0 */
/*
 * play_offer.c - models that are offered to be sharded in a way that must be
 * refused.
 */
#include "run/play/offer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether the message has the number of a unit of the last parameter's
 * module. */
static bool names_unit(const struct driver *x)
{
    const uint32_t p = x->model->n_parameters - 1;
    const uint32_t unit[] = {
        fsdp_unit_of(x->model, x->units, p),
        x->units->unit_of_module[x->model->parameter_module[p]]};

    return play_says_number(x->env.error, unit[0]) ||
           play_says_number(x->env.error, unit[1]);
}

/* Sharding succeeds here; it is the step of a pass that must be refused. */
static int offer_step(struct driver *x, const char *name,
                      struct fsdp_sharded *sharded)
{
    const float lr[SCRIPT_MAX_GROUPS] = {x->d->c->lr};
    const struct fsdp_step step = {
        .size = sizeof(step), .n_groups = x->options.n_groups, .lr = lr};
    const int status = x->engine.set_step(sharded, &step);
    const bool named = status == FSDP_OK || names_unit(x);

    FSDP_TRY(drive_answer(x, name, status));
    return drive_answer_number(x, "backward-step-unit", named);
}

/* Shards, asks for the answer, destroys. */
static int shard(struct driver *x, const char *name, struct offer *o)
{
    /* If the engine does not set it, destroy is given this. */
    struct fsdp_sharded *sharded = (struct fsdp_sharded *)(void *)x;
    const struct fsdp_error *e = x->env.error;
    int status;
    bool unnamed = false;
    bool untied = false;

    o->mesh.extent = o->extent;
    o->env.mesh = &o->mesh;
    o->units.unit_of_module = o->of_module;
    o->units.size = sizeof(o->units);
    o->model.parameter_flags = o->flags;
    o->model.parameter_alias = o->alias;
    o->model.parameter_shape = (const uint64_t(*)[FSDP_MAX_DIMS])o->shape;
    o->model.parameter_n_dims = o->n_dims;
    o->model.parameter_dtype = o->dtype;
    status =
        x->engine.shard(&o->env, &o->model, &o->units, &o->options, &sharded);
    unnamed = status != FSDP_OK && o->option && !play_says(e, o->option);
    for (uint32_t i = 0; i < 2 && status != FSDP_OK && o->tied[i]; i++) {
        untied = untied || !play_says(e, o->tied[i]);
    }
    if (status == FSDP_OK && o->trains.n > 0) {
        status = offer_step(x, name, sharded);
        x->engine.destroy(sharded);
        return status;
    }
    x->engine.destroy(sharded);
    FSDP_TRY(drive_answer(x, name, status));
    if (untied) {
        FSDP_TRY(drive_answer(x, "unnamed-tie", FSDP_OK));
    }
    return unnamed ? drive_answer(x, "unnamed-option", FSDP_OK) : FSDP_OK;
}

/* Adds the answer as if the offer had been refused. */
static int add_unread(struct driver *x, const char *name)
{
    *x->env.error = (struct fsdp_error){.status = FSDP_ERR_UNSUPPORTED,
                                        .rank = (int32_t)x->env.rank,
                                        .where = "driver",
                                        .message = "built before it was"};
    return drive_answer(x, name, FSDP_ERR_UNSUPPORTED);
}

/* Copies an array of the model that an offer may change: n elements of `size`
 * bytes. */
static void *copy(const void *from, uint64_t n, size_t size)
{
    void *to = malloc(n * size + 1);

    if (to) {
        memcpy(to, from, n * size);
    }
    return to;
}

/* Whether the engine was built before models had buffers: then it is not asked
 * to refuse them. */
static bool is_too_old(const struct driver *x, uint32_t call)
{
    return call == SCRIPT_CALL_UNCLAIMED_BUFFERS &&
           x->engine.size <
               offsetof(struct fsdp_engine, buffer) + sizeof(x->engine.buffer);
}

static int refuse_for(struct driver *x, uint32_t call)
{
    *x->env.error =
        (struct fsdp_error){.status = FSDP_ERR_UNSUPPORTED,
                            .rank = (int32_t)x->env.rank,
                            .where = "driver",
                            .message = "the engine has no `buffer`"};
    return drive_answer(x, script_calls[call].name, FSDP_ERR_UNSUPPORTED);
}

/* Whether the engine reads what is wrong: one that was built before there were
 * units of parameters reads none, and one from before `assign` calls an
 * `initial` that is NULL. */
static bool reads_it(const struct driver *x, uint32_t call)
{
    if (call == SCRIPT_CALL_UNCLAIMED_DEFERRED) {
        return x->engine.size > offsetof(struct fsdp_engine, assign);
    }
    return x->engine.size > offsetof(struct fsdp_engine, reshard) ||
           (call != SCRIPT_CALL_UNCLAIMED_PARAMETER_UNITS &&
            call != SCRIPT_CALL_UNCLAIMED_IGNORED &&
            call != SCRIPT_CALL_TIED_TO_IGNORED &&
            call != SCRIPT_CALL_PARAMETER_UNIT_OUT_OF_RANGE);
}

/* Puts the fault of this call into the offer. */
static void spoil(struct driver *x, uint32_t call, struct offer *o)
{
    offer_change *const change = offer_ties[call]    ? offer_ties[call]
                                 : offer_model[call] ? offer_model[call]
                                                     : offer_disagree[call];

    if (!offer_number(x, call, o)) {
        change(x, o);
    }
}

static bool is_whole(const struct offer *o)
{
    return o->flags && o->alias && o->shape && o->n_dims && o->dtype &&
           o->of_module && o->of_parameter && o->unit_of && o->of_unit &&
           o->buffer && o->point && o->module;
}

static void release_offer(struct offer *o)
{
    free(o->flags);
    free(o->alias);
    free(o->shape);
    free(o->n_dims);
    free(o->dtype);
    free(o->of_module);
    free(o->of_parameter);
    free(o->unit_of);
    free(o->of_unit);
    free(o->buffer);
    free(o->point);
    free(o->module);
}

int play_offer(struct driver *x, uint32_t call)
{
    const struct fsdp_model *m = x->model;
    const uint32_t n = m->n_parameters;
    const uint32_t trained = m->sequence[FSDP_SEQUENCE_TRAIN]->n;
    struct offer o = {
        .env = x->env,
        .mesh = x->mesh,
        .extent = {x->extent[0], x->extent[1]},
        .model = *m,
        .units = *x->units,
        .flags = copy(m->parameter_flags, n, sizeof(*o.flags)),
        .alias = copy(m->parameter_alias, n, sizeof(*o.alias)),
        .shape = copy(m->parameter_shape, n, sizeof(*o.shape)),
        .n_dims = copy(m->parameter_n_dims, n, sizeof(*o.n_dims)),
        .dtype = copy(m->parameter_dtype, n, sizeof(*o.dtype)),
        .of_module =
            copy(x->units->unit_of_module, m->n_modules, sizeof(*o.of_module)),
        .of_parameter = calloc(n, sizeof(*o.of_parameter)),
        .unit_of = calloc(n, sizeof(*o.unit_of)),
        .of_unit = calloc(x->units->n_units + 1u, sizeof(*o.of_unit)),
        .buffer = copy(m->buffer_name, m->n_buffers, sizeof(*o.buffer)),
        .point = calloc(trained + 4u, sizeof(*o.point)),
        .module = calloc(trained + 4u, sizeof(*o.module)),
        .options = x->options};
    int status = FSDP_ERR_NOMEM;

    for (uint32_t p = 0; o.unit_of && p < n; p++) {
        o.unit_of[p] = fsdp_unit_of(m, x->units, p);
    }
    if (call == SCRIPT_CALL_BACKWARD_STEP_WINDOWS && !x->engine.set_step) {
        status = FSDP_OK; /* there is nothing to offer */
    } else if (is_too_old(x, call)) {
        status = refuse_for(x, call);
    } else if (!reads_it(x, call)) {
        status = add_unread(x, script_calls[call].name);
    } else if (is_whole(&o)) {
        spoil(x, call, &o);
        status = shard(x, script_calls[call].name, &o);
    }
    release_offer(&o);
    return status;
}
