/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.c - what the reference engine refuses: options that do not fit, and
 * options that it does not claim. Each refusal names the option.
 */
#include "ref.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* The bits that a unit or the options may set. */
#define OFFLOAD_BITS                                        \
    ((uint32_t)(FSDP_OFFLOAD_ALL | FSDP_OFFLOAD_OPTIMIZER | \
                FSDP_OFFLOAD_PARAMS))

void ref_read(void *to, uint64_t bytes, const void *from, uint32_t size)
{
    memset(to, 0, bytes);
    memcpy(to, from, size < bytes ? size : bytes);
}

void ref_read_options(struct fsdp_options *to, const struct fsdp_options *from)
{
    ref_read(to, sizeof(*to), from, from->size);
    if (from->size <= offsetof(struct fsdp_options, accumulate_dtype)) {
        to->grad_dtype = FSDP_DTYPE_NONE;
    }
}

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
    if (env->world > REF_MAX_RANKS) {
        return ref_fail(env, FSDP_ERR_INVALID, "ref.shard",
                        "a world of %u ranks; up to %d are served", env->world,
                        (int)REF_MAX_RANKS);
    }
    return FSDP_OK;
}

static int check_buffer(const struct fsdp_env *env,
                        const struct fsdp_model *model, uint32_t b)
{
    const char *name = model->buffer_name[b];

    if (model->buffer_module[b] >= model->n_modules ||
        fsdp_dtype_bytes(model->buffer_dtype[b]) == 0) {
        return ref_fail(env, FSDP_ERR_INVALID, "ref.shard",
                        "buffer %s has module %u of %u, dtype %u", name,
                        model->buffer_module[b], model->n_modules,
                        model->buffer_dtype[b]);
    }
    if (model->size <= offsetof(struct fsdp_model, initial_buffer) ||
        !model->initial_buffer) {
        return ref_fail(env, FSDP_ERR_INVALID, "ref.shard",
                        "buffer %s has no initial_buffer", name);
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
    }
    for (uint32_t b = 0; b < model->n_buffers; b++) {
        FSDP_TRY(check_buffer(env, model, b));
    }
    return FSDP_OK;
}

static bool is_alike(const struct fsdp_model *model, uint32_t p, uint32_t q)
{
    uint32_t n_dims = model->parameter_n_dims[p];
    bool alike = model->parameter_dtype[p] == model->parameter_dtype[q] &&
                 model->parameter_flags[p] == model->parameter_flags[q] &&
                 n_dims == model->parameter_n_dims[q];

    for (uint32_t d = 0; alike && d < n_dims; d++) {
        alike = model->parameter_shape[p][d] == model->parameter_shape[q][d];
    }
    return alike;
}

/* The original of a tied parameter comes before it, is not tied itself, and is
 * in the same unit. */
static int check_tied(const struct fsdp_env *env,
                      const struct fsdp_model *model,
                      const struct fsdp_units *units, uint32_t p)
{
    const char *const *name = model->parameter_name;
    uint32_t q = fsdp_original(model, p);

    if (q >= model->n_parameters) {
        return ref_fail(env, FSDP_ERR_INVALID, "ref.shard",
                        "%s is tied to parameter %u of %u", name[p], q,
                        model->n_parameters);
    }
    if (q >= p || fsdp_original(model, q) != q) {
        return ref_fail(env, FSDP_ERR_INVALID, "ref.shard",
                        "%s is tied to %s, which %s", name[p], name[q],
                        q >= p ? "does not come before it" : "is tied itself");
    }
    if (!is_alike(model, p, q)) {
        return ref_fail(env, FSDP_ERR_INVALID, "ref.shard",
                        "%s is tied to %s, of another shape, dtype or flags",
                        name[p], name[q]);
    }
    if (fsdp_unit_of(model, units, p) != fsdp_unit_of(model, units, q)) {
        return ref_fail(env, FSDP_ERR_INVALID, "ref.shard",
                        "%s is tied to %s, but they are in different units",
                        name[p], name[q]);
    }
    return FSDP_OK;
}

/* Checks a dtype of the options, or of a unit. A number that is no dtype is
 * INVALID; float32 is always allowed, and a dtype of 16 bits where `most`,
 * which the engine claims, includes it. */
static int check_dtype(const struct fsdp_env *env, const char *name,
                       uint32_t dtype, uint32_t most)
{
    if (dtype != FSDP_DTYPE_NONE && fsdp_dtype_bytes(dtype) == 0) {
        return ref_fail(env, FSDP_ERR_INVALID, "ref.shard", "%s %u is no dtype",
                        name, dtype);
    }
    if (dtype > most) {
        return ref_fail(env, FSDP_ERR_UNSUPPORTED, "ref.shard",
                        "%s %u: only float32 (1)%s is claimed", name, dtype,
                        most > FSDP_DTYPE_F32 ? ", bf16 (2) or f16 (3)" : "");
    }
    return FSDP_OK;
}

/* A factor of the options, or of a unit: 0 is the default. */
static int check_factor(const struct fsdp_env *env, const char *name,
                        float factor)
{
    if (!(factor >= 0.0f) || isinf(factor)) {
        return ref_fail(env, FSDP_ERR_INVALID, "ref.shard",
                        "%s %g is not a positive number", name, (double)factor);
    }
    return FSDP_OK;
}

static uint32_t own(const uint32_t *of_unit, uint32_t u, uint32_t option)
{
    return of_unit && of_unit[u] != FSDP_DTYPE_NONE ? of_unit[u] : option;
}

static uint32_t or_else(uint32_t dtype, uint32_t usual)
{
    return dtype != FSDP_DTYPE_NONE ? dtype : usual;
}

struct ref_dtypes ref_dtypes(const struct fsdp_options *o,
                             const struct fsdp_units *units, uint32_t u)
{
    struct ref_dtypes d = {own(units->param_dtype, u, o->param_dtype),
                           own(units->grad_dtype, u, o->grad_dtype),
                           own(units->accumulate_dtype, u, o->accumulate_dtype),
                           own(units->reduce_dtype, u, o->reduce_dtype),
                           own(units->sum_dtype, u, o->sum_dtype)};

    d.param = or_else(d.param, FSDP_DTYPE_F32);
    d.grad = or_else(d.grad, d.param);
    d.reduce = or_else(d.reduce, FSDP_DTYPE_F32);
    d.accumulate = or_else(d.accumulate, d.reduce);
    d.sum = or_else(d.sum, d.reduce);
    return d;
}

/* A buffer of integers is never cast. */
uint32_t ref_buffer_dtype(const struct fsdp_options *o,
                          const struct fsdp_units *units,
                          const struct fsdp_model *model, uint32_t b)
{
    uint32_t u = units->unit_of_module[model->buffer_module[b]];
    uint32_t stored = model->buffer_dtype[b];
    uint32_t asked = u == FSDP_NO_UNIT
                         ? o->buffer_dtype
                         : own(units->buffer_dtype, u, o->buffer_dtype);

    return stored > FSDP_DTYPE_F16 ? stored : or_else(asked, stored);
}

/* A unit's factor; else that of the options; else the default. */
static float factor_of(const float *of_unit, uint32_t u, float option,
                       float usual)
{
    if (of_unit && of_unit[u] != 0.0f) {
        return of_unit[u];
    }
    return option != 0.0f ? option : usual;
}

struct ref_divisors ref_divisors(const struct fsdp_options *o,
                                 const struct fsdp_units *units, uint32_t u,
                                 uint32_t world)
{
    return (struct ref_divisors){
        factor_of(units->divide_factor, u, o->divide_factor, (float)world),
        factor_of(units->predivide_factor, u, o->predivide_factor, 1.0f)};
}

struct ref_factors ref_factors(struct ref_divisors d)
{
    return (struct ref_factors){1.0f / d.predivide, d.predivide / d.divide};
}

/* The offload that a unit's own entry asks for, as bits; 0 if it has none. */
static uint32_t own_offload(uint32_t said)
{
    return said & FSDP_OFFLOAD_OWN ? said & ~(uint32_t)FSDP_OFFLOAD_OWN
           : said == 1             ? FSDP_OFFLOAD_ALL
                                   : 0;
}

uint32_t ref_offload(const struct fsdp_options *o,
                     const struct fsdp_units *units, uint32_t u)
{
    const uint32_t said = units->offload ? units->offload[u] : 0;
    const uint32_t bits = said ? own_offload(said) : o->offload;

    return bits & FSDP_OFFLOAD_ALL
               ? FSDP_OFFLOAD_OPTIMIZER | FSDP_OFFLOAD_PARAMS
               : bits;
}

static int check_offload(const struct fsdp_env *env,
                         const struct fsdp_options *o,
                         const struct fsdp_units *units, uint32_t u)
{
    const uint32_t said = units->offload ? units->offload[u] : 0;

    if (said > 2 &&
        (!(said & FSDP_OFFLOAD_OWN) || (own_offload(said) & ~OFFLOAD_BITS))) {
        return ref_fail(env, FSDP_ERR_INVALID, "ref.shard",
                        "offload %u of unit %u is none of model.h", said, u);
    }
    return !ref_offload(o, units, u) || fsdp_host_of(env)
               ? FSDP_OK
               : ref_fail(env, FSDP_ERR_UNSUPPORTED, "ref.shard",
                          "offload of unit %u, but there is no host device", u);
}

static int check_dtypes(const struct fsdp_env *env,
                        const struct fsdp_options *o,
                        const struct fsdp_units *units, uint32_t u)
{
    const struct {
        const char *name;
        uint32_t option;
        const uint32_t *of_unit;
        uint32_t most;
    } field[] = {
        {"param_dtype", o->param_dtype, units->param_dtype, FSDP_DTYPE_F16},
        {"grad_dtype", o->grad_dtype, units->grad_dtype, FSDP_DTYPE_F16},
        {"accumulate_dtype", o->accumulate_dtype, units->accumulate_dtype,
         FSDP_DTYPE_F16},
        {"reduce_dtype", o->reduce_dtype, units->reduce_dtype, FSDP_DTYPE_F16},
        {"sum_dtype", o->sum_dtype, units->sum_dtype, FSDP_DTYPE_F16},
        {"output_dtype", o->output_dtype, units->output_dtype, FSDP_DTYPE_F32},
        {"buffer_dtype", o->buffer_dtype, units->buffer_dtype, FSDP_DTYPE_F16},
    };
    struct ref_dtypes d;

    for (size_t i = 0; i < sizeof(field) / sizeof(field[0]); i++) {
        FSDP_TRY(
            check_dtype(env, field[i].name, field[i].option, field[i].most));
        if (field[i].of_unit) {
            FSDP_TRY(check_dtype(env, field[i].name, field[i].of_unit[u],
                                 field[i].most));
        }
    }
    d = ref_dtypes(o, units, u);
    if (d.sum != d.reduce && d.sum != FSDP_DTYPE_F32) {
        return ref_fail(env, FSDP_ERR_INVALID, "ref.shard",
                        "sum_dtype %u of unit %u is neither its reduce_dtype "
                        "%u nor float32 (1)",
                        d.sum, u, d.reduce);
    }
    return FSDP_OK;
}

static int check_factors(const struct fsdp_env *env,
                         const struct fsdp_options *o,
                         const struct fsdp_units *units, uint32_t u)
{
    struct ref_factors f;

    if (units->divide_factor) {
        FSDP_TRY(check_factor(env, "divide_factor of a unit",
                              units->divide_factor[u]));
    }
    if (units->predivide_factor) {
        FSDP_TRY(check_factor(env, "predivide_factor of a unit",
                              units->predivide_factor[u]));
    }
    f = ref_factors(ref_divisors(o, units, u, env->world));
    if (isinf(f.before) || isinf(f.behind)) {
        return ref_fail(env, FSDP_ERR_INVALID, "ref.shard",
                        "predivide_factor, divide_factor of unit %u: its "
                        "gradients would be multiplied by %g, then by %g",
                        u, (double)f.before, (double)f.behind);
    }
    return FSDP_OK;
}

/* A parameter may be without a unit only where unit_of_parameter says so. */
static int check_parameter(const struct fsdp_env *env,
                           const struct fsdp_model *model,
                           const struct fsdp_units *units, uint32_t p)
{
    uint32_t m = model->parameter_module[p];
    uint32_t u = fsdp_unit_of(model, units, p);

    if (model->parameter_alias && model->parameter_alias[p] >= 0) {
        FSDP_TRY(check_tied(env, model, units, p));
    }
    if (u == FSDP_NO_UNIT && !units->unit_of_parameter) {
        return ref_fail(env, FSDP_ERR_INVALID, "ref.shard",
                        "module %s has parameters but no unit",
                        model->module_name[m]);
    }
    if (u != FSDP_NO_UNIT && u >= units->n_units) {
        return ref_fail(env, FSDP_ERR_INVALID, "ref.shard",
                        "unit_of_parameter: %s has unit %u of %u",
                        model->parameter_name[p], u, units->n_units);
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
            return ref_fail(env, FSDP_ERR_INVALID, "ref.shard",
                            "module %s has unit %u of %u",
                            model->module_name[m], u, units->n_units);
        }
    }
    for (uint32_t p = 0; p < model->n_parameters; p++) {
        FSDP_TRY(check_parameter(env, model, units, p));
    }
    for (uint32_t u = 0; u < units->n_units; u++) {
        FSDP_TRY(check_dtypes(env, o, units, u));
        FSDP_TRY(check_factors(env, o, units, u));
        FSDP_TRY(check_offload(env, o, units, u));
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
    FSDP_TRY(check_factor(env, "divide_factor", o->divide_factor));
    if (o->offload & ~OFFLOAD_BITS) {
        return ref_fail(env, FSDP_ERR_INVALID, "ref.shard",
                        "offload %u has a bit that is none of engine.h",
                        o->offload);
    }
    return check_factor(env, "predivide_factor", o->predivide_factor);
}

int ref_check(const struct fsdp_env *env, const struct fsdp_model *model,
              const struct fsdp_units *units, const struct fsdp_options *o)
{
    FSDP_TRY(check_mesh(env));
    FSDP_TRY(check_numbers(env, o));
    FSDP_TRY(check_model(env, model));
    FSDP_TRY(check_units(env, model, units, o));
    for (uint32_t p = 0; o->n_groups && p < model->n_parameters; p++) {
        if (!o->group_of_parameter || o->group_of_parameter[p] >= o->n_groups) {
            return ref_fail(env, FSDP_ERR_INVALID, "ref.shard",
                            "parameter %s has no group below n_groups = %u",
                            model->parameter_name[p], o->n_groups);
        }
    }
    return FSDP_OK;
}
