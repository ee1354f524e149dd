/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drive_told.c - what the driver tells the engine, and is told, beside the
 * calls of a case: what ranks exchange out of band, the model as the engine
 * sees it, and what lies below the recorder. And why a run ended, where the
 * engine did not say so, or did not say where.
 */
#include "run/play/drive.h"
#include "run/witness/crossing.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Out of band --------------------------------------------------------- */

/* An exchange is no collective, and a step needs none. */
static int count_exchange(void *self, const void *mine, uint64_t bytes,
                          void *all)
{
    struct driver *x = self;
    int status;

    x->exchanges += x->living && !x->ended && !x->asks;
    status = x->exchange(x->exchange_self, mine, bytes, all);
    if (status == FSDP_OK && x->d->crossing) {
        crossing_exchange(x->d->crossing, bytes);
    }
    if (status == FSDP_ERR_MISMATCH && x->d->crossing) {
        crossing_mismatch(x->d->crossing);
    }
    return status;
}

void drive_count_exchanges(struct driver *x, const struct world_rank *rank)
{
    x->exchange = rank->exchange;
    x->exchange_self = rank->exchange_self;
    x->env.exchange = count_exchange;
    x->env.exchange_self = x;
}

int drive_exchange(struct driver *x, const void *mine, uint64_t bytes,
                   void *all)
{
    int status;

    x->asks = true;
    status = x->env.exchange(x->env.exchange_self, mine, bytes, all);
    x->asks = false;
    return status;
}

void drive_look_below(struct driver *x)
{
    struct fsdp_env below = x->env;

    if (x->d->crossing && x->env.comm != x->world_comm) {
        crossing_own(x->d->crossing);
    }
    if (x->d->mutant && x->d->mutate_below) {
        below.exchange = x->exchange;
        below.exchange_self = x->exchange_self;
        x->d->mutate_below(x->d->mutant, &below);
        x->env.comm = below.comm;
    }
}

/* ---- The engine is told -------------------------------------------------- */

/* Frozen parameters never change, so that one which is not loaded would have
 * the right bits all the same: in a life that begins with a load they begin
 * with none. */
static bool begins_empty(const struct driver *x, uint32_t p)
{
    return x->reborn && !x->serial &&
           (x->model->parameter_flags[p] & FSDP_FROZEN) != 0;
}

/* Calls the model's own `initial`; if it is INVALID, says what was asked
 * for. */
static int initial(void *context, uint32_t p, uint64_t first, uint64_t n,
                   void *out)
{
    struct driver *x = context;
    const struct fsdp_model *model = x->model;
    struct fsdp_error *e = x->env.error;
    int status = p < model->n_parameters && x->ignored[p]
                     ? FSDP_ERR_INVALID /* the engine must not ask for it */
                     : model->initial(model->context, p, first, n, out);

    for (uint64_t i = 0; status == FSDP_OK && begins_empty(x, p) && i < n;
         i++) {
        ((float *)out)[i] = NAN;
    }
    if (status != FSDP_ERR_INVALID || e->status != FSDP_OK) {
        return status;
    }
    e->status = status;
    e->rank = (int32_t)x->env.rank;
    snprintf(e->where, sizeof(e->where), "model");
    if (p < model->n_parameters && x->ignored[p]) {
        snprintf(e->message, sizeof(e->message),
                 "initial: %.80s is ignored, and the model's own",
                 model->parameter_name[p]);
    } else if (p < model->n_parameters) {
        snprintf(e->message, sizeof(e->message),
                 "initial: %" PRIu64 " elements of %.80s from %" PRIu64
                 " on, but it has %" PRIu64,
                 n, model->parameter_name[p], first, fsdp_numel(model, p));
    } else {
        snprintf(e->message, sizeof(e->message),
                 "initial: parameter %" PRIu32 " of %" PRIu32, p,
                 model->n_parameters);
    }
    return status;
}

/* Persisted buffers begin with other values in a life that begins with a load,
 * so that one which is not loaded has the wrong bits. */
static int initial_buffer(void *context, uint32_t b, uint64_t first, uint64_t n,
                          void *out)
{
    struct driver *x = context;
    const struct fsdp_model *model = x->model;
    const int status = model->initial_buffer(model->context, b, first, n, out);

    if (status == FSDP_OK && x->reborn && !x->serial &&
        (model->buffer_flags[b] & FSDP_NOT_PERSISTED) == 0) {
        memset(out, 0, n * fsdp_dtype_bytes(model->buffer_dtype[b]));
    }
    return status;
}

/* Whether this rank has initial values; a serial run always has. */
static bool has_values(const struct driver *x)
{
    const struct script *s = x->d->script;

    return x->serial || !(s->deferred || (s->rank0 && x->env.rank > 0));
}

void drive_tell_model(struct driver *x)
{
    x->told = *x->model;
    x->told.initial = has_values(x) ? initial : NULL;
    x->told.initial_buffer = x->model->initial_buffer ? initial_buffer : NULL;
    x->told.context = x;
    if (x->renamed > 0) {
        x->told.parameter_name = x->names;
    }
}

int drive_tell_trained(struct driver *x)
{
    const size_t n = x->model->n_parameters;

    if (memcmp(x->flags, x->model->parameter_flags, n * sizeof(*x->flags)) ==
        0) {
        return FSDP_OK;
    }
    memcpy(x->flags, x->model->parameter_flags, n * sizeof(*x->flags));
    return wire_change(&x->wire, x->units, x->d->c->layout);
}

void drive_forget_names(struct driver *x)
{
    for (uint32_t i = 0; i < SCRIPT_MAX_SLOTS; i++) {
        free(x->saved_names[i]);
        x->saved_names[i] = NULL;
    }
    free(x->name);
    free(x->names);
    x->name = NULL;
    x->names = NULL;
}

static void place_words(const struct driver *x, char out[128])
{
    const struct fsdp_model *model = x->model;
    const char *point = race_point_name(x->point);
    bool of_module =
        x->point >= FSDP_PRE_FORWARD && x->point <= FSDP_POST_RECOMPUTE;
    const char *name = of_module && x->index < model->n_modules
                           ? model->module_name[x->index]
                           : "";

    if (x->point == RACE_AT_SHARD) {
        snprintf(out, 128, "; in shard");
    } else if (of_module) {
        snprintf(out, 128, "; at step %" PRIu32 ", %s of %.60s", x->step, point,
                 name[0] ? name : "the root");
    } else {
        snprintf(out, 128, "; at step %" PRIu32 ", %s", x->step, point);
    }
}

void drive_tell_end(const struct driver *x, int status, struct fsdp_error *e)
{
    char words[128];
    size_t n;

    if (status == FSDP_OK) {
        return;
    }
    if (e->status == FSDP_OK) {
        e->status = status;
        e->rank = (int32_t)x->env.rank;
    }
    if (!e->message[0]) {
        snprintf(e->message, sizeof(e->message), "env->error was left empty");
    }
    place_words(x, words);
    n = strnlen(e->message, sizeof(e->message));
    if (n + strlen(words) < sizeof(e->message)) {
        memcpy(e->message + n, words, strlen(words) + 1);
    }
}
