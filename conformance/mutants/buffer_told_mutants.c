/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffer_told_mutants.c - engines that shard another model than they were
 * given: buffers of other dtypes, values, flags or names.
 */
#include "mutants/buffer_copies.h"

#include <fsdp/arith/cast.h>
#include <string.h>

/* ---- Which cases show it ------------------------------------------------ */

static bool trains(const struct run_case *c)
{
    return case_has_buffers(c) && c->scenario == CASE_TRAIN &&
           c->precision == CASE_F32 && c->ranks > c->replicas;
}

static bool trains_in_16_bits(const struct run_case *c)
{
    return case_has_buffers(c) && c->precision == CASE_BF16;
}

static bool trains_in_units(const struct run_case *c)
{
    return case_has_buffers(c) && c->precision == CASE_UNITS;
}

static bool resumes(const struct run_case *c)
{
    return case_has_buffers(c) && c->scenario == CASE_RESUME &&
           c->precision == CASE_F32;
}

static bool resumes_in_16_bits(const struct run_case *c)
{
    return case_has_buffers(c) && c->scenario == CASE_RESUME &&
           c->precision != CASE_F32;
}

static bool disagrees(const struct run_case *c)
{
    return c->scenario == CASE_DISAGREE && case_has_buffers(c);
}

/* ---- Models ------------------------------------------------------------- */

static _Thread_local struct {
    struct fsdp_model model;
    struct fsdp_units units;
    uint32_t dtype[BUFFERS_MOST], flags[BUFFERS_MOST], module[BUFFERS_MOST];
} told;

static void tell(const struct fsdp_model *model)
{
    told.model = *model;
    for (uint32_t b = 0; b < model->n_buffers && b < BUFFERS_MOST; b++) {
        told.dtype[b] = model->buffer_dtype[b];
        told.flags[b] = model->buffer_flags[b];
    }
    told.model.buffer_dtype = told.dtype;
    told.model.buffer_flags = told.flags;
}

/* Buffers of floating point are stored in the buffer dtype. */
static int initial_as_told(void *context, uint32_t b, uint64_t first,
                           uint64_t n, void *out)
{
    const struct fsdp_model *m = mutant_real.model;
    unsigned char stored[BUFFERS_MOST_BYTES];

    FSDP_TRY(m->initial_buffer(context, b, first, n, stored));
    if (told.dtype[b] == m->buffer_dtype[b]) {
        memcpy(out, stored, n * fsdp_dtype_bytes(told.dtype[b]));
        return FSDP_OK;
    }
    for (uint64_t i = 0; i < n; i++) {
        fsdp_store(told.dtype[b], out, i,
                   fsdp_load(m->buffer_dtype[b], stored, i));
    }
    return FSDP_OK;
}

static int buffer_cast_kept_in_save(const struct fsdp_env *env,
                                    const struct fsdp_model *model,
                                    const struct fsdp_units *units,
                                    const struct fsdp_options *options,
                                    struct fsdp_sharded **out)
{
    tell(model);
    told.model.initial_buffer = initial_as_told;
    for (uint32_t b = 0; b < model->n_buffers && b < BUFFERS_MOST; b++) {
        const uint32_t u = units->unit_of_module[model->buffer_module[b]];

        if (told.dtype[b] == FSDP_DTYPE_F32 && u != FSDP_NO_UNIT &&
            options->buffer_dtype != FSDP_DTYPE_NONE) {
            told.dtype[b] = units->buffer_dtype && units->buffer_dtype[u] != 0
                                ? units->buffer_dtype[u]
                                : options->buffer_dtype;
        }
    }
    return mutant_real.engine.shard(env, &told.model, units, options, out);
}

static int buffer_not_persisted_saved(const struct fsdp_env *env,
                                      const struct fsdp_model *model,
                                      const struct fsdp_units *units,
                                      const struct fsdp_options *options,
                                      struct fsdp_sharded **out)
{
    tell(model);
    memset(told.flags, 0, sizeof(told.flags));
    return mutant_real.engine.shard(env, &told.model, units, options, out);
}

/* Rounded to float16 on the way. */
static int initial_twice(void *context, uint32_t b, uint64_t first, uint64_t n,
                         void *out)
{
    const struct fsdp_model *m = mutant_real.model;

    FSDP_TRY(m->initial_buffer(context, b, first, n, out));
    for (uint64_t i = 0; m->buffer_dtype[b] == FSDP_DTYPE_F32 && i < n; i++) {
        float *x = out;

        x[i] = fsdp_round(FSDP_DTYPE_F16, x[i]);
    }
    return FSDP_OK;
}

/* A count goes through the type of parameters. */
static int initial_count_cast(void *context, uint32_t b, uint64_t first,
                              uint64_t n, void *out)
{
    const struct fsdp_model *m = mutant_real.model;

    FSDP_TRY(m->initial_buffer(context, b, first, n, out));
    for (uint64_t i = 0; m->buffer_dtype[b] == FSDP_DTYPE_I64 && i < n; i++) {
        int64_t *x = out;

        x[i] = (int64_t)(float)x[i];
    }
    return FSDP_OK;
}

static int shard_with(const struct fsdp_env *env,
                      const struct fsdp_model *model,
                      const struct fsdp_units *units,
                      const struct fsdp_options *options,
                      struct fsdp_sharded **out,
                      int (*initial)(void *context, uint32_t b, uint64_t first,
                                     uint64_t n, void *out))
{
    tell(model);
    told.model.initial_buffer = initial;
    return mutant_real.engine.shard(env, &told.model, units, options, out);
}

static int buffer_cast_twice(const struct fsdp_env *env,
                             const struct fsdp_model *model,
                             const struct fsdp_units *units,
                             const struct fsdp_options *options,
                             struct fsdp_sharded **out)
{
    return shard_with(env, model, units, options, out, initial_twice);
}

static int buffer_count_cast(const struct fsdp_env *env,
                             const struct fsdp_model *model,
                             const struct fsdp_units *units,
                             const struct fsdp_options *options,
                             struct fsdp_sharded **out)
{
    return shard_with(env, model, units, options, out, initial_count_cast);
}

static void buffer_dtype_ignored(struct fsdp_options *o)
{
    o->buffer_dtype = FSDP_DTYPE_NONE;
}

static int buffer_unit_dtype_ignored(const struct fsdp_env *env,
                                     const struct fsdp_model *model,
                                     const struct fsdp_units *units,
                                     const struct fsdp_options *options,
                                     struct fsdp_sharded **out)
{
    told.units = *units;
    told.units.buffer_dtype = NULL;
    return mutant_real.engine.shard(env, model, &told.units, options, out);
}

/* Each is called as its module is, on all ranks. */
static int buffer_names_unread(const struct fsdp_env *env,
                               const struct fsdp_model *model,
                               const struct fsdp_units *units,
                               const struct fsdp_options *options,
                               struct fsdp_sharded **out)
{
    static _Thread_local struct fsdp_model unnamed; /* is borrowed */
    static _Thread_local const char *name[BUFFERS_MOST];

    unnamed = *model;
    for (uint32_t b = 0; b < model->n_buffers && b < BUFFERS_MOST; b++) {
        name[b] = model->module_name[model->buffer_module[b]];
    }
    unnamed.buffer_name = name;
    return mutant_real.engine.shard(env, &unnamed, units, options, out);
}

const struct mutant buffer_told_mutants[] = {
    {.name = "buffer-cast-kept-in-save",
     .text = "a save has buffers in the buffer dtype",
     .evidence = "FullyShardedDataParallel restores dtypes, not bits",
     .kills = "buffer.saved-dtype",
     .shows = {.in = resumes_in_16_bits, .mixed = true},
     .calls.shard = buffer_cast_kept_in_save},
    {.name = "buffer-cast-twice",
     .text = "buffers are rounded to float16, then to the buffer dtype",
     .evidence = "a model that is cast before it is wrapped",
     .kills = "buffer.initial",
     .shows = {.in = trains_in_16_bits, .mixed = true},
     .calls.shard = buffer_cast_twice},
    {.name = "buffer-count-cast",
     .text = "buffers of integers go through float32",
     .evidence = "microsoft/DeepSpeed: module.half() casts all",
     .kills = "buffer.initial",
     .shows = {.in = trains},
     .calls.shard = buffer_count_cast},
    {.name = "buffer-dtype-ignored",
     .text = "buffers stay in the dtype that they are stored in",
     .evidence = "an option that is read and not used",
     .kills = "buffer.dtype memory.buffers",
     .shows = {.in = trains_in_16_bits, .mixed = true},
     .options = buffer_dtype_ignored},
    {.name = "buffer-names-unread",
     .text = "ranks do not compare how buffers are called",
     .evidence = "a hash over parameters alone",
     .kills = "error.buffers-disagree",
     .shows = {.in = disagrees},
     .calls.shard = buffer_names_unread},
    {.name = "buffer-not-persisted-saved",
     .text = "a save has what is not persisted, and a load gives it back",
     .evidence = "a state dict of named_buffers()",
     .kills = "buffer.not-loaded buffer.not-persisted",
     .shows = {.in = resumes},
     .calls.shard = buffer_not_persisted_saved},
    {.name = "buffer-unit-dtype-ignored",
     .text = "all buffers have the options' buffer dtype",
     .evidence = "a policy of the root's for all",
     .kills = "buffer.dtype memory.buffers",
     .shows = {.in = trains_in_units, .mixed = true},
     .calls.shard = buffer_unit_dtype_ignored},
    {0},
};
