/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drive_wrong.c - calls that an engine must refuse, and what it answered. The
 * run goes on after them: a refusal changes nothing.
 */
#include "run/drive.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int add_answer(struct record_rank *out, const char *name, int status)
{
    struct record_answer *grown =
        realloc(out->answer, (out->n_answers + 1u) * sizeof(*grown));

    if (!grown) {
        return FSDP_ERR_NOMEM;
    }
    out->answer = grown;
    grown += out->n_answers++;
    memset(grown, 0, sizeof(*grown));
    strncpy(grown->name, name, sizeof(grown->name) - 1);
    grown->status = status;
    return FSDP_OK;
}

int drive_answer(struct driver *x, const char *name, int status)
{
    struct fsdp_error *e = x->env.error;
    bool silent = status != FSDP_OK &&
                  (e->status != status || e->rank != (int32_t)x->env.rank ||
                   !record_is_text(e->where, sizeof(e->where)) ||
                   !record_is_text(e->message, sizeof(e->message)));

    /* A refusal was asked for: it is not how the run ends. */
    *e = (struct fsdp_error){0};
    FSDP_TRY(add_answer(x->out, name, status));
    return silent ? add_answer(x->out, "said-nothing", status) : FSDP_OK;
}

int drive_answer_number(struct driver *x, const char *name, uint64_t number)
{
    return add_answer(x->out, name,
                      number < INT32_MAX ? (int)number : INT32_MAX);
}

static void ignore_piece(void *context, const struct fsdp_piece *piece)
{
    (void)context;
    (void)piece;
}

int drive_ask_all(struct driver *x, int (*ask)(struct fsdp_sharded *, uint32_t,
                                               struct fsdp_tensor *))
{
    struct fsdp_tensor t;
    int status = FSDP_ERR_INVALID;

    for (uint32_t p = 0;
         p < x->model->n_parameters && status == FSDP_ERR_INVALID; p++) {
        status = ask(x->sharded, p, &t);
    }
    return status;
}

int drive_wrong_at_rest(struct driver *x)
{
    const struct fsdp_engine *e = &x->engine;
    const struct fsdp_model *model = x->model;
    const float lr[2] = {x->d->c->lr, x->d->c->lr};
    struct fsdp_step groups = {.size = sizeof(groups), .n_groups = 2, .lr = lr};
    struct fsdp_tensor t;

    FSDP_TRY(drive_answer(x, "point-before-begin",
                          e->at(x->sharded, model->sequence[0]->point[0],
                                model->sequence[0]->module[0])));
    FSDP_TRY(drive_answer(x, "param-at-rest", e->param(x->sharded, 0, &t)));
    FSDP_TRY(drive_answer(x, "grad-at-rest", e->grad(x->sharded, 0, &t)));
    FSDP_TRY(
        drive_answer(x, "cancel-at-rest", e->at(x->sharded, FSDP_CANCEL, 0)));
    FSDP_TRY(drive_answer(x, "end-at-rest", e->at(x->sharded, FSDP_END, 0)));
    FSDP_TRY(drive_answer(x, "unknown-sequence",
                          e->at(x->sharded, FSDP_BEGIN, model->n_sequences)));
    FSDP_TRY(drive_answer(x, "step-groups", e->step(x->sharded, &groups)));
    return drive_answer(x, "unknown-parameter",
                        e->param(x->sharded, model->n_parameters, &t));
}

/* The training sequence has begun; no point of it has been passed. */
static int wrong_after_begin(struct driver *x)
{
    const struct fsdp_engine *e = &x->engine;
    const struct fsdp_model *model = x->model;
    struct fsdp_step step = {
        .size = sizeof(step), .n_groups = 1, .lr = &x->d->c->lr};

    FSDP_TRY(drive_answer(x, "begin-twice", e->at(x->sharded, FSDP_BEGIN, 0)));
    FSDP_TRY(drive_answer(x, "step-in-pass", e->step(x->sharded, &step)));
    FSDP_TRY(drive_answer(x, "pieces-in-pass",
                          e->pieces(x->sharded, ignore_piece, NULL)));
    FSDP_TRY(drive_answer(x, "end-early", e->at(x->sharded, FSDP_END, 0)));
    FSDP_TRY(drive_answer(x, "point-out-of-order",
                          e->at(x->sharded, FSDP_POST_BACKWARD, 0)));
    FSDP_TRY(
        drive_answer(x, "unknown-module",
                     e->at(x->sharded, FSDP_PRE_FORWARD, model->n_modules)));
    if (e->unshard_all) {
        FSDP_TRY(
            drive_answer(x, "unshard-all-in-pass", e->unshard_all(x->sharded)));
    }
    return FSDP_OK;
}

/* i points of the training sequence have been passed. */
int drive_wrong_in_pass(struct driver *x, uint32_t i)
{
    struct fsdp_tensor t;

    if (i == 0) {
        return wrong_after_begin(x);
    }
    if (i != 1) {
        return FSDP_OK;
    }
    /* The first unit is unsharded now: nothing else refuses it. */
    FSDP_TRY(
        drive_answer(x, "unknown-parameter",
                     x->engine.param(x->sharded, x->model->n_parameters, &t)));
    return drive_answer(x, "grad-in-forward",
                        x->engine.grad(x->sharded, 0, &t));
}

/* All points have been passed: only END may follow. */
int drive_wrong_before_end(struct driver *x, const struct fsdp_sequence *q)
{
    const struct fsdp_engine *e = &x->engine;

    FSDP_TRY(drive_answer(
        x, "point-after-last",
        e->at(x->sharded, q->point[q->n - 1], q->module[q->n - 1])));
    FSDP_TRY(drive_answer(x, "end-of-another",
                          e->at(x->sharded, FSDP_END, FSDP_SEQUENCE_EVAL)));
    return drive_answer(x, "grad-after-backward", drive_ask_all(x, e->grad));
}

int drive_wrong_step(struct driver *x)
{
    struct fsdp_step step = {
        .size = sizeof(step), .n_groups = 1, .lr = &x->d->c->lr};

    return drive_answer(x, "step-with-pending",
                        x->engine.step(x->sharded, &step));
}

/* Shards with something wrong, asks for the answer, destroys. */
static int offer(struct driver *x, const char *name, const struct fsdp_env *env,
                 const struct fsdp_units *units,
                 const struct fsdp_options *options)
{
    /* What an engine that does not set it would have destroyed. */
    struct fsdp_sharded *sharded = (struct fsdp_sharded *)(void *)x;
    int status = x->engine.shard(env, x->model, units, options, &sharded);

    x->engine.destroy(sharded);
    return drive_answer(x, name, status);
}

/* Options whose refusal must say which one it was. */
static int offer_named(struct driver *x, const char *name, const char *option,
                       const struct fsdp_options *options)
{
    struct fsdp_sharded *sharded = (struct fsdp_sharded *)(void *)x;
    int status =
        x->engine.shard(&x->env, x->model, x->units, options, &sharded);
    const struct fsdp_error *e = x->env.error;
    bool unnamed = status != FSDP_OK && memmem(e->message, sizeof(e->message),
                                               option, strlen(option)) == NULL;

    x->engine.destroy(sharded);
    FSDP_TRY(drive_answer(x, name, status));
    return unnamed ? drive_answer(x, "unnamed-option", FSDP_OK) : FSDP_OK;
}

/* Further ahead than there are units. */
static int offer_ahead(struct driver *x)
{
    const uint32_t beyond = x->units->n_units + 1;
    struct fsdp_options o = x->options;

    o.prefetch_forward = beyond;
    FSDP_TRY(offer_named(x, "prefetch-forward-beyond", "prefetch_forward", &o));
    o = x->options;
    o.prefetch_backward = beyond;
    FSDP_TRY(
        offer_named(x, "prefetch-backward-beyond", "prefetch_backward", &o));
    o = x->options;
    o.reduces_in_flight = beyond;
    return offer_named(x, "reduces-beyond", "reduces_in_flight", &o);
}

static int offer_units(struct driver *x)
{
    const struct fsdp_units *good = x->units;
    uint32_t n = x->model->n_modules;
    struct fsdp_units units = *good;
    uint32_t *wrong = malloc(n * sizeof(*wrong));
    int status;

    if (!wrong) {
        return FSDP_ERR_NOMEM;
    }
    memcpy(wrong, good->unit_of_module, n * sizeof(*wrong));
    wrong[n - 1] = good->n_units + 7;
    units.unit_of_module = wrong;
    status = offer(x, "unit-out-of-range", &x->env, &units, &x->options);
    free(wrong);
    return status;
}

static int offer_mesh(struct driver *x)
{
    uint32_t extent[2] = {x->extent[0] + 1, x->extent[1]};
    struct fsdp_mesh mesh = x->mesh;
    struct fsdp_env env = x->env;

    mesh.extent = extent;
    env.mesh = &mesh;
    FSDP_TRY(offer(x, "mesh-does-not-divide", &env, x->units, &x->options));
    extent[0] = x->extent[0];
    extent[1] = x->extent[1] + 1;
    return offer(x, "shards-do-not-divide", &env, x->units, &x->options);
}

static int offer_groups(struct driver *x)
{
    uint32_t n = x->model->n_parameters;
    uint32_t *group = calloc(n, sizeof(*group));
    struct fsdp_options o = x->options;
    int status;

    if (!group) {
        return FSDP_ERR_NOMEM;
    }
    group[n - 1] = 2;
    o.n_groups = 2;
    o.group_of_parameter = group;
    status = offer(x, "group-out-of-range", &x->env, x->units, &o);
    free(group);
    return status;
}

int drive_options(struct driver *x)
{
    const struct fsdp_units *units = x->units;
    struct fsdp_options o = x->options;

    o.layout = 99;
    FSDP_TRY(offer(x, "unknown-layout", &x->env, units, &o));
    o = x->options;
    o.optimizer = 99;
    FSDP_TRY(offer(x, "unknown-optimizer", &x->env, units, &o));
    o = x->options;
    o.fold = 99;
    FSDP_TRY(offer(x, "unknown-fold", &x->env, units, &o));
    o = x->options;
    o.divide_factor = -2.0f;
    FSDP_TRY(offer(x, "negative-divide-factor", &x->env, units, &o));
    o.divide_factor = NAN;
    FSDP_TRY(offer(x, "nan-divide-factor", &x->env, units, &o));
    o = x->options;
    o.param_dtype = FSDP_DTYPE_BF16;
    FSDP_TRY(offer(x, "unclaimed-dtype", &x->env, units, &o));
    FSDP_TRY(offer_units(x));
    FSDP_TRY(offer_groups(x));
    FSDP_TRY(offer_ahead(x));
    return offer_mesh(x);
}

/* Rank 0 wraps its last two units as one. */
static int disagree_on_units(struct driver *x)
{
    const struct fsdp_units *good = x->units;
    uint32_t n = x->model->n_modules;
    struct fsdp_units units = *good;
    uint32_t *unit = malloc(n * sizeof(*unit));
    int status;

    if (!unit) {
        return FSDP_ERR_NOMEM;
    }
    memcpy(unit, good->unit_of_module, n * sizeof(*unit));
    if (x->env.rank == 0 && good->n_units > 1) {
        units.n_units--;
        for (uint32_t m = 0; m < n; m++) {
            unit[m] = unit[m] == units.n_units ? units.n_units - 1 : unit[m];
        }
    }
    units.unit_of_module = unit;
    status = offer(x, "shard-units", &x->env, &units, &x->options);
    free(unit);
    return status;
}

int drive_disagree(struct driver *x)
{
    struct fsdp_options o = x->options;

    if (x->env.rank == 0) {
        o.fold = o.fold == FSDP_FOLD_RANK ? FSDP_FOLD_RING : FSDP_FOLD_RANK;
    }
    FSDP_TRY(offer(x, "shard", &x->env, x->units, &o));
    return disagree_on_units(x);
}
