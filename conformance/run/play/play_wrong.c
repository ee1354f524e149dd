/* SPDX-License-Identifier: Apache-2.0 */
/*
 * play_wrong.c - calls that an engine must refuse; the run goes on after them.
 */
#include "run/play/play.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

static void ignore_piece(void *context, const struct fsdp_piece *piece)
{
    (void)context;
    (void)piece;
}

int play_ask_all(struct driver *x, int (*ask)(struct fsdp_sharded *, uint32_t,
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

/* Whether the module of p is computing its backward. */
static bool in_backward_of(const struct driver *x, uint32_t p)
{
    return x->point == FSDP_PRE_BACKWARD &&
           x->index == x->model->parameter_module[p];
}

/* ---- Calls; *status is what the engine answered ------------------------- */

static int at(struct driver *x, const struct play_wrong *how, int *status)
{
    *status = x->engine.at(x->sharded, how->point, how->index);
    return FSDP_OK;
}

static int at_unknown(struct driver *x, const struct play_wrong *how,
                      int *status)
{
    *status = x->engine.at(x->sharded, how->point,
                           how->point == FSDP_BEGIN ? x->model->n_sequences
                                                    : x->model->n_modules);
    return FSDP_OK;
}

/* The point of the training sequence at `index`, or its last one. */
static int at_place(struct driver *x, const struct play_wrong *how, int *status)
{
    const struct fsdp_sequence *q = x->model->sequence[FSDP_SEQUENCE_TRAIN];
    const uint32_t i = how->index < q->n ? how->index : q->n - 1;

    *status = x->engine.at(x->sharded, q->point[i], q->module[i]);
    return FSDP_OK;
}

static int ask_param(struct driver *x, uint32_t p)
{
    struct fsdp_tensor t;

    return x->engine.param(x->sharded, p, &t);
}

static int ask_grad(struct driver *x, uint32_t p)
{
    struct fsdp_tensor t;

    return x->engine.grad(x->sharded, p, &t);
}

/* Asks for the first parameter, or for one that does not exist. */
static int of_one(struct driver *x, const struct play_wrong *how, int *status)
{
    *status = how->ask(x, how->more > 0 ? x->model->n_parameters : 0);
    return FSDP_OK;
}

static int any_param(struct driver *x, int *status)
{
    *status = play_ask_all(x, x->engine.param);
    return FSDP_OK;
}

static int any_grad(struct driver *x, int *status)
{
    *status = play_ask_all(x, x->engine.grad);
    return FSDP_OK;
}

/* Asks for every parameter that is meant; if none is, for one that does not
 * exist. The refusal has to name the parameter; that of a gradient only if
 * another one would be lent at this point. */
static int of_each(struct driver *x, const struct play_wrong *how, int *status)
{
    struct fsdp_error *e = x->env.error;
    bool any = false;

    *status = FSDP_ERR_INVALID;
    for (uint32_t p = 0;
         p < x->model->n_parameters && *status == FSDP_ERR_INVALID; p++) {
        if (!how->is_meant(x, p)) {
            continue;
        }
        any = true;
        *e = (struct fsdp_error){0};
        *status = how->ask(x, p);
        if (*status != FSDP_OK &&
            (how->ask != ask_grad || in_backward_of(x, p)) &&
            !play_says(e, x->model->parameter_name[p])) {
            FSDP_TRY(drive_answer_number(x, "unnamed-parameter", 0));
        }
    }
    return any ? FSDP_OK
               : of_one(x, &(struct play_wrong){.ask = ask_param, .more = 1},
                        status);
}

static bool is_ignored(const struct driver *x, uint32_t p)
{
    return x->ignored[p] != 0;
}

static bool is_frozen(const struct driver *x, uint32_t p)
{
    return (x->flags[p] & FSDP_FROZEN) != 0;
}

/* Whether the module of p is being recomputed. */
static bool is_recomputed(const struct driver *x, uint32_t p)
{
    return x->point == FSDP_PRE_RECOMPUTE &&
           x->model->parameter_module[p] == x->index;
}

/* Answers for an engine that lacks the function: as if it had refused. */
static int refuse_of(struct driver *x, uint32_t p)
{
    *x->env.error = (struct fsdp_error){.status = FSDP_ERR_INVALID,
                                        .rank = (int32_t)x->env.rank,
                                        .where = "driver"};
    snprintf(x->env.error->message, sizeof(x->env.error->message), "%s",
             x->model->parameter_name[p]);
    return FSDP_ERR_INVALID;
}

static int ask_freeze(struct driver *x, uint32_t p)
{
    return x->engine.set_requires_grad
               ? x->engine.set_requires_grad(x->sharded, p, 1)
               : refuse_of(x, p);
}

static int ask_assign(struct driver *x, uint32_t p)
{
    const float value = 0.0f;

    return x->engine.assign ? x->engine.assign(x->sharded, p, 0, 1, &value)
                            : refuse_of(x, p);
}

static int step(struct driver *x, const struct play_wrong *how, int *status)
{
    const uint32_t n_groups = x->d->script->groups + how->more;
    float lr[SCRIPT_MAX_GROUPS + 1];
    struct fsdp_step step = {.size = sizeof(step),
                             .n_groups = n_groups,
                             .lr = lr,
                             .inverse_scale = how->value};

    for (uint32_t g = 0; g < n_groups; g++) {
        lr[g] = x->d->c->lr;
    }
    *status = x->engine.step(x->sharded, &step);
    return FSDP_OK;
}

static int zero(struct driver *x, int *status)
{
    *status = x->engine.zero_grad(x->sharded);
    return FSDP_OK;
}

/* Calls reshard_all; an engine without it has refused. */
static int reshard_all(struct driver *x, int *status)
{
    *status = x->engine.reshard_all ? x->engine.reshard_all(x->sharded)
                                    : FSDP_ERR_INVALID;
    return FSDP_OK;
}

static int pieces(struct driver *x, int *status)
{
    *status = x->engine.pieces(x->sharded, ignore_piece, NULL);
    return FSDP_OK;
}

static int unshard_all(struct driver *x, int *status)
{
    *status = x->engine.unshard_all(x->sharded);
    return FSDP_OK;
}

/* `as` says why the norm is infinite: an infinity is there, or an inverse scale
 * would make one. */
static int clip(struct driver *x, const struct play_wrong *how, int *status)
{
    const struct fsdp_clip c = {.size = sizeof(c),
                                .max_norm = how->value,
                                .p = how->p,
                                .error_if_nonfinite = how->as != 0,
                                .inverse_scale =
                                    how->as == SCRIPT_CALL_CLIP_OVERFLOW
                                        ? FLT_MAX
                                        : play_inverse_scale(x)};
    float norm;

    if (!x->engine.clip_grad_norm) {
        return FSDP_ERR_INVALID; /* the engine claims it */
    }
    *status = x->engine.clip_grad_norm(x->sharded, &c, &norm);
    return FSDP_OK;
}

static int wait(struct driver *x, int *status)
{
    *status = x->engine.save_wait(x->sharded);
    return FSDP_OK;
}

static int made(struct driver *x, const struct play_wrong *how, int *status)
{
    return how->with ? how->with(x, how, status) : how->call(x, status);
}

static const struct play_wrong calls[SCRIPT_N_CALLS];

/* Ends what was begun or unsharded although it had to be refused, so that the
 * next call is made at rest, too. */
static void end_it(struct driver *x, uint32_t call)
{
    if (call == SCRIPT_CALL_BEGIN_TWICE) {
        (void)x->engine.at(x->sharded, FSDP_CANCEL, 0);
    } else if (call == SCRIPT_CALL_UNSHARD_WHILE_OPEN) {
        (void)x->engine.reshard(x->sharded, 0);
    } else if (call == SCRIPT_CALL_UNSHARD_ALL_TWICE ||
               call == SCRIPT_CALL_SUMMON_WHILE_OPEN) {
        (void)x->engine.reshard_all(x->sharded);
    }
}

/* A refusal because values are missing has to name a parameter. */
static int deferred(struct driver *x, const struct play_wrong *how, int *status)
{
    const struct fsdp_error *e = x->env.error;
    bool named = false;

    *x->env.error = (struct fsdp_error){0};
    FSDP_TRY(made(x, &calls[how->as], status));
    for (uint32_t p = 0; p < x->model->n_parameters; p++) {
        named = named || play_says(e, x->model->parameter_name[p]);
    }
    if (*status == FSDP_OK) {
        end_it(x, how->as);
    }
    return *status == FSDP_OK || named
               ? FSDP_OK
               : drive_answer_number(x, "unnamed-parameter", 0);
}

static const struct play_wrong calls[SCRIPT_N_CALLS] = {
    [SCRIPT_CALL_POINT_BEFORE_BEGIN] = {.with = at_place},
    [SCRIPT_CALL_PARAM_AT_REST] = {.with = of_one, .ask = ask_param},
    [SCRIPT_CALL_GRAD_AT_REST] = {.with = of_one, .ask = ask_grad},
    [SCRIPT_CALL_CANCEL_AT_REST] = {.with = at, .point = FSDP_CANCEL},
    [SCRIPT_CALL_END_AT_REST] = {.with = at,
                                 .point = FSDP_END,
                                 .index = FSDP_SEQUENCE_TRAIN},
    [SCRIPT_CALL_UNKNOWN_SEQUENCE] = {.with = at_unknown, .point = FSDP_BEGIN},
    [SCRIPT_CALL_STEP_GROUPS] = {.with = step, .more = 1},
    [SCRIPT_CALL_STEP_SCALE_NEGATIVE] = {.with = step, .value = -0.5f},
    [SCRIPT_CALL_STEP_SCALE_NAN] = {.with = step, .value = NAN},
    [SCRIPT_CALL_STEP_SCALE_INFINITE] = {.with = step, .value = INFINITY},
    [SCRIPT_CALL_UNKNOWN_PARAMETER] = {.with = of_one,
                                       .ask = ask_param,
                                       .more = 1},
    [SCRIPT_CALL_PARAM_AFTER_CANCEL] = {.call = any_param},
    [SCRIPT_CALL_GRAD_AFTER_CANCEL] = {.call = any_grad},
    [SCRIPT_CALL_BEGIN_TWICE] = {.with = at,
                                 .point = FSDP_BEGIN,
                                 .index = FSDP_SEQUENCE_TRAIN},
    [SCRIPT_CALL_STEP_IN_PASS] = {.with = step},
    [SCRIPT_CALL_PIECES_IN_PASS] = {.call = pieces},
    [SCRIPT_CALL_END_EARLY] = {.with = at,
                               .point = FSDP_END,
                               .index = FSDP_SEQUENCE_TRAIN},
    [SCRIPT_CALL_POINT_OUT_OF_ORDER] = {.with = at,
                                        .point = FSDP_POST_BACKWARD},
    [SCRIPT_CALL_UNKNOWN_MODULE] = {.with = at_unknown,
                                    .point = FSDP_PRE_FORWARD},
    [SCRIPT_CALL_UNSHARD_ALL_IN_PASS] = {.call = unshard_all},
    [SCRIPT_CALL_GRAD_IN_FORWARD] = {.with = of_one, .ask = ask_grad},
    [SCRIPT_CALL_POINT_AFTER_LAST] = {.with = at_place, .index = UINT32_MAX},
    [SCRIPT_CALL_END_OF_ANOTHER] = {.with = at,
                                    .point = FSDP_END,
                                    .index = FSDP_SEQUENCE_EVAL},
    [SCRIPT_CALL_GRAD_AFTER_BACKWARD] = {.call = any_grad},
    [SCRIPT_CALL_STEP_WITH_PENDING] = {.with = step},
    [SCRIPT_CALL_CLIP_IN_PASS] = {.with = clip, .value = 1.0f, .p = 2.0f},
    [SCRIPT_CALL_CLIP_TO_ZERO] = {.with = clip, .value = 0.0f, .p = 2.0f},
    [SCRIPT_CALL_CLIP_TO_NAN] = {.with = clip, .value = NAN, .p = 2.0f},
    [SCRIPT_CALL_CLIP_BY_THIRD] = {.with = clip, .value = 1.0f, .p = 3.0f},
    [SCRIPT_CALL_WAIT_BEFORE_SAVE] = {.call = wait},
    [SCRIPT_CALL_SAVE_TWICE] = {.call = play_wrong_save_twice},
    [SCRIPT_CALL_SAVE_IN_PASS] = {.with = play_wrong_save},
    [SCRIPT_CALL_SAVE_WITH_GRADIENTS] = {.with = play_wrong_save},
    [SCRIPT_CALL_LOAD_IN_PASS] = {.call = play_wrong_load_missing},
    [SCRIPT_CALL_LOAD_MISSING] = {.call = play_wrong_load_missing},
    [SCRIPT_CALL_LOAD_DAMAGED] = {.call = play_wrong_load_damaged},
    [SCRIPT_CALL_ZERO_IN_PASS] = {.call = zero},
    [SCRIPT_CALL_RESHARD_ALL_AT_REST] = {.call = reshard_all},
    [SCRIPT_CALL_LOAD_WHILE_SAVING] = {.call = play_wrong_load_missing},
    [SCRIPT_CALL_CLIP_NONFINITE] = {.with = clip,
                                    .value = 1.0f,
                                    .p = 2.0f,
                                    .as = SCRIPT_CALL_CLIP_NONFINITE},
    [SCRIPT_CALL_CLIP_OVERFLOW] = {.with = clip,
                                   .value = 1.0f,
                                   .p = 2.0f,
                                   .as = SCRIPT_CALL_CLIP_OVERFLOW},
    [SCRIPT_CALL_BEGIN_WHILE_OPEN] = {.with = at,
                                      .point = FSDP_BEGIN,
                                      .index = FSDP_SEQUENCE_TRAIN},
    [SCRIPT_CALL_STEP_WHILE_OPEN] = {.with = step},
    [SCRIPT_CALL_ZERO_WHILE_OPEN] = {.call = zero},
    [SCRIPT_CALL_CLIP_WHILE_OPEN] = {.with = clip, .value = 1.0f, .p = 2.0f},
    [SCRIPT_CALL_PIECES_WHILE_OPEN] = {.call = pieces},
    [SCRIPT_CALL_SAVE_WHILE_OPEN] = {.with = play_wrong_save},
    [SCRIPT_CALL_LOAD_WHILE_OPEN] = {.call = play_wrong_load_missing},
    [SCRIPT_CALL_UNSHARD_ALL_TWICE] = {.call = unshard_all},
    [SCRIPT_CALL_GRAD_OF_FROZEN] = {.with = of_each,
                                    .is_meant = is_frozen,
                                    .ask = ask_grad},
    [SCRIPT_CALL_PARAM_OF_IGNORED] = {.with = of_each,
                                      .is_meant = is_ignored,
                                      .ask = ask_param},
    [SCRIPT_CALL_GRAD_OF_IGNORED] = {.with = of_each,
                                     .is_meant = is_ignored,
                                     .ask = ask_grad},
    [SCRIPT_CALL_FREEZE_OF_IGNORED] = {.with = of_each,
                                       .is_meant = is_ignored,
                                       .ask = ask_freeze},
    [SCRIPT_CALL_SET_IN_PASS] = {.with = play_wrong_set,
                                 .unit = FSDP_NO_UNIT,
                                 .knob = FSDP_KNOB_GRADIENT_SYNC},
    [SCRIPT_CALL_SET_WHILE_OPEN] = {.with = play_wrong_set,
                                    .unit = FSDP_NO_UNIT,
                                    .knob = FSDP_KNOB_GRADIENT_SYNC},
    [SCRIPT_CALL_SET_UNKNOWN_UNIT] = {.call = play_wrong_set_unit},
    [SCRIPT_CALL_SET_UNKNOWN_KNOB] = {.call = play_wrong_set_knob},
    [SCRIPT_CALL_SET_TO_TWO] = {.with = play_wrong_set,
                                .knob = FSDP_KNOB_GRADIENT_SYNC,
                                .value = 2.0f},
    [SCRIPT_CALL_SET_TO_NAN] = {.with = play_wrong_set,
                                .knob = FSDP_KNOB_ALL_REDUCE,
                                .value = NAN},
    [SCRIPT_CALL_UNSHARD_UNKNOWN_UNIT] = {.with = play_wrong_unknown_unit,
                                          .verb = SCRIPT_UNSHARD_UNIT},
    [SCRIPT_CALL_RESHARD_UNKNOWN_UNIT] = {.with = play_wrong_unknown_unit,
                                          .verb = SCRIPT_RESHARD_UNIT},
    [SCRIPT_CALL_RESHARD_IN_WINDOW] = {.call = play_wrong_reshard_window},
    [SCRIPT_CALL_RESHARD_KEPT] = {.with = play_wrong_by_hand,
                                  .verb = SCRIPT_RESHARD_UNIT},
    [SCRIPT_CALL_UNSHARD_WHILE_OPEN] = {.with = play_wrong_by_hand,
                                        .verb = SCRIPT_UNSHARD_UNIT},
    [SCRIPT_CALL_RESHARD_WHILE_OPEN] = {.with = play_wrong_by_hand,
                                        .verb = SCRIPT_RESHARD_UNIT},
    [SCRIPT_CALL_FREEZE_IN_PASS] = {.call = play_wrong_freeze},
    [SCRIPT_CALL_FREEZE_WHILE_OPEN] = {.call = play_wrong_freeze},
    [SCRIPT_CALL_FREEZE_WITH_GRADIENTS] = {.call = play_wrong_freeze},
    [SCRIPT_CALL_FREEZE_WHILE_SAVING] = {.call = play_wrong_freeze},
    [SCRIPT_CALL_FREEZE_UNKNOWN] = {.call = play_wrong_freeze_unknown},
    [SCRIPT_CALL_FREEZE_BY_TWO] = {.call = play_wrong_freeze_by_two},
    [SCRIPT_CALL_LOAD_WITHOUT_STATES] = {.call = play_wrong_load_stateless},
    [SCRIPT_CALL_SET_DIVIDE_TO_ZERO] = {.with = play_wrong_factor,
                                        .knob = FSDP_KNOB_DIVIDE_FACTOR,
                                        .value = 0.0f},
    [SCRIPT_CALL_SET_DIVIDE_NEGATIVE] = {.with = play_wrong_factor,
                                         .knob = FSDP_KNOB_DIVIDE_FACTOR,
                                         .value = -2.0f},
    [SCRIPT_CALL_SET_DIVIDE_TO_NAN] = {.with = play_wrong_factor,
                                       .knob = FSDP_KNOB_DIVIDE_FACTOR,
                                       .value = NAN},
    [SCRIPT_CALL_SET_PREDIVIDE_TO_ZERO] = {.with = play_wrong_factor,
                                           .knob = FSDP_KNOB_PREDIVIDE_FACTOR,
                                           .value = 0.0f},
    [SCRIPT_CALL_SET_PREDIVIDE_INFINITE] = {.with = play_wrong_factor,
                                            .knob = FSDP_KNOB_PREDIVIDE_FACTOR,
                                            .value = INFINITY},
    /* The inverse of this factor is not finite. */
    [SCRIPT_CALL_SET_PREDIVIDE_TINY] = {.with = play_wrong_factor,
                                        .knob = FSDP_KNOB_PREDIVIDE_FACTOR,
                                        .value = 0x1p-140f},
    /* This factor is finite, and 256 times it is not. */
    [SCRIPT_CALL_SET_DIVIDE_OF_ALL] = {.with = play_wrong_factor,
                                       .unit = FSDP_NO_UNIT,
                                       .knob = FSDP_KNOB_DIVIDE_FACTOR,
                                       .value = 0x1p-120f},
    [SCRIPT_CALL_SET_FACTOR_IN_PASS] = {.with = play_wrong_set,
                                        .unit = FSDP_NO_UNIT,
                                        .knob = FSDP_KNOB_DIVIDE_FACTOR,
                                        .value = 2.0f},
    [SCRIPT_CALL_UNKNOWN_BUFFER] = {.call = play_wrong_buffer},
    [SCRIPT_CALL_STEP_WITH_PARTIALS] = {.with = step},
    [SCRIPT_CALL_CLIP_WITH_PARTIALS] = {.with = clip, .value = 1.0f, .p = 2.0f},
    [SCRIPT_CALL_CLIP_WITH_PENDING] = {.with = clip, .value = 1.0f, .p = 2.0f},
    [SCRIPT_CALL_GRAD_IN_RECOMPUTE] = {.with = of_each,
                                       .is_meant = is_recomputed,
                                       .ask = ask_grad},
    [SCRIPT_CALL_BACKWARD_STEP_IN_PASS] = {.with = play_wrong_backward_step},
    [SCRIPT_CALL_BACKWARD_STEP_WHILE_OPEN] = {.with = play_wrong_backward_step},
    [SCRIPT_CALL_BACKWARD_STEP_GROUPS] = {.with = play_wrong_backward_step,
                                          .more = 1},
    [SCRIPT_CALL_BACKWARD_STEP_SCALED] = {.with = play_wrong_backward_step,
                                          .value = 1.0f},
    [SCRIPT_CALL_BACKWARD_STEP_THEN_STEP] = {.with = step},
    [SCRIPT_CALL_BACKWARD_STEP_THEN_CLIP] = {.with = clip,
                                             .value = 1.0f,
                                             .p = 2.0f},
    [SCRIPT_CALL_ASSIGN_IN_PASS] = {.with = play_wrong_assign},
    [SCRIPT_CALL_ASSIGN_WHILE_OPEN] = {.with = play_wrong_assign},
    [SCRIPT_CALL_ASSIGN_BEYOND] = {.with = play_wrong_assign, .more = 1},
    [SCRIPT_CALL_ASSIGN_FAR] = {.call = play_wrong_assign_far},
    [SCRIPT_CALL_ASSIGN_UNKNOWN] = {.call = play_wrong_assign_unknown},
    [SCRIPT_CALL_ASSIGN_OF_IGNORED] = {.with = of_each,
                                       .is_meant = is_ignored,
                                       .ask = ask_assign},
    /* A bit that stands for no part. */
    [SCRIPT_CALL_SAVE_UNKNOWN_PART] = {.with = play_wrong_save,
                                       .what = 2 * FSDP_SAVE_EXTRA},
    [SCRIPT_CALL_SAVE_UNKNOWN_DTYPE] = {.with = play_wrong_save,
                                        .dtype = FSDP_DTYPE_I32,
                                        .form = FSDP_SAVE_FULL},
    [SCRIPT_CALL_SAVE_ROUNDED_SHARDS] = {.with = play_wrong_save,
                                         .dtype = FSDP_DTYPE_BF16,
                                         .form = FSDP_SAVE_SHARDED},
    [SCRIPT_CALL_LOAD_PARTS] = {.call = play_wrong_load_other},
    [SCRIPT_CALL_LOAD_ROUNDED] = {.call = play_wrong_load_other},
    [SCRIPT_CALL_LOAD_RENAMED] = {.call = play_wrong_load_renamed},
    [SCRIPT_CALL_SUMMON_IN_PASS] = {.call = play_wrong_summon},
    [SCRIPT_CALL_SUMMON_WHILE_OPEN] = {.call = play_wrong_summon},
    [SCRIPT_CALL_SUMMON_UNKNOWN_UNIT] = {.call = play_wrong_summon_unit},
    [SCRIPT_CALL_SEND_IN_PASS] = {.with = play_wrong_send},
    [SCRIPT_CALL_SEND_WHILE_OPEN] = {.with = play_wrong_send},
    [SCRIPT_CALL_SEND_NONE] = {.with = play_wrong_send,
                               .as = SCRIPT_CALL_SEND_NONE},
    [SCRIPT_CALL_SEND_LACKING] = {.with = play_wrong_send,
                                  .as = SCRIPT_CALL_SEND_LACKING},
    [SCRIPT_CALL_SEND_VALUES_OF_LAST] = {.with = play_wrong_send,
                                         .as = SCRIPT_CALL_SEND_VALUES_OF_LAST},
    [SCRIPT_CALL_SEND_LENIENCY] = {.with = play_wrong_send,
                                   .as = SCRIPT_CALL_SEND_LENIENCY},
    [SCRIPT_CALL_DEFERRED_BEGIN] = {.with = deferred,
                                    .as = SCRIPT_CALL_BEGIN_TWICE},
    [SCRIPT_CALL_DEFERRED_SAVE] = {.with = deferred,
                                   .as = SCRIPT_CALL_SAVE_IN_PASS},
    [SCRIPT_CALL_DEFERRED_UNSHARD_ALL] = {.with = deferred,
                                          .as = SCRIPT_CALL_UNSHARD_ALL_TWICE},
    [SCRIPT_CALL_DEFERRED_PIECES] = {.with = deferred,
                                     .as = SCRIPT_CALL_PIECES_IN_PASS},
    [SCRIPT_CALL_DEFERRED_UNSHARD] = {.with = deferred,
                                      .as = SCRIPT_CALL_UNSHARD_WHILE_OPEN},
    [SCRIPT_CALL_DEFERRED_SUMMON] = {.with = deferred,
                                     .as = SCRIPT_CALL_SUMMON_WHILE_OPEN},
};

/* A serial run makes only the calls that offer a model. */
int play_wrong_call(struct driver *x, uint32_t call)
{
    int status = FSDP_OK;

    if (script_calls[call].when == SCRIPT_UNTRAINED) {
        return play_offer(x, call);
    }
    if (x->serial ||
        (calls[call].call == unshard_all && !x->engine.unshard_all)) {
        return FSDP_OK;
    }
    FSDP_TRY(made(x, &calls[call], &status));
    FSDP_TRY(drive_answer(x, script_calls[call].name, status));
    FSDP_TRY(play_behind_load(x, call));
    FSDP_TRY(call == SCRIPT_CALL_CLIP_BY_THIRD ? play_clip_sizes(x) : FSDP_OK);
    return call == SCRIPT_CALL_UNKNOWN_PARAMETER ? play_late_error(x) : FSDP_OK;
}
