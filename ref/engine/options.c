/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.c - what the reference engine refuses: options that do not fit, and
 * options that it does not claim. Each refusal names the option.
 */
#include "ref.h"

#include <math.h>

static int check_mesh(const struct fsdp_env *env)
{
    const struct fsdp_mesh *mesh = env->mesh;

    if (!mesh || mesh->n_dims != 2) {
        return ref_fail(env, FSDP_ERR_INVALID, "ref.shard",
                        "the mesh must have the dimensions replicate, shard");
    }
    if (mesh->extent[0] == 0 || mesh->extent[1] == 0 ||
        (uint64_t)mesh->extent[0] * mesh->extent[1] != env->world) {
        return ref_fail(env, FSDP_ERR_INVALID, "ref.shard",
                        "mesh %u x %u is not a world of %u ranks",
                        mesh->extent[0], mesh->extent[1], env->world);
    }
    return FSDP_OK;
}

static int check_model(const struct fsdp_env *env,
                       const struct fsdp_model *model)
{
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        if (model->parameter_dtype[p] != FSDP_DTYPE_F32) {
            return ref_fail(env, FSDP_ERR_UNSUPPORTED, "ref.shard",
                            "parameter %s is not float32",
                            model->parameter_name[p]);
        }
        if (model->parameter_flags[p] & FSDP_FROZEN) {
            return ref_fail(env, FSDP_ERR_UNSUPPORTED, "ref.shard",
                            "parameter %s is frozen; frozen is not claimed",
                            model->parameter_name[p]);
        }
        if (model->parameter_alias[p] >= 0) {
            return ref_fail(env, FSDP_ERR_UNSUPPORTED, "ref.shard",
                            "parameter %s is tied; shared is not claimed",
                            model->parameter_name[p]);
        }
    }
    return FSDP_OK;
}

static int check_units(const struct fsdp_env *env,
                       const struct fsdp_model *model,
                       const struct fsdp_units *units)
{
    for (uint32_t m = 0; m < model->n_modules; m++) {
        uint32_t u = units->unit_of_module[m];
        if (u != FSDP_NO_UNIT && u >= units->n_units) {
            return ref_fail(env, FSDP_ERR_INVALID, "ref.shard",
                            "module %s has unit %u of %u",
                            model->module_name[m], u, units->n_units);
        }
    }
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        uint32_t m = model->parameter_module[p];
        if (units->unit_of_module[m] == FSDP_NO_UNIT) {
            return ref_fail(env, FSDP_ERR_INVALID, "ref.shard",
                            "module %s has parameters but no unit",
                            model->module_name[m]);
        }
    }
    for (uint32_t u = 0; u < units->n_units; u++) {
        if ((units->param_dtype && units->param_dtype[u]) ||
            (units->reduce_dtype && units->reduce_dtype[u]) ||
            (units->divide_factor && units->divide_factor[u] != 0.0f) ||
            (units->offload && units->offload[u] == 1)) {
            return ref_fail(env, FSDP_ERR_UNSUPPORTED, "ref.shard",
                            "unit %u has a dtype, a divide factor or offload "
                            "of its own, which is not claimed",
                            u);
        }
    }
    return FSDP_OK;
}

static int check_numbers(const struct fsdp_env *env,
                         const struct fsdp_options *o)
{
    if (o->layout > FSDP_LAYOUT_PER_PARAMETER) {
        return ref_fail(env, FSDP_ERR_INVALID, "ref.shard",
                        "layout %u is none of flat (0), per-parameter (1)",
                        o->layout);
    }
    if (o->fold > FSDP_FOLD_TREE) {
        return ref_fail(env, FSDP_ERR_INVALID, "ref.shard",
                        "fold %u is none of rank (0), ring (1), tree (2)",
                        o->fold);
    }
    if (o->optimizer > FSDP_OPTIMIZER_ADAMW) {
        return ref_fail(env, FSDP_ERR_INVALID, "ref.shard",
                        "optimizer %u is none of sgd (0), momentum (1), "
                        "adamw (2)",
                        o->optimizer);
    }
    if (!(o->divide_factor >= 0.0f) || isinf(o->divide_factor)) {
        return ref_fail(env, FSDP_ERR_INVALID, "ref.shard",
                        "divide_factor %g is not a positive number",
                        (double)o->divide_factor);
    }
    if (o->param_dtype > FSDP_DTYPE_F32 || o->reduce_dtype > FSDP_DTYPE_F32 ||
        o->output_dtype > FSDP_DTYPE_F32 || o->buffer_dtype > FSDP_DTYPE_F32) {
        return ref_fail(env, FSDP_ERR_UNSUPPORTED, "ref.shard",
                        "only float32 (1) is claimed as a dtype");
    }
    if (o->offload) {
        return ref_fail(env, FSDP_ERR_UNSUPPORTED, "ref.shard",
                        "offload is not claimed");
    }
    return FSDP_OK;
}

int ref_check(const struct fsdp_env *env, const struct fsdp_model *model,
              const struct fsdp_units *units, const struct fsdp_options *o)
{
    FSDP_TRY(check_mesh(env));
    FSDP_TRY(check_numbers(env, o));
    FSDP_TRY(check_model(env, model));
    FSDP_TRY(check_units(env, model, units));
    for (uint32_t p = 0; o->n_groups && p < model->n_parameters; p++) {
        if (!o->group_of_parameter || o->group_of_parameter[p] >= o->n_groups) {
            return ref_fail(env, FSDP_ERR_INVALID, "ref.shard",
                            "parameter %s has no group below n_groups = %u",
                            model->parameter_name[p], o->n_groups);
        }
    }
    return FSDP_OK;
}
