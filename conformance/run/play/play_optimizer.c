/* SPDX-License-Identifier: Apache-2.0 */
/*
 * play_optimizer.c - shards with parameter groups, and makes steps. The groups
 * are given to shard in an array that is there for the call only, and lies
 * elsewhere on every rank; each step then has numbers for each group. The norm
 * of a step's gradients, as the engine answers it to a clip, is noted in bits
 * beside the answers.
 */
#include "run/play/play.h"

#include "cases/case_factors.h"

#include <fsdp/arith/bits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    N_NUMBERS = 4 /* numbers that a group may have of its own */
};

/* Gives each group its own numbers, in arrays of the caller. */
static void give_numbers(const struct run_case *c,
                         float to[N_NUMBERS][SCRIPT_MAX_GROUPS],
                         struct fsdp_options *options)
{
    for (uint32_t g = 0; g < CASE_MAX_GROUPS; g++) {
        struct case_numbers n;

        (void)case_numbers_of_group(c, g, &n);
        to[0][g] = n.momentum;
        to[1][g] = n.beta1;
        to[2][g] = n.beta2;
        to[3][g] = n.eps;
    }
    options->momentum_of_group = to[0];
    options->beta1_of_group = to[1];
    options->beta2_of_group = to[2];
    options->eps_of_group = to[3];
}

/* Gives each group the numbers that the script says; the options hold for the
 * others. */
static void give_said(const struct script *s,
                      float to[N_NUMBERS][SCRIPT_MAX_GROUPS],
                      struct fsdp_options *options)
{
    const struct script_list *const list[N_NUMBERS] = {
        &s->numbers.momentum, &s->numbers.beta1, &s->numbers.beta2,
        &s->numbers.eps};
    const float **const option[N_NUMBERS] = {
        &options->momentum_of_group, &options->beta1_of_group,
        &options->beta2_of_group, &options->eps_of_group};

    for (uint32_t i = 0; i < N_NUMBERS; i++) {
        memcpy(to[i], list[i]->x, sizeof(to[i]));
        *option[i] = list[i]->n > 1 ? to[i] : *option[i];
    }
}

/* Whether structs have the sizes of other callers: in cases that make mistakes,
 * and in one more scenario. */
static bool plays_sizes(const struct driver *x, uint32_t too)
{
    const uint32_t scenario = x->d->c->scenario;

    return !x->serial && (scenario == CASE_MISUSE || scenario == too);
}

int play_shard(struct driver *x)
{
    const uint32_t n_groups = x->d->script->groups;
    struct fsdp_options options = x->options;
    const uint32_t n = x->told.n_parameters;
    const uint32_t elsewhere = x->env.rank * 4; /* an address of its own on each
                                                   rank */
    uint32_t *made = calloc((size_t)n + elsewhere + 1, sizeof(*made));
    uint32_t *group = made ? made + elsewhere : NULL;
    const bool own = case_has_numbers(x->d->c);
    float numbers[N_NUMBERS][SCRIPT_MAX_GROUPS];
    int status;

    if (!group) {
        return FSDP_ERR_NOMEM;
    }
    for (uint32_t p = 0; p < n; p++) {
        group[p] =
            own ? case_group_of(x->d->c, p) : script_group_of(n_groups, p);
    }
    if (n_groups > 1 || own) {
        options.n_groups = n_groups;
        options.group_of_parameter = group;
    }
    if (own) {
        give_numbers(x->d->c, numbers, &options);
    } else {
        give_said(x->d->script, numbers, &options);
    }
    status = plays_sizes(x, CASE_CLIP)
                 ? play_shard_sizes(x, &options)
                 : x->engine.shard(&x->env, &x->told, x->units, &options,
                                   &x->sharded);
    memset(group, 0xff, n * sizeof(*group)); /* an engine that still reads it is
                                                wrong */
    memset(numbers, 0xff, sizeof(numbers));
    free(made);
    return status;
}

/* Writes a number for each group, from one for all or one each. */
static void spread(uint32_t n, const float *from, uint32_t groups, float *to)
{
    for (uint32_t g = 0; g < groups; g++) {
        to[g] = from[n == 1 ? 0 : g];
    }
}

/* ---- The scale of the loss ---------------------------------------------- */

void play_begin_scale(struct driver *x)
{
    const struct script_scale *scale = &x->d->script->scale;

    x->scaler = fsdp_scaler_default();
    x->scaler.scale = ldexpf(1.0f, scale->exponent);
    x->scaler.least = ldexpf(1.0f, -SCRIPT_MOST_SCALE);
    x->scaler.most = ldexpf(1.0f, SCRIPT_MOST_SCALE);
    x->scaler.interval = scale->every > 0 ? scale->every : 1;
}

float play_inverse_scale(const struct driver *x)
{
    if (!x->d->script->scale.said) {
        return 0.0f;
    }
    return x->unscaled ? 1.0f : fsdp_scaler_inverse(&x->scaler);
}

static int take_found(struct driver *x, uint32_t found_inf)
{
    const struct script_scale *scale = &x->d->script->scale;
    char name[CASE_NORM_BYTES];

    if (!scale->said) {
        return FSDP_OK;
    }
    x->unscaled = x->unscaled || found_inf == 0;
    if (scale->every > 0) {
        x->scaler = fsdp_scaler_after(x->scaler, found_inf != 0);
    }
    snprintf(name, sizeof(name), "found-action-%u", x->step + 1);
    return x->by_action ? drive_answer_number(x, name, found_inf) : FSDP_OK;
}

/* ---- Steps -------------------------------------------------------------- */

/* A step as a script says it, with its arrays. */
struct said_step {
    float lr[SCRIPT_MAX_GROUPS + 1], decay[SCRIPT_MAX_GROUPS];
    struct fsdp_step step;
};

static void say_step(const struct driver *x, const struct script_action *a,
                     struct said_step *out)
{
    const uint32_t groups = x->d->script->groups;

    out->step =
        (struct fsdp_step){.size = sizeof(out->step),
                           .n_groups = groups,
                           .lr = out->lr,
                           .weight_decay = a->n_decay > 0 ? out->decay : NULL,
                           .inverse_scale = play_inverse_scale(x),
                           .found_inf = 1};
    spread(a->n_lr, a->lr, groups, out->lr);
    spread(a->n_decay, a->decay, groups, out->decay);
}

int play_step(struct driver *x, const struct script_action *a)
{
    struct said_step said;
    struct fsdp_step *step = &said.step;

    say_step(x, a, &said);
    drive_place(x, RACE_AT_STEP, 0);
    FSDP_TRY(plays_sizes(x, CASE_MISUSE) ? play_step_sizes(x, step)
                                         : x->engine.step(x->sharded, step));
    x->stepped = true;
    FSDP_TRY(take_found(x, step->found_inf));
    FSDP_TRY(play_note_moment(x, RECORD_POINT_STEP, 0));
    return a->finite ? drive_answer(x, "found-inf", (int)step->found_inf)
                     : FSDP_OK;
}

/* The step is spoilt after the call: an engine that still reads it is wrong. */
static int set_step(struct driver *x, struct said_step *said)
{
    const int status = x->engine.set_step
                           ? x->engine.set_step(x->sharded, &said->step)
                           : FSDP_ERR_INVALID; /* the engine claims it */

    memset(said, 0xff, sizeof(*said));
    return status;
}

int play_backward_step(struct driver *x, const struct script_action *a)
{
    struct said_step said;

    say_step(x, a, &said);
    drive_place(x, RACE_AT_STEP, 0);
    return set_step(x, &said);
}

/* Gives a step with the case's own rate, but for what is wrong in it. */
int play_wrong_backward_step(struct driver *x, const struct play_wrong *how,
                             int *status)
{
    const struct script_action usual = {.n_lr = 1, .lr = {x->d->c->lr}};
    struct said_step said;

    say_step(x, &usual, &said);
    said.step.n_groups += how->more;
    said.lr[said.step.n_groups - 1] = x->d->c->lr;
    said.step.inverse_scale = how->value;
    *status = set_step(x, &said);
    return FSDP_OK;
}

int play_zero(struct driver *x, const struct script_action *a)
{
    (void)a;
    drive_place(x, RACE_AT_ZERO_GRAD, 0);
    FSDP_TRY(x->engine.zero_grad(x->sharded));
    x->unscaled = false;
    return play_note_moment(x, RECORD_POINT_ZERO_GRAD, 0);
}

int play_clip(struct driver *x, const struct script_action *a)
{
    const struct fsdp_clip clip = {.size = sizeof(clip),
                                   .max_norm = a->max_norm,
                                   .p = a->p,
                                   .error_if_nonfinite = a->strict,
                                   .inverse_scale = play_inverse_scale(x)};
    char name[CASE_NORM_BYTES];
    float norm = NAN;

    if (!x->engine.clip_grad_norm) {
        return FSDP_ERR_INVALID; /* the engine claims it */
    }
    drive_place(x, RACE_AT_STEP, 0);
    FSDP_TRY(x->engine.clip_grad_norm(x->sharded, &clip, &norm));
    x->unscaled = clip.inverse_scale != 0.0f;
    if (x->by_action) {
        snprintf(name, sizeof(name), "norm-action-%u", x->step + 1);
        return drive_answer_number(x, name, fsdp_f32_bits(norm));
    }
    case_norm_name(x->clips++, x->step, name);
    return x->recording ? drive_answer_number(x, name, fsdp_f32_bits(norm))
                        : FSDP_OK;
}
