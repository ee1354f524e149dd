/* SPDX-License-Identifier: Apache-2.0 */
/*
 * play_wrong.c - calls that an engine must refuse, and what it answered. The
 * run goes on after them: a refusal changes nothing.
 */
#include "run/play.h"

#include <math.h>
#include <stdio.h>
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

/* Whether the module of p computes its backward just now. */
static bool in_backward_of(const struct driver *x, uint32_t p)
{
    return x->point == FSDP_PRE_BACKWARD &&
           x->index == x->model->parameter_module[p];
}

/* ---- Calls; *status is what the engine answered ------------------------- */

static int at(struct driver *x, uint32_t point, uint32_t index, int *status)
{
    *status = x->engine.at(x->sharded, point, index);
    return FSDP_OK;
}

static int first_point(struct driver *x, int *status)
{
    const struct fsdp_sequence *q = x->model->sequence[FSDP_SEQUENCE_TRAIN];

    return at(x, q->point[0], q->module[0], status);
}

static int last_point(struct driver *x, int *status)
{
    const struct fsdp_sequence *q = x->model->sequence[FSDP_SEQUENCE_TRAIN];

    return at(x, q->point[q->n - 1], q->module[q->n - 1], status);
}

static int point_out_of_order(struct driver *x, int *status)
{
    return at(x, FSDP_POST_BACKWARD, 0, status);
}

static int unknown_module(struct driver *x, int *status)
{
    return at(x, FSDP_PRE_FORWARD, x->model->n_modules, status);
}

static int begin(struct driver *x, int *status)
{
    return at(x, FSDP_BEGIN, FSDP_SEQUENCE_TRAIN, status);
}

static int begin_unknown(struct driver *x, int *status)
{
    return at(x, FSDP_BEGIN, x->model->n_sequences, status);
}

static int cancel(struct driver *x, int *status)
{
    return at(x, FSDP_CANCEL, 0, status);
}

static int end(struct driver *x, int *status)
{
    return at(x, FSDP_END, FSDP_SEQUENCE_TRAIN, status);
}

static int end_of_another(struct driver *x, int *status)
{
    return at(x, FSDP_END, FSDP_SEQUENCE_EVAL, status);
}

static int param(struct driver *x, int *status)
{
    struct fsdp_tensor t;

    *status = x->engine.param(x->sharded, 0, &t);
    return FSDP_OK;
}

static int unknown_parameter(struct driver *x, int *status)
{
    struct fsdp_tensor t;

    *status = x->engine.param(x->sharded, x->model->n_parameters, &t);
    return FSDP_OK;
}

static int grad(struct driver *x, int *status)
{
    struct fsdp_tensor t;

    *status = x->engine.grad(x->sharded, 0, &t);
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

/* Of every parameter that is frozen; where none is, of one that there is not.
 * Who asks for it where another's gradient would be lent is told which it
 * is. */
static int grad_of_frozen(struct driver *x, int *status)
{
    struct fsdp_error *e = x->env.error;
    struct fsdp_tensor t;
    bool any = false;

    *status = FSDP_ERR_INVALID;
    for (uint32_t p = 0;
         p < x->model->n_parameters && *status == FSDP_ERR_INVALID; p++) {
        const char *name = x->model->parameter_name[p];

        if ((x->flags[p] & FSDP_FROZEN) == 0) {
            continue;
        }
        any = true;
        *e = (struct fsdp_error){0};
        *status = x->engine.grad(x->sharded, p, &t);
        if (*status != FSDP_OK && in_backward_of(x, p) &&
            !memmem(e->message, sizeof(e->message), name,
                    strnlen(name, sizeof(e->message) / 2))) {
            FSDP_TRY(add_answer(x->out, "unnamed-parameter", FSDP_OK));
        }
    }
    return any ? FSDP_OK : unknown_parameter(x, status);
}

/* Of every parameter of a module that is being recomputed; elsewhere, of one
 * that there is not. */
static int grad_in_recompute(struct driver *x, int *status)
{
    struct fsdp_tensor t;
    bool any = false;

    *status = FSDP_ERR_INVALID;
    for (uint32_t p = 0;
         p < x->model->n_parameters && *status == FSDP_ERR_INVALID; p++) {
        if (x->point == FSDP_PRE_RECOMPUTE &&
            x->model->parameter_module[p] == x->index) {
            any = true;
            *status = x->engine.grad(x->sharded, p, &t);
        }
    }
    return any ? FSDP_OK : unknown_parameter(x, status);
}

/* Of every parameter that is ignored; where none is, of one that there is
 * not. Whoever asks is told which it is; for a gradient, where another's would
 * be lent. */
static int of_ignored(struct driver *x,
                      int (*ask)(struct driver *x, uint32_t p), bool of_grad,
                      int *status)
{
    struct fsdp_error *e = x->env.error;
    bool any = false;

    *status = FSDP_ERR_INVALID;
    for (uint32_t p = 0;
         p < x->model->n_parameters && *status == FSDP_ERR_INVALID; p++) {
        const char *name = x->model->parameter_name[p];

        if (!x->ignored[p]) {
            continue;
        }
        any = true;
        *e = (struct fsdp_error){0};
        *status = ask(x, p);
        if (*status != FSDP_OK && (!of_grad || in_backward_of(x, p)) &&
            !memmem(e->message, sizeof(e->message), name,
                    strnlen(name, sizeof(e->message) / 2))) {
            FSDP_TRY(add_answer(x->out, "unnamed-parameter", FSDP_OK));
        }
    }
    return any ? FSDP_OK : unknown_parameter(x, status);
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

/* Who cannot do it has nothing to refuse. */
static int refuse_of(struct driver *x, uint32_t p)
{
    *x->env.error = (struct fsdp_error){.status = FSDP_ERR_INVALID,
                                        .rank = (int32_t)x->env.rank,
                                        .where = "driver"};
    (void)snprintf(x->env.error->message, sizeof(x->env.error->message), "%s",
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

static int param_of_ignored(struct driver *x, int *status)
{
    return of_ignored(x, ask_param, false, status);
}

static int grad_of_ignored(struct driver *x, int *status)
{
    return of_ignored(x, ask_grad, true, status);
}

static int freeze_of_ignored(struct driver *x, int *status)
{
    return of_ignored(x, ask_freeze, false, status);
}

static int assign_of_ignored(struct driver *x, int *status)
{
    return of_ignored(x, ask_assign, false, status);
}

static int step_of(struct driver *x, uint32_t n_groups, float inverse_scale,
                   int *status)
{
    float lr[SCRIPT_MAX_GROUPS + 1];
    struct fsdp_step step = {.size = sizeof(step),
                             .n_groups = n_groups,
                             .lr = lr,
                             .inverse_scale = inverse_scale};

    for (uint32_t g = 0; g < n_groups; g++) {
        lr[g] = x->d->c->lr;
    }
    *status = x->engine.step(x->sharded, &step);
    return FSDP_OK;
}

static int step(struct driver *x, int *status)
{
    return step_of(x, x->d->script->groups, 0.0f, status);
}

static int step_by_negative(struct driver *x, int *status)
{
    return step_of(x, x->d->script->groups, -0.5f, status);
}

static int step_by_nan(struct driver *x, int *status)
{
    return step_of(x, x->d->script->groups, NAN, status);
}

static int step_by_infinity(struct driver *x, int *status)
{
    return step_of(x, x->d->script->groups, INFINITY, status);
}

static int step_of_more_groups(struct driver *x, int *status)
{
    return step_of(x, x->d->script->groups + 1, 0.0f, status);
}

static int zero(struct driver *x, int *status)
{
    *status = x->engine.zero_grad(x->sharded);
    return FSDP_OK;
}

/* Nothing refuses what is not there. */
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

static int clip(struct driver *x, float max_norm, float p, int *status)
{
    const struct fsdp_clip c = {
        .size = sizeof(c), .max_norm = max_norm, .p = p};
    float norm;

    if (!x->engine.clip_grad_norm) {
        return FSDP_ERR_INVALID; /* it is claimed */
    }
    *status = x->engine.clip_grad_norm(x->sharded, &c, &norm);
    return FSDP_OK;
}

static int clip_as_usual(struct driver *x, int *status)
{
    return clip(x, 1.0f, 2.0f, status);
}

static int clip_to_zero(struct driver *x, int *status)
{
    return clip(x, 0.0f, 2.0f, status);
}

static int clip_to_nan(struct driver *x, int *status)
{
    return clip(x, NAN, 2.0f, status);
}

static int clip_by_third(struct driver *x, int *status)
{
    return clip(x, 1.0f, 3.0f, status);
}

static int clip_nonfinite(struct driver *x, int *status)
{
    const struct fsdp_clip c = {.size = sizeof(c),
                                .max_norm = 1.0f,
                                .p = 2.0f,
                                .error_if_nonfinite = 1,
                                .inverse_scale = play_inverse_scale(x)};
    float norm;

    *status = x->engine.clip_grad_norm
                  ? x->engine.clip_grad_norm(x->sharded, &c, &norm)
                  : FSDP_ERR_INVALID;
    return FSDP_OK;
}

static int wait(struct driver *x, int *status)
{
    *status = x->engine.save_wait(x->sharded);
    return FSDP_OK;
}

/* What is refused for want of values names a parameter. */
static int deferred(struct driver *x, int (*call)(struct driver *, int *),
                    int *status)
{
    const struct fsdp_error *e = x->env.error;
    bool named = false;

    *x->env.error = (struct fsdp_error){0};
    FSDP_TRY(call(x, status));
    for (uint32_t p = 0; p < x->model->n_parameters; p++) {
        const char *name = x->model->parameter_name[p];

        named = named || memmem(e->message, sizeof(e->message), name,
                                strnlen(name, sizeof(e->message) / 2));
    }
    return *status == FSDP_OK || named
               ? FSDP_OK
               : add_answer(x->out, "unnamed-parameter", FSDP_OK);
}

static int deferred_begin(struct driver *x, int *status)
{
    return deferred(x, begin, status);
}

static int deferred_save(struct driver *x, int *status)
{
    return deferred(x, play_wrong_save, status);
}

static int deferred_unshard_all(struct driver *x, int *status)
{
    return deferred(x, unshard_all, status);
}

static int deferred_pieces(struct driver *x, int *status)
{
    return deferred(x, pieces, status);
}

static int (*const calls[SCRIPT_N_CALLS])(struct driver *x, int *status) = {
    [SCRIPT_CALL_POINT_BEFORE_BEGIN] = first_point,
    [SCRIPT_CALL_PARAM_AT_REST] = param,
    [SCRIPT_CALL_GRAD_AT_REST] = grad,
    [SCRIPT_CALL_CANCEL_AT_REST] = cancel,
    [SCRIPT_CALL_END_AT_REST] = end,
    [SCRIPT_CALL_UNKNOWN_SEQUENCE] = begin_unknown,
    [SCRIPT_CALL_STEP_GROUPS] = step_of_more_groups,
    [SCRIPT_CALL_STEP_SCALE_NEGATIVE] = step_by_negative,
    [SCRIPT_CALL_STEP_SCALE_NAN] = step_by_nan,
    [SCRIPT_CALL_STEP_SCALE_INFINITE] = step_by_infinity,
    [SCRIPT_CALL_UNKNOWN_PARAMETER] = unknown_parameter,
    [SCRIPT_CALL_PARAM_AFTER_CANCEL] = any_param,
    [SCRIPT_CALL_GRAD_AFTER_CANCEL] = any_grad,
    [SCRIPT_CALL_BEGIN_TWICE] = begin,
    [SCRIPT_CALL_STEP_IN_PASS] = step,
    [SCRIPT_CALL_PIECES_IN_PASS] = pieces,
    [SCRIPT_CALL_END_EARLY] = end,
    [SCRIPT_CALL_POINT_OUT_OF_ORDER] = point_out_of_order,
    [SCRIPT_CALL_UNKNOWN_MODULE] = unknown_module,
    [SCRIPT_CALL_UNSHARD_ALL_IN_PASS] = unshard_all,
    [SCRIPT_CALL_GRAD_IN_FORWARD] = grad,
    [SCRIPT_CALL_POINT_AFTER_LAST] = last_point,
    [SCRIPT_CALL_END_OF_ANOTHER] = end_of_another,
    [SCRIPT_CALL_GRAD_AFTER_BACKWARD] = any_grad,
    [SCRIPT_CALL_STEP_WITH_PENDING] = step,
    [SCRIPT_CALL_CLIP_IN_PASS] = clip_as_usual,
    [SCRIPT_CALL_CLIP_TO_ZERO] = clip_to_zero,
    [SCRIPT_CALL_CLIP_TO_NAN] = clip_to_nan,
    [SCRIPT_CALL_CLIP_BY_THIRD] = clip_by_third,
    [SCRIPT_CALL_WAIT_BEFORE_SAVE] = wait,
    [SCRIPT_CALL_SAVE_TWICE] = play_wrong_save_twice,
    [SCRIPT_CALL_SAVE_IN_PASS] = play_wrong_save,
    [SCRIPT_CALL_SAVE_WITH_GRADIENTS] = play_wrong_save,
    [SCRIPT_CALL_LOAD_IN_PASS] = play_wrong_load_missing,
    [SCRIPT_CALL_LOAD_MISSING] = play_wrong_load_missing,
    [SCRIPT_CALL_LOAD_DAMAGED] = play_wrong_load_damaged,
    [SCRIPT_CALL_ZERO_IN_PASS] = zero,
    [SCRIPT_CALL_RESHARD_ALL_AT_REST] = reshard_all,
    [SCRIPT_CALL_LOAD_WHILE_SAVING] = play_wrong_load_missing,
    [SCRIPT_CALL_CLIP_NONFINITE] = clip_nonfinite,
    [SCRIPT_CALL_BEGIN_WHILE_OPEN] = begin,
    [SCRIPT_CALL_STEP_WHILE_OPEN] = step,
    [SCRIPT_CALL_ZERO_WHILE_OPEN] = zero,
    [SCRIPT_CALL_CLIP_WHILE_OPEN] = clip_as_usual,
    [SCRIPT_CALL_PIECES_WHILE_OPEN] = pieces,
    [SCRIPT_CALL_SAVE_WHILE_OPEN] = play_wrong_save,
    [SCRIPT_CALL_LOAD_WHILE_OPEN] = play_wrong_load_missing,
    [SCRIPT_CALL_UNSHARD_ALL_TWICE] = unshard_all,
    [SCRIPT_CALL_GRAD_OF_FROZEN] = grad_of_frozen,
    [SCRIPT_CALL_PARAM_OF_IGNORED] = param_of_ignored,
    [SCRIPT_CALL_GRAD_OF_IGNORED] = grad_of_ignored,
    [SCRIPT_CALL_FREEZE_OF_IGNORED] = freeze_of_ignored,
    [SCRIPT_CALL_SET_IN_PASS] = play_wrong_set,
    [SCRIPT_CALL_SET_WHILE_OPEN] = play_wrong_set,
    [SCRIPT_CALL_SET_UNKNOWN_UNIT] = play_wrong_set_unit,
    [SCRIPT_CALL_SET_UNKNOWN_KNOB] = play_wrong_set_knob,
    [SCRIPT_CALL_SET_TO_TWO] = play_wrong_set_to_two,
    [SCRIPT_CALL_SET_TO_NAN] = play_wrong_set_to_nan,
    [SCRIPT_CALL_UNSHARD_UNKNOWN_UNIT] = play_wrong_unshard_unit,
    [SCRIPT_CALL_RESHARD_UNKNOWN_UNIT] = play_wrong_reshard_unit,
    [SCRIPT_CALL_RESHARD_IN_WINDOW] = play_wrong_reshard_window,
    [SCRIPT_CALL_RESHARD_KEPT] = play_wrong_reshard,
    [SCRIPT_CALL_UNSHARD_WHILE_OPEN] = play_wrong_unshard,
    [SCRIPT_CALL_RESHARD_WHILE_OPEN] = play_wrong_reshard,
    [SCRIPT_CALL_FREEZE_IN_PASS] = play_wrong_freeze,
    [SCRIPT_CALL_FREEZE_WHILE_OPEN] = play_wrong_freeze,
    [SCRIPT_CALL_FREEZE_WITH_GRADIENTS] = play_wrong_freeze,
    [SCRIPT_CALL_FREEZE_WHILE_SAVING] = play_wrong_freeze,
    [SCRIPT_CALL_FREEZE_UNKNOWN] = play_wrong_freeze_unknown,
    [SCRIPT_CALL_FREEZE_BY_TWO] = play_wrong_freeze_by_two,
    [SCRIPT_CALL_LOAD_WITHOUT_STATES] = play_wrong_load_stateless,
    [SCRIPT_CALL_SET_DIVIDE_TO_ZERO] = play_wrong_divide_zero,
    [SCRIPT_CALL_SET_DIVIDE_NEGATIVE] = play_wrong_divide_negative,
    [SCRIPT_CALL_SET_DIVIDE_TO_NAN] = play_wrong_divide_nan,
    [SCRIPT_CALL_SET_PREDIVIDE_TO_ZERO] = play_wrong_predivide_zero,
    [SCRIPT_CALL_SET_PREDIVIDE_INFINITE] = play_wrong_predivide_infinite,
    [SCRIPT_CALL_SET_PREDIVIDE_TINY] = play_wrong_predivide_tiny,
    [SCRIPT_CALL_SET_FACTOR_IN_PASS] = play_wrong_factor,
    [SCRIPT_CALL_UNKNOWN_BUFFER] = play_wrong_buffer,
    [SCRIPT_CALL_STEP_WITH_PARTIALS] = step,
    [SCRIPT_CALL_CLIP_WITH_PARTIALS] = clip_as_usual,
    [SCRIPT_CALL_CLIP_WITH_PENDING] = clip_as_usual,
    [SCRIPT_CALL_GRAD_IN_RECOMPUTE] = grad_in_recompute,
    [SCRIPT_CALL_BACKWARD_STEP_IN_PASS] = play_wrong_backward_step,
    [SCRIPT_CALL_BACKWARD_STEP_WHILE_OPEN] = play_wrong_backward_step,
    [SCRIPT_CALL_BACKWARD_STEP_GROUPS] = play_wrong_backward_groups,
    [SCRIPT_CALL_BACKWARD_STEP_SCALED] = play_wrong_backward_scaled,
    [SCRIPT_CALL_BACKWARD_STEP_THEN_STEP] = step,
    [SCRIPT_CALL_BACKWARD_STEP_THEN_CLIP] = clip_as_usual,
    [SCRIPT_CALL_ASSIGN_IN_PASS] = play_wrong_assign,
    [SCRIPT_CALL_ASSIGN_WHILE_OPEN] = play_wrong_assign,
    [SCRIPT_CALL_ASSIGN_BEYOND] = play_wrong_assign_beyond,
    [SCRIPT_CALL_ASSIGN_FAR] = play_wrong_assign_far,
    [SCRIPT_CALL_ASSIGN_UNKNOWN] = play_wrong_assign_unknown,
    [SCRIPT_CALL_ASSIGN_OF_IGNORED] = assign_of_ignored,
    [SCRIPT_CALL_SAVE_UNKNOWN_PART] = play_wrong_save_part,
    [SCRIPT_CALL_SAVE_UNKNOWN_DTYPE] = play_wrong_save_dtype,
    [SCRIPT_CALL_SAVE_ROUNDED_SHARDS] = play_wrong_save_rounded_shards,
    [SCRIPT_CALL_LOAD_PARTS] = play_wrong_load_other,
    [SCRIPT_CALL_LOAD_ROUNDED] = play_wrong_load_other,
    [SCRIPT_CALL_LOAD_RENAMED] = play_wrong_load_renamed,
    [SCRIPT_CALL_SUMMON_IN_PASS] = play_wrong_summon,
    [SCRIPT_CALL_SUMMON_WHILE_OPEN] = play_wrong_summon,
    [SCRIPT_CALL_SUMMON_UNKNOWN_UNIT] = play_wrong_summon_unit,
    [SCRIPT_CALL_DEFERRED_BEGIN] = deferred_begin,
    [SCRIPT_CALL_DEFERRED_SAVE] = deferred_save,
    [SCRIPT_CALL_DEFERRED_UNSHARD_ALL] = deferred_unshard_all,
    [SCRIPT_CALL_DEFERRED_PIECES] = deferred_pieces,
};

/* Who plays all ranks is asked for numbers alone. */
int play_wrong(struct driver *x, uint32_t call)
{
    int status = FSDP_OK;

    if (script_calls[call].when == SCRIPT_UNTRAINED) {
        return play_offer(x, call);
    }
    if (x->serial || (calls[call] == unshard_all && !x->engine.unshard_all)) {
        return FSDP_OK;
    }
    FSDP_TRY(calls[call](x, &status));
    FSDP_TRY(drive_answer(x, script_calls[call].name, status));
    return call == SCRIPT_CALL_LOAD_DAMAGED ? play_note_outside(x) : FSDP_OK;
}
