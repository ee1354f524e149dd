/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_options.c - what the engine refuses: options that do not fit, and
 * options that it does not claim. Each refusal names the option.
 */
#include "impl_calls.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define WHERE "impl.shard"

static int check_mesh(const struct fsdp_env *env)
{
    const struct fsdp_mesh *mesh = env->mesh;

    if (!mesh || mesh->n_dims != 2 || !mesh->extent) {
        return impl_fail(env, FSDP_ERR_INVALID, WHERE,
                         "the mesh must have the dimensions replicate, shard");
    }
    if (mesh->extent[0] == 0 || mesh->extent[1] == 0 ||
        (uint64_t)mesh->extent[0] * mesh->extent[1] != env->world ||
        env->rank >= env->world) {
        return impl_fail(env, FSDP_ERR_INVALID, WHERE,
                         "mesh %u x %u is not a world of %u ranks with a rank "
                         "%u",
                         mesh->extent[0], mesh->extent[1], env->world,
                         env->rank);
    }
    return FSDP_OK;
}

static int check_buffer(const struct fsdp_env *env,
                        const struct fsdp_model *model, uint32_t b)
{
    const bool begins =
        model->size >= offsetof(struct fsdp_model, initial_buffer) +
                           sizeof(model->initial_buffer) &&
        model->initial_buffer;

    return begins && model->buffer_module[b] < model->n_modules &&
                   fsdp_dtype_bytes(model->buffer_dtype[b]) > 0
               ? FSDP_OK
               : impl_fail(env, FSDP_ERR_INVALID, WHERE,
                           "buffer %s: module %u of %u, dtype %u, %s",
                           model->buffer_name[b], model->buffer_module[b],
                           model->n_modules, model->buffer_dtype[b],
                           begins ? "with initial values"
                                  : "without initial_buffer");
}

static int check_model(const struct fsdp_env *env,
                       const struct fsdp_model *model)
{
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        const char *name = model->parameter_name[p];
        if (model->parameter_module[p] >= model->n_modules ||
            model->parameter_n_dims[p] > FSDP_MAX_DIMS) {
            return impl_fail(env, FSDP_ERR_INVALID, WHERE,
                             "parameter %s has module %u of %u, %u dimensions",
                             name, model->parameter_module[p], model->n_modules,
                             model->parameter_n_dims[p]);
        }
        if (model->parameter_dtype[p] != FSDP_DTYPE_F32) {
            return impl_fail(env, FSDP_ERR_UNSUPPORTED, WHERE,
                             "parameter %s is not float32", name);
        }
    }
    for (uint32_t b = 0; b < model->n_buffers; b++) {
        FSDP_TRY(check_buffer(env, model, b));
    }
    return FSDP_OK;
}

static bool has_same_shape(const struct fsdp_model *model, uint32_t p,
                           uint32_t q)
{
    return model->parameter_n_dims[p] == model->parameter_n_dims[q] &&
           memcmp(model->parameter_shape[p], model->parameter_shape[q],
                  model->parameter_n_dims[p] * sizeof(uint64_t)) == 0;
}

/* Why parameter p cannot be another name of q, or NULL. */
static const char *cannot_tie(const struct fsdp_model *model,
                              const struct fsdp_units *units, uint32_t p,
                              uint32_t q)
{
    return q >= p                         ? "is not before it"
           : fsdp_original(model, q) != q ? "is tied itself"
           : !has_same_shape(model, p, q) ? "has another shape"
           : model->parameter_dtype[p] != model->parameter_dtype[q]
               ? "has another dtype"
           : model->parameter_flags[p] != model->parameter_flags[q]
               ? "has other flags"
           : fsdp_unit_of(model, units, p) != fsdp_unit_of(model, units, q)
               ? "is in another unit"
               : NULL;
}

static int check_ties(const struct fsdp_env *env,
                      const struct fsdp_model *model,
                      const struct fsdp_units *units)
{
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        const char *name = model->parameter_name[p];
        uint32_t q = fsdp_original(model, p);
        bool tied = model->parameter_alias && model->parameter_alias[p] >= 0;
        const char *why;

        if (q >= model->n_parameters) {
            return impl_fail(env, FSDP_ERR_INVALID, WHERE,
                             "%s is tied to parameter %u of %u", name, q,
                             model->n_parameters);
        }
        why = tied ? cannot_tie(model, units, p, q) : NULL;
        if (why) {
            return impl_fail(env, FSDP_ERR_INVALID, WHERE,
                             "%s is tied to %s, which %s", name,
                             model->parameter_name[q], why);
        }
    }
    return FSDP_OK;
}

static int check_factor(const struct fsdp_env *env, const char *name,
                        float factor, const char *of)
{
    if (!(factor >= 0.0f) || isinf(factor)) {
        return impl_fail(env, FSDP_ERR_INVALID, WHERE,
                         "%s %g%s is not a positive number", name,
                         (double)factor, of);
    }
    return FSDP_OK;
}

/* An option that says a dtype, and the largest number that stands for one. */
struct dtype_option {
    const char *name;
    uint32_t value, most;
};

/* One that is none is a mistake, others are not claimed. */
static int check_dtype(const struct fsdp_env *env,
                       const struct dtype_option *option, const char *of)
{
    if (option->value != FSDP_DTYPE_NONE &&
        fsdp_dtype_bytes(option->value) == 0) {
        return impl_fail(env, FSDP_ERR_INVALID, WHERE, "%s %u%s is no dtype",
                         option->name, option->value, of);
    }
    if (option->value > option->most) {
        return impl_fail(env, FSDP_ERR_UNSUPPORTED, WHERE,
                         "%s %u%s is not claimed; float32 (1) is%s",
                         option->name, option->value, of,
                         option->most > FSDP_DTYPE_F32
                             ? ", and bf16 (2) and float16 (3)"
                             : "");
    }
    return FSDP_OK;
}

/* Of the sum of a reduction: the wire's, or float32. */
static int check_sum(const struct fsdp_env *env, const struct fsdp_units *units,
                     const struct fsdp_options *o, uint32_t u)
{
    const struct impl_dtypes d = impl_dtypes_of(units, o, u);

    if (d.sum != d.reduce && d.sum != FSDP_DTYPE_F32) {
        return impl_fail(env, FSDP_ERR_INVALID, WHERE,
                         "sum_dtype %u of unit %u is neither its reduce_dtype, "
                         "%u, nor float32 (1)",
                         d.sum, u, d.reduce);
    }
    return FSDP_OK;
}

static int check_unit(const struct fsdp_env *env,
                      const struct fsdp_units *units, uint32_t u)
{
    char of[32];
    const struct {
        const char *name;
        const uint32_t *own;
        uint32_t most;
    } option[] = {
        {"param_dtype", units->param_dtype, FSDP_DTYPE_F16},
        {"grad_dtype", units->grad_dtype, FSDP_DTYPE_F16},
        {"accumulate_dtype", units->accumulate_dtype, FSDP_DTYPE_F16},
        {"reduce_dtype", units->reduce_dtype, FSDP_DTYPE_F16},
        {"sum_dtype", units->sum_dtype, FSDP_DTYPE_F16},
        {"output_dtype", units->output_dtype, FSDP_DTYPE_F32},
        {"buffer_dtype", units->buffer_dtype, FSDP_DTYPE_F16},
    };

    snprintf(of, sizeof(of), " of unit %u", u);
    for (uint32_t i = 0; i < sizeof(option) / sizeof(option[0]); i++) {
        if (option[i].own) {
            const struct dtype_option own = {option[i].name, option[i].own[u],
                                             option[i].most};

            FSDP_TRY(check_dtype(env, &own, of));
        }
    }
    if (units->divide_factor) {
        FSDP_TRY(
            check_factor(env, "divide_factor", units->divide_factor[u], of));
    }
    if (units->predivide_factor) {
        FSDP_TRY(check_factor(env, "predivide_factor",
                              units->predivide_factor[u], of));
    }
    if (units->reshard_after_forward && units->reshard_after_forward[u] > 2) {
        return impl_fail(env, FSDP_ERR_INVALID, WHERE,
                         "reshard_after_forward %u of unit %u is none of as "
                         "the option (0), yes (1), no (2)",
                         units->reshard_after_forward[u], u);
    }
    return FSDP_OK;
}

static int check_units(const struct fsdp_env *env,
                       const struct fsdp_model *model,
                       const struct fsdp_units *units,
                       const struct fsdp_options *o)
{
    for (uint32_t m = 0; m < model->n_modules; m++) {
        uint32_t u = units->unit_of_module[m];
        if (u != FSDP_NO_UNIT && u >= units->n_units) {
            return impl_fail(env, FSDP_ERR_INVALID, WHERE,
                             "module %s has unit %u of %u",
                             model->module_name[m], u, units->n_units);
        }
    }
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        uint32_t m = model->parameter_module[p];
        uint32_t u = fsdp_unit_of(model, units, p);
        if (u == FSDP_NO_UNIT && !units->unit_of_parameter) {
            return impl_fail(env, FSDP_ERR_INVALID, WHERE,
                             "module %s has parameters but no unit",
                             model->module_name[m]);
        }
        if (u != FSDP_NO_UNIT && u >= units->n_units) {
            return impl_fail(env, FSDP_ERR_INVALID, WHERE,
                             "unit_of_parameter: %s has unit %u of %u",
                             model->parameter_name[p], u, units->n_units);
        }
    }
    for (uint32_t u = 0; u < units->n_units; u++) {
        FSDP_TRY(check_unit(env, units, u));
        FSDP_TRY(check_sum(env, units, o, u));
    }
    return FSDP_OK;
}

/* A choice of the options, and the largest number that stands for one. */
static int check_choices(const struct fsdp_env *env,
                         const struct fsdp_options *o, uint32_t n_units)
{
    const struct {
        const char *name;
        uint32_t value, most;
        const char *choice;
    } option[] = {
        {"layout", o->layout, FSDP_LAYOUT_PER_PARAMETER,
         "flat (0), per-parameter (1)"},
        {"fold", o->fold, FSDP_FOLD_TREE, "rank (0), ring (1), tree (2)"},
        {"optimizer", o->optimizer, FSDP_OPTIMIZER_ADAMW,
         "sgd (0), momentum (1), adamw (2)"},
        {"reshard_after_forward", o->reshard_after_forward, 1,
         "no (0), yes (1)"},
        {"keep_root", o->keep_root, 1, "no (0), yes (1)"},
        {"prefetch_forward", o->prefetch_forward, n_units,
         "0 to the number of units"},
        {"prefetch_backward", o->prefetch_backward, n_units,
         "0 to the number of units"},
        {"reduces_in_flight", o->reduces_in_flight, n_units,
         "0 to the number of units"},
    };

    for (uint32_t i = 0; i < sizeof(option) / sizeof(option[0]); i++) {
        if (option[i].value > option[i].most) {
            return impl_fail(env, FSDP_ERR_INVALID, WHERE,
                             "%s %u is none of %s (at most %u)", option[i].name,
                             option[i].value, option[i].choice, option[i].most);
        }
    }
    return FSDP_OK;
}

static int check_claims(const struct fsdp_env *env,
                        const struct fsdp_options *o)
{
    const struct dtype_option dtype[] = {
        {"param_dtype", o->param_dtype, FSDP_DTYPE_F16},
        {"grad_dtype", o->grad_dtype, FSDP_DTYPE_F16},
        {"accumulate_dtype", o->accumulate_dtype, FSDP_DTYPE_F16},
        {"reduce_dtype", o->reduce_dtype, FSDP_DTYPE_F16},
        {"sum_dtype", o->sum_dtype, FSDP_DTYPE_F16},
        {"output_dtype", o->output_dtype, FSDP_DTYPE_F32},
        {"buffer_dtype", o->buffer_dtype, FSDP_DTYPE_F16},
    };

    for (uint32_t i = 0; i < sizeof(dtype) / sizeof(dtype[0]); i++) {
        FSDP_TRY(check_dtype(env, &dtype[i], ""));
    }
    return FSDP_OK;
}

static int check_groups(const struct fsdp_env *env,
                        const struct fsdp_model *model,
                        const struct fsdp_options *o)
{
    for (uint32_t p = 0; o->n_groups && p < model->n_parameters; p++) {
        if (!o->group_of_parameter || o->group_of_parameter[p] >= o->n_groups) {
            return impl_fail(env, FSDP_ERR_INVALID, WHERE,
                             "group_of_parameter: %s has no group below "
                             "n_groups = %u",
                             model->parameter_name[p], o->n_groups);
        }
    }
    return FSDP_OK;
}

int impl_check(const struct fsdp_env *env, const struct fsdp_model *model,
               const struct fsdp_units *units, const struct fsdp_options *o)
{
    FSDP_TRY(check_mesh(env));
    FSDP_TRY(check_claims(env, o));
    FSDP_TRY(check_choices(env, o, units->n_units));
    FSDP_TRY(check_factor(env, "divide_factor", o->divide_factor, ""));
    FSDP_TRY(check_factor(env, "predivide_factor", o->predivide_factor, ""));
    FSDP_TRY(check_model(env, model));
    FSDP_TRY(check_ties(env, model, units));
    FSDP_TRY(check_units(env, model, units, o));
    FSDP_TRY(impl_offload_check(env, units, o));
    return check_groups(env, model, o);
}
