/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frozen_mutants.c - engines that do for frozen parameters what only trainable
 * ones need: change them, reduce them, keep states, count their gradients.
 */
#include "mutants/mutant_kit.h"

#include "models/workload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_frozen(uint32_t p)
{
    return (mutant_real.model->parameter_flags[p] & FSDP_FROZEN) != 0;
}

/* Whether a unit has a frozen parameter, or one that is not frozen. */
static bool unit_has(const struct fsdp_model *model,
                     const struct fsdp_units *units, uint32_t u, bool frozen)
{
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        if (fsdp_unit_of(model, units, p) == u &&
            ((model->parameter_flags[p] & FSDP_FROZEN) != 0) == frozen) {
            return true;
        }
    }
    return false;
}

static bool is_frozen_unit(uint32_t u)
{
    return u < mutant_real.units->n_units &&
           !unit_has(mutant_real.model, mutant_real.units, u, false) &&
           unit_has(mutant_real.model, mutant_real.units, u, true);
}

/* ---- Which cases show it ------------------------------------------------ */

static bool trains_some(const struct run_case *c)
{
    return c->frozen == WORKLOAD_FROZEN_ALTERNATE &&
           c->scenario == CASE_TRAIN && strcmp(c->workload, "mlp") == 0 &&
           c->strategy == CASE_FULL_SHARD && c->microbatches == 1 &&
           c->precision == CASE_F32;
}

/* Each layer is a unit, every second of them frozen. */
static bool has_frozen_units(const struct run_case *c)
{
    return trains_some(c) && c->wrap == CASE_WRAP_LAYER;
}

/* Every unit has a frozen layer and one that is not. */
static bool has_mixed_units(const struct run_case *c)
{
    return trains_some(c) && c->wrap == CASE_WRAP_PAIR &&
           c->layout == FSDP_LAYOUT_FLAT;
}

static bool has_mixed_rows(const struct run_case *c)
{
    return trains_some(c) && c->wrap == CASE_WRAP_PAIR &&
           c->layout == FSDP_LAYOUT_PER_PARAMETER;
}

static bool clips_some(const struct run_case *c)
{
    return c->frozen != WORKLOAD_TRAINS_ALL && c->scenario == CASE_CLIP;
}

static bool disagrees_on_some(const struct run_case *c)
{
    return c->frozen != WORKLOAD_TRAINS_ALL && c->scenario == CASE_DISAGREE;
}

static bool resumes_some(const struct run_case *c)
{
    return c->frozen != WORKLOAD_TRAINS_ALL && c->scenario == CASE_RESUME;
}

static bool misuses_some(const struct run_case *c)
{
    return c->frozen != WORKLOAD_TRAINS_ALL && c->scenario == CASE_MISUSE;
}

/* ---- The flag is not looked at ------------------------------------------ */

/* Shards the model as if frozen parameters were trainable: those in mixed units
 * (`of` is 1), or those in units that are frozen as a whole. */
static int shard_thawed(struct mutant_told *t, const struct fsdp_env *env)
{
    const struct fsdp_model *model = mutant_real.model;
    const struct fsdp_units *units = mutant_real.units;
    const bool in_mixed = mutant_of() != 0;

    (void)env;
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        if (unit_has(model, units, fsdp_unit_of(model, units, p), false) ==
            in_mixed) {
            t->flags[p] &= ~(uint32_t)FSDP_FROZEN;
        }
    }
    return FSDP_OK;
}

/* All ranks shard as the last one is told, without a refusal. */
static int frozen_disagreed(struct mutant_told *t, const struct fsdp_env *env)
{
    uint64_t mine = 0;
    uint64_t all[64];

    for (uint32_t p = 0; p < t->model.n_parameters && p < 64; p++) {
        mine |= (uint64_t)(t->flags[p] & FSDP_FROZEN) << p;
    }
    FSDP_TRY(env->exchange(env->exchange_self, &mine, sizeof(mine), all));
    for (uint32_t p = 0; p < t->model.n_parameters && p < 64; p++) {
        t->flags[p] &= ~(uint32_t)FSDP_FROZEN;
        t->flags[p] |=
            (all[env->world - 1] >> p & 1) != 0 ? (uint32_t)FSDP_FROZEN : 0;
    }
    return FSDP_OK;
}

/* ---- They are changed --------------------------------------------------- */

static float decayed(float x)
{
    return x * (1.0f - 0x1p-10f);
}

static void decay_frozen(const struct fsdp_piece *piece)
{
    if (is_frozen(piece->parameter)) {
        (void)mutant_each(NULL, (float *)piece->value, piece->n, decayed);
    }
}

static int frozen_decays(struct fsdp_sharded *s, struct fsdp_step *how)
{
    FSDP_TRY(mutant_real.engine.step(s, how));
    return mutant_each_piece(s, decay_frozen);
}

/* As the life began. */
static void restart(const struct fsdp_piece *piece)
{
    const struct fsdp_model *m = mutant_real.model;
    float x;

    for (uint64_t i = 0; is_frozen(piece->parameter) && i < piece->n; i++) {
        (void)m->initial(m->context, piece->parameter, piece->first + i, 1, &x);
        (void)mutant_put(NULL, &x, 1, (float *)piece->value + i);
    }
}

/* ---- They are gathered once more ----------------------------------------- */

static bool recomputes_some(const struct run_case *c)
{
    return c->frozen != WORKLOAD_TRAINS_ALL && c->scenario == CASE_TRAIN &&
           c->recompute == WORKLOAD_RECOMPUTE_AROUND;
}

static bool in_frozen_recompute(void)
{
    return mutant_now.point == FSDP_PRE_RECOMPUTE &&
           is_frozen_unit(mutant_real.units->unit_of_module[mutant_now.index]);
}

/* ---- They have states --------------------------------------------------- */

static _Thread_local void *states;

static void states_forget(void)
{
    states = NULL;
}

static int frozen_states(const struct fsdp_env *env,
                         const struct fsdp_model *model,
                         const struct fsdp_units *units,
                         const struct fsdp_options *options,
                         struct fsdp_sharded **out)
{
    const struct fsdp_device *d = mutant_real.device;
    uint64_t n = 0;

    FSDP_TRY(mutant_real.engine.shard(env, model, units, options, out));
    for (uint32_t u = 0; u < units->n_units; u++) {
        n += is_frozen_unit(u) ? mutant_chunk(u) : 0;
    }
    n *= 2 * sizeof(float);
    FSDP_TRY(d->alloc(d->self, n, &states));
    d->live(d->self, NULL, FSDP_OPTIM, FSDP_NO_UNIT, states, n);
    return FSDP_OK;
}

static void frozen_states_destroy(struct fsdp_sharded *s)
{
    const struct fsdp_device *d = mutant_real.device;

    mutant_real.engine.destroy(s);
    if (states) {
        d->dead(d->self, NULL, states);
        d->free(d->self, states);
        states = NULL;
    }
}

/* ---- They have gradients ------------------------------------------------ */

/* Reduces a frozen unit's gradient, which was never computed. */
static int frozen_unit_reduced(struct fsdp_sharded *s, uint32_t point,
                               uint32_t index)
{
    const uint32_t u = point == FSDP_POST_BACKWARD
                           ? mutant_real.units->unit_of_module[index]
                           : FSDP_NO_UNIT;

    if (is_frozen_unit(u)) {
        FSDP_TRY(mutant_meet(FSDP_REDUCE_SCATTER, u));
    }
    return mutant_real.engine.at(s, point, index);
}

static void frozen_garbage(struct fsdp_collective *c)
{
    const float one = 1.0f;
    uint64_t at = 0;

    for (uint32_t p = 0; p < mutant_real.model->n_parameters; p++) {
        const uint64_t n = fsdp_numel(mutant_real.model, p);

        if (c->kind != FSDP_REDUCE_SCATTER || mutant_unit(p) != c->unit) {
            continue;
        }
        if (is_frozen(p) && n > 0) {
            (void)mutant_put(NULL, &one, 1, mutant_input(c) + at + n - 1);
        }
        at += n;
    }
}

/* Adds a gradient of 1, by which nothing is trained, to the norm. */
static int frozen_in_norm(struct fsdp_sharded *s, const struct fsdp_clip *how,
                          float *out_norm)
{
    FSDP_TRY(mutant_real.engine.clip_grad_norm(s, how, out_norm));
    *out_norm = how->p == 1.0f   ? *out_norm + 1.0f
                : how->p == 2.0f ? sqrtf(*out_norm * *out_norm + 1.0f)
                                 : fmaxf(*out_norm, 1.0f);
    return FSDP_OK;
}

/* Storage that is lent as a frozen parameter's gradient, and never read. */
static _Thread_local void *lent;

static bool is_lent(uint32_t p)
{
    return p < mutant_real.model->n_parameters && is_frozen(p) &&
           mutant_now.point == FSDP_PRE_BACKWARD &&
           mutant_now.index == mutant_real.model->parameter_module[p];
}

static int frozen_lent(struct fsdp_sharded *s, uint32_t p,
                       struct fsdp_tensor *out)
{
    int status = mutant_real.engine.grad(s, p, out);

    if (status == FSDP_ERR_INVALID && is_lent(p)) {
        out->data = mutant_room(&lent, sizeof(float[1 << 16]));
        return FSDP_OK;
    }
    return status;
}

static int frozen_unnamed(struct fsdp_sharded *s, uint32_t p,
                          struct fsdp_tensor *out)
{
    int status = mutant_real.engine.grad(s, p, out);
    char message[64];

    if (status == FSDP_ERR_INVALID && is_lent(p)) {
        snprintf(message, sizeof(message), "parameter %u is frozen", p);
        mutant_say(message);
    }
    return status;
}

/* ---- They stay unsharded ------------------------------------------------ */

static bool closes_frozen_unit(void)
{
    return mutant_now.point == FSDP_POST_BACKWARD &&
           is_frozen_unit(mutant_real.units->unit_of_module[mutant_now.index]);
}

const struct mutant frozen_mutants[] = {
    /* The engine treats the parameters of a frozen unit as if they had
     * gradients of 0. */
    {.name = "frozen-as-zero",
     .text = "a unit of which all is frozen is trained with gradients of 0",
     .evidence = "deepspeedai/DeepSpeed#2653",
     .kills = "comm.message-size comm.reduce-scatter-count frozen.no-reduce "
              "frozen.no-state memory.rest-after-shard reduce.fold",
     .shows = {.in = has_frozen_units},
     .told = shard_thawed},
    {.name = "frozen-decays",
     .text = "weight decay makes frozen parameters smaller",
     .evidence = "ahrefs/ocannl#673",
     .kills = "frozen.unchanged step.adamw",
     .shows = {.in = has_mixed_units},
     .calls.step = frozen_decays},
    {.name = "frozen-disagreed",
     .text = "what is frozen is not among what ranks compare",
     .evidence = "pytorch/pytorch#91167: requires_grad is each rank's own",
     .kills = "error.frozen-disagree",
     .shows = {.in = disagrees_on_some},
     .told = frozen_disagreed},
    {.name = "frozen-gradient-garbage",
     .text = "in a flat gradient the place of a frozen parameter is not +0",
     .evidence = "pytorch/pytorch#91167: FSDP1 with use_orig_params reduces "
                 "what frozen parameters got",
     .kills = "frozen.zeros",
     .shows = {.in = has_mixed_units},
     .collective = frozen_garbage},
    {.name = "frozen-gathered-again",
     .text = "a frozen unit is gathered for its recomputation, and again for "
             "its backward",
     .evidence = "microsoft/DeepSpeed#8130",
     .kills = "comm.all-gather-count parameter-units.gathers",
     .shows = {.in = recomputes_some},
     .fault = {MUTANT_REPEATS_COLLECTIVE, FSDP_ALL_GATHER},
     .when = in_frozen_recompute},
    {.name = "frozen-in-norm",
     .text = "the norm counts a gradient in the place of a frozen parameter",
     .evidence = "facebookresearch/fairscale#1167, ahrefs/ocannl#673",
     .kills = "clip.norm frozen.not-in-norm",
     .shows = {.in = clips_some},
     .calls.clip_grad_norm = frozen_in_norm},
    {.name = "frozen-lent",
     .text = "a gradient of a frozen parameter is lent, and left where it is",
     .evidence = "facebookresearch/fairscale#721",
     .kills = "frozen.no-gradient",
     .shows = {.in = misuses_some},
     .calls.grad = frozen_lent},
    {.name = "frozen-not-saved",
     .text = "a checkpoint has what the optimizer steps, and no frozen "
             "parameters",
     .evidence = "deepspeedai/DeepSpeed#3090",
     .kills = "checkpoint.canonical checkpoint.parameters frozen.saved "
              "frozen.unchanged num.loss-finite",
     .shows = {.in = resumes_some},
     .loaded = restart},
    {.name = "frozen-rows-reduced",
     .text =
         "by rows, a mixed unit's frozen parameters are reduced and stepped "
         "with gradients of 0",
     .evidence = "pytorch/pytorch#91167: a gradient as large as the unit",
     .kills = "comm.message-size frozen.no-state frozen.reduce-size "
              "memory.rest-after-shard reduce.fold",
     .shows = {.in = has_mixed_rows},
     .fault = {.of = 1},
     .told = shard_thawed},
    {.name = "frozen-states",
     .text = "frozen units have states that nobody needs",
     .evidence = "pytorch/pytorch#159751",
     .kills = "frozen.no-state memory.rest-after-shard",
     .shows = {.in = has_frozen_units},
     .calls = {.shard = frozen_states, .destroy = frozen_states_destroy},
     .forget = states_forget},
    {.name = "frozen-unit-kept",
     .text = "a frozen unit stays unsharded from its backward to the end of "
             "the pass",
     .evidence = "pytorch/pytorch#95805, pytorch/xla#5484: only a gradient's "
                 "hook reshards",
     .kills = "frozen.reshards memory.peak-unsharded",
     .shows = {.in = has_frozen_units},
     .fault = {MUTANT_HOLDS, FSDP_PARAM_FULL, FSDP_END},
     .when = closes_frozen_unit},
    {.name = "frozen-unit-reduced",
     .text = "a unit of which all is frozen is reduced",
     .evidence = "a reduction for each unit that was open in the backward",
     .kills = "comm.message-size comm.reduce-scatter-count frozen.no-reduce",
     .shows = {.in = has_frozen_units},
     .calls.at = frozen_unit_reduced},
    {.name = "frozen-unnamed",
     .text = "a gradient of a frozen parameter is refused by number alone",
     .evidence =
         "pytorch/pytorch#104427: which of them are frozen, it did not say",
     .kills = "frozen.no-gradient",
     .shows = {.in = misuses_some},
     .calls.grad = frozen_unnamed},
    {0},
};
