/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parameter_unit_mutants.c - engines that look only at modules where some
 * parameters of a module are in another unit, and engines that do something
 * with ignored parameters.
 */
#include "mutants/mutant_kit.h"

#include <math.h>
#include <string.h>

static bool is_ignored(const struct fsdp_model *model,
                       const struct fsdp_units *units, uint32_t p)
{
    return fsdp_unit_of(model, units, p) == FSDP_NO_UNIT;
}

static bool ignores_now(uint32_t p)
{
    return p < mutant_real.model->n_parameters &&
           is_ignored(mutant_real.model, mutant_real.units, p);
}

/* ---- Which cases show it ------------------------------------------------ */

static bool trains(const struct run_case *c)
{
    return c->scenario == CASE_TRAIN && c->strategy == CASE_FULL_SHARD &&
           c->layout == FSDP_LAYOUT_FLAT && c->microbatches == 1 &&
           c->precision == CASE_F32 && c->recompute == WORKLOAD_KEEPS;
}

static bool trains_apart(const struct run_case *c)
{
    return trains(c) && c->wrap == CASE_WRAP_APART;
}

static bool trains_ignoring(const struct run_case *c)
{
    return trains(c) && c->wrap == CASE_WRAP_IGNORE;
}

static bool misuses_ignored(const struct run_case *c)
{
    return c->scenario == CASE_MISUSE && c->wrap == CASE_WRAP_IGNORE;
}

static bool clips_ignoring(const struct run_case *c)
{
    return c->scenario == CASE_CLIP && c->wrap == CASE_WRAP_IGNORE;
}

static bool disagrees_on_units(const struct run_case *c)
{
    return c->scenario == CASE_DISAGREE && c->wrap == CASE_WRAP_APART;
}

static bool disagrees_on_ignored(const struct run_case *c)
{
    return c->scenario == CASE_DISAGREE && c->wrap == CASE_WRAP_IGNORE;
}

/* ---- It is sharded as something else ------------------------------------ */

static _Thread_local uint32_t of_first[MUTANT_MOST_PARAMETERS];

/* The units of the first model serve each later one in the process. */
static int units_of_first(struct mutant_told *t, const struct fsdp_env *env)
{
    (void)env;
    mutant_told_units(t);
    memcpy(mutant_now.lives == 1 ? of_first : t->unit,
           mutant_now.lives == 1 ? t->unit : of_first, sizeof(of_first));
    return FSDP_OK;
}

/* Shards ignored parameters in their module's unit, frozen as they are, or
 * trained (`of` is 1). */
static int shard_ignored(struct mutant_told *t, const struct fsdp_env *env)
{
    const struct fsdp_model *model = mutant_real.model;
    const struct fsdp_units *units = mutant_real.units;
    const bool trained = mutant_of() != 0;

    (void)env;
    mutant_told_units(t);
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        if (is_ignored(model, units, p) &&
            model->parameter_module[p] < model->n_modules) {
            t->unit[p] = units->unit_of_module[model->parameter_module[p]];
            t->flags[p] &= trained ? ~(uint32_t)FSDP_FROZEN : UINT32_MAX;
        }
    }
    return FSDP_OK;
}

/* Gives initial values also to ignored parameters, which have none to ask
 * for. */
static int initial_of_all(void *context, uint32_t p, uint64_t first, uint64_t n,
                          void *out)
{
    if (!ignores_now(p)) {
        return mutant_initial(context, p, first, n, out);
    }
    for (uint64_t i = 0; i < n; i++) {
        ((float *)out)[i] = 0.5f;
    }
    return FSDP_OK;
}

/* A unit number beyond the last is accepted as the last. */
static int unit_accepted(struct mutant_told *t, const struct fsdp_env *env)
{
    (void)env;
    if (!t->units.unit_of_parameter) {
        return FSDP_OK;
    }
    mutant_told_units(t);
    for (uint32_t p = 0; p < t->model.n_parameters; p++) {
        if (t->unit[p] != FSDP_NO_UNIT && t->unit[p] >= t->units.n_units) {
            t->unit[p] = t->units.n_units - 1;
        }
    }
    return FSDP_OK;
}

/* A tied parameter is in the unit of its original, whatever unit is given for
 * it. */
static int tie_ignored(struct mutant_told *t, const struct fsdp_env *env)
{
    (void)env;
    if (!t->units.unit_of_parameter) {
        return FSDP_OK;
    }
    mutant_told_units(t);
    for (uint32_t p = 0; p < t->model.n_parameters; p++) {
        t->unit[p] = t->unit[fsdp_original(&t->model, p)];
    }
    return FSDP_OK;
}

static int unit_unnamed(const struct fsdp_env *env,
                        const struct fsdp_model *model,
                        const struct fsdp_units *units,
                        const struct fsdp_options *options,
                        struct fsdp_sharded **out)
{
    const int status =
        mutant_real.engine.shard(env, model, units, options, out);

    for (uint32_t p = 0; status != FSDP_OK && p < model->n_parameters; p++) {
        const uint32_t u = fsdp_unit_of(model, units, p);

        if (u != FSDP_NO_UNIT && u >= units->n_units) {
            mutant_say("a parameter's unit is none");
        }
    }
    return status;
}

/* All ranks put the last parameter where the last rank says. */
static int units_disagreed(struct mutant_told *t, const struct fsdp_env *env)
{
    const uint32_t last = t->model.n_parameters - 1;
    uint32_t all[CASE_MAX_RANKS];

    mutant_told_units(t);
    FSDP_TRY(env->exchange(env->exchange_self, &t->unit[last],
                           sizeof(t->unit[last]), all));
    t->unit[last] = all[env->world - 1];
    return FSDP_OK;
}

/* ---- It is gathered, or reduced, by modules ----------------------------- */

/* Whether a unit has a module. */
static bool has_module(uint32_t u)
{
    for (uint32_t m = 0; m < mutant_real.model->n_modules; m++) {
        if (mutant_real.units->unit_of_module[m] == u) {
            return true;
        }
    }
    return false;
}

/* Gathers a unit without a module again for each module that has a parameter in
 * it. */
static int gathered_by_module(struct fsdp_sharded *s, uint32_t point,
                              uint32_t index)
{
    for (uint32_t p = 0;
         point == FSDP_PRE_FORWARD && p < mutant_real.model->n_parameters;
         p++) {
        if (mutant_real.model->parameter_module[p] == index &&
            !ignores_now(p) && !has_module(mutant_unit(p))) {
            FSDP_TRY(mutant_meet(FSDP_ALL_GATHER, mutant_unit(p)));
            break;
        }
    }
    return mutant_real.engine.at(s, point, index);
}

/* Makes a reduction for a module's frozen unit, as other parameters of the
 * module are trained. */
static int reduced_by_module(struct fsdp_sharded *s, uint32_t point,
                             uint32_t index)
{
    const bool own = point == FSDP_POST_BACKWARD &&
                     mutant_real.units->unit_of_module[index] != FSDP_NO_UNIT;

    FSDP_TRY(mutant_real.engine.at(s, point, index));
    for (uint32_t p = 0; own && p < mutant_real.model->n_parameters; p++) {
        if (mutant_real.model->parameter_module[p] == index &&
            !has_module(mutant_unit(p))) {
            return mutant_meet(FSDP_REDUCE_SCATTER,
                               mutant_real.units->unit_of_module[index]);
        }
    }
    return FSDP_OK;
}

/* Refuses a parameter of another unit, as its module has opened only its own
 * unit. */
static int one_opens(struct fsdp_sharded *s, uint32_t p,
                     struct fsdp_tensor *out)
{
    if (!mutant_now.in_pass || p >= mutant_real.model->n_parameters ||
        ignores_now(p) || has_module(mutant_unit(p))) {
        return mutant_real.engine.param(s, p, out);
    }
    *out = (struct fsdp_tensor){0};
    mutant_real.env->error->status = FSDP_ERR_INVALID;
    mutant_real.env->error->rank = (int32_t)mutant_real.rank;
    strcpy(mutant_real.env->error->where, "param");
    mutant_say("outside its unit's window");
    return FSDP_ERR_INVALID;
}

/* ---- Something of what is ignored --------------------------------------- */

/* Reduces the gradient of an ignored parameter, which has none, with its
 * module's. */
static int ignored_reduced(struct fsdp_sharded *s, uint32_t point,
                           uint32_t index)
{
    FSDP_TRY(mutant_real.engine.at(s, point, index));
    for (uint32_t p = 0;
         point == FSDP_POST_BACKWARD && p < mutant_real.model->n_parameters;
         p++) {
        if (mutant_real.model->parameter_module[p] == index && ignores_now(p)) {
            return mutant_meet(FSDP_REDUCE_SCATTER,
                               mutant_real.units->unit_of_module[index]);
        }
    }
    return FSDP_OK;
}

static _Thread_local void *lent;

static int ignored_lent(struct fsdp_sharded *s, uint32_t p,
                        struct fsdp_tensor *out)
{
    const int status = mutant_real.engine.param(s, p, out);

    if (status == FSDP_ERR_INVALID && ignores_now(p)) {
        out->data = mutant_room(&lent, sizeof(float[1 << 12]));
        return FSDP_OK;
    }
    return status;
}

static int ignored_unnamed(struct fsdp_sharded *s, uint32_t p,
                           struct fsdp_tensor *out)
{
    const int status = mutant_real.engine.param(s, p, out);

    if (status == FSDP_ERR_INVALID && ignores_now(p)) {
        mutant_say("a parameter is ignored");
    }
    return status;
}

/* Adds a number to the norm that differs between ranks, as gradients of ignored
 * parameters do. */
static int ignored_in_norm(struct fsdp_sharded *s, const struct fsdp_clip *how,
                           float *out_norm)
{
    const float own = 1.0f + (float)mutant_real.rank;

    FSDP_TRY(mutant_real.engine.clip_grad_norm(s, how, out_norm));
    *out_norm = how->p == 1.0f   ? *out_norm + own
                : how->p == 2.0f ? sqrtf(*out_norm * *out_norm + own * own)
                                 : fmaxf(*out_norm, own);
    return FSDP_OK;
}

const struct mutant parameter_unit_mutants[] = {
    {.name = "parameter-units-ignored",
     .text = "parameters are in their modules' units, whatever is said of them",
     .evidence =
         "FullyShardedDataParallel: at most one flat parameter a module",
     .kills = "comm.all-gather-count comm.message-size frozen.no-reduce "
              "frozen.no-state frozen.reshards layout.chunk-rule "
              "memory.rest-after-shard parameter-units.gathers",
     .shows = {.in = trains_apart},
     .fault = {MUTANT_UNTELLS, MUTANT_UNITS(unit_of_parameter)}},
    {.name = "parameter-units-by-module",
     .text = "a unit of parameters is gathered for each module that uses it",
     .evidence = "hooks of each module that know nothing of the others",
     .kills = "comm.all-gather-count parameter-units.gathers",
     .shows = {.in = trains_apart},
     .calls.at = gathered_by_module},
    {.name = "parameter-units-one-opens",
     .text = "a module opens one of the units that own its parameters",
     .evidence = "one flat parameter a module, where there are two",
     .kills = "run.completes",
     .shows = {.in = trains_apart},
     .calls.param = one_opens},
    {.name = "parameter-units-reduced-by-module",
     .text = "a frozen unit is reduced where its modules have another that "
             "trains",
     .evidence = "a hook that asks whether its module has a gradient",
     .kills = "comm.message-size comm.reduce-scatter-count "
              "frozen.no-reduce memory.storage-total "
              "parameter-units.gathers",
     .shows = {.in = trains_apart},
     .calls.at = reduced_by_module},
    {.name = "parameter-units-accepted",
     .text = "a parameter's unit that is none is taken for the last one",
     .evidence = "an index that is clamped",
     .kills = "error.parameter-units",
     .shows = {.in = mutant_bad_options},
     .told = unit_accepted},
    {.name = "parameter-units-unnamed",
     .text = "a parameter's unit that is none is refused, and not said whose",
     .evidence = "FlatParameter requires uniform requires_grad: not which",
     .kills = "error.parameter-units",
     .shows = {.in = mutant_bad_options},
     .calls.shard = unit_unnamed},
    {.name = "parameter-units-disagreed",
     .text = "units of parameters are not among what ranks compare",
     .evidence = "PyTorch compares nothing: the first collective aborts",
     .kills = "error.parameter-units-disagree",
     .shows = {.in = disagrees_on_units},
     .told = units_disagreed},
    {.name = "parameter-units-unclaimed",
     .text = "units of parameters are not claimed, and taken all the same",
     .evidence = "a field that is read, and nowhere promised",
     .kills = "error.unclaimed",
     .shows = {.in = mutant_bad_options},
     .drops = "parameter-units ignored"},
    {.name = "ignored-tie-accepted",
     .text = "a tied parameter that is ignored has its original's unit all the "
             "same",
     .evidence =
         "facebookresearch/lingua#75: ties across wraps, taken silently",
     .kills = "ignored.tied",
     .shows = {.in = mutant_bad_options},
     .told = tie_ignored},
    {.name = "units-of-first-model",
     .text = "a model has the units of the first that was sharded in its "
             "process, which was refused",
     .evidence = "a plan that is cached for the whole process",
     .kills = "run.completes",
     .shows = {.script = "units-disagree"},
     .told = units_of_first},
    {.name = "ignored-takes-place",
     .text = "what is ignored has its place in its module's unit",
     .evidence = "an ignored parameter that is flattened all the same",
     .kills = "comm.message-size frozen.no-state frozen.reduce-size "
              "frozen.reshards ignored.untouched layout.chunk-rule "
              "memory.rest-after-shard",
     .shows = {.in = trains_ignoring},
     .initial = initial_of_all,
     .told = shard_ignored},
    {.name = "ignored-stepped",
     .text = "what is ignored is sharded, and stepped, as all else",
     .evidence =
         "an optimizer that is made of all parameters, ignored ones too",
     .kills = "comm.message-size comm.reduce-scatter-count "
              "frozen.no-reduce frozen.no-state frozen.reduce-size "
              "frozen.reshards ignored.untouched layout.chunk-rule "
              "memory.rest-after-shard parameter-units.gathers",
     .shows = {.in = trains_ignoring},
     .initial = initial_of_all,
     .fault = {.of = 1},
     .told = shard_ignored},
    {.name = "ignored-reduced",
     .text = "a module of which something is ignored is reduced once more",
     .evidence = "a hook on each parameter that requires a gradient",
     .kills = "comm.message-size comm.reduce-scatter-count "
              "frozen.no-reduce memory.storage-total "
              "parameter-units.gathers",
     .shows = {.in = trains_ignoring},
     .calls.at = ignored_reduced},
    {.name = "ignored-lent",
     .text = "what is ignored can be asked for",
     .evidence = "storage that nobody trains",
     .kills = "ignored.refused",
     .shows = {.in = misuses_ignored},
     .calls.param = ignored_lent},
    {.name = "ignored-unnamed",
     .text = "what is ignored is refused, and not said which it is",
     .evidence = "an error that names no parameter",
     .kills = "frozen.no-gradient ignored.refused",
     .shows = {.in = misuses_ignored},
     .calls.param = ignored_unnamed},
    {.name = "ignored-in-norm",
     .text = "the norm counts what is ignored, each rank its own",
     .evidence = "FullyShardedDataParallel.clip_grad_norm_: ignored gradients "
                 "of each rank's own",
     .kills = "clip.norm frozen.not-in-norm ignored.not-in-norm",
     .shows = {.in = clips_ignoring},
     .calls.clip_grad_norm = ignored_in_norm},
    {.name = "ignored-disagreed",
     .text = "what is ignored is not among what ranks compare",
     .evidence = "PyTorch compares nothing: the first collective aborts",
     .kills = "error.ignored-disagree",
     .shows = {.in = disagrees_on_ignored},
     .told = units_disagreed},
    {0},
};
