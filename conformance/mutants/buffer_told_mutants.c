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
    uint32_t dtype[BUFFERS_MOST], flags[BUFFERS_MOST];
} told;

static void tell(struct fsdp_model *model)
{
    for (uint32_t b = 0; b < model->n_buffers && b < BUFFERS_MOST; b++) {
        told.dtype[b] = model->buffer_dtype[b];
        told.flags[b] = model->buffer_flags[b];
    }
    model->buffer_dtype = told.dtype;
    model->buffer_flags = told.flags;
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

static int buffer_cast_kept_in_save(struct mutant_told *t,
                                    const struct fsdp_env *env)
{
    const struct fsdp_model *model = &t->model;

    (void)env;
    tell(&t->model);
    t->model.initial_buffer = initial_as_told;
    for (uint32_t b = 0; b < model->n_buffers && b < BUFFERS_MOST; b++) {
        const uint32_t u = t->units.unit_of_module[model->buffer_module[b]];

        if (told.dtype[b] == FSDP_DTYPE_F32 && u != FSDP_NO_UNIT &&
            t->options->buffer_dtype != FSDP_DTYPE_NONE) {
            told.dtype[b] =
                t->units.buffer_dtype && t->units.buffer_dtype[u] != 0
                    ? t->units.buffer_dtype[u]
                    : t->options->buffer_dtype;
        }
    }
    return FSDP_OK;
}

static int buffer_not_persisted_saved(struct mutant_told *t,
                                      const struct fsdp_env *env)
{
    (void)env;
    tell(&t->model);
    memset(told.flags, 0, sizeof(told.flags));
    return FSDP_OK;
}

/* Rounds initial values to float16 on the way. */
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

/* Converts a count to the type of parameters and back. */
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

static int buffer_cast_twice(struct mutant_told *t, const struct fsdp_env *env)
{
    (void)env;
    t->model.initial_buffer = initial_twice;
    return FSDP_OK;
}

static int buffer_count_cast(struct mutant_told *t, const struct fsdp_env *env)
{
    (void)env;
    t->model.initial_buffer = initial_count_cast;
    return FSDP_OK;
}

/* Gives each buffer the name of its module, on all ranks. */
static int buffer_names_unread(struct mutant_told *t,
                               const struct fsdp_env *env)
{
    static _Thread_local const char *name[BUFFERS_MOST];
    const struct fsdp_model *model = &t->model;

    (void)env;
    for (uint32_t b = 0; b < model->n_buffers && b < BUFFERS_MOST; b++) {
        name[b] = model->module_name[model->buffer_module[b]];
    }
    t->model.buffer_name = name;
    return FSDP_OK;
}

const struct mutant buffer_told_mutants[] = {
    {.name = "buffer-cast-kept-in-save",
     .text = "a save has buffers in the buffer dtype",
     .evidence = "FullyShardedDataParallel restores dtypes, not bits",
     .kills = "buffer.saved-dtype",
     .shows = {.in = resumes_in_16_bits, .mixed = true},
     .told = buffer_cast_kept_in_save},
    {.name = "buffer-cast-twice",
     .text = "buffers are rounded to float16, then to the buffer dtype",
     .evidence = "a model that is cast before it is wrapped",
     .kills = "buffer.initial",
     .shows = {.in = trains_in_16_bits, .mixed = true},
     .told = buffer_cast_twice},
    {.name = "buffer-count-cast",
     .text = "buffers of integers go through float32",
     .evidence = "microsoft/DeepSpeed: module.half() casts all",
     .kills = "buffer.initial",
     .shows = {.in = trains},
     .told = buffer_count_cast},
    {.name = "buffer-dtype-ignored",
     .text = "buffers stay in the dtype that they are stored in",
     .evidence = "an option that is read and not used",
     .kills = "buffer.dtype error.buffer-dtypes-disagree memory.buffers",
     .shows = {.in = trains_in_16_bits, .mixed = true},
     .fault = {MUTANT_SETS, MUTANT_OPTION(buffer_dtype), FSDP_DTYPE_NONE}},
    {.name = "buffer-names-unread",
     .text = "ranks do not compare how buffers are called",
     .evidence = "a hash over parameters alone",
     .kills = "error.buffers-disagree",
     .shows = {.in = disagrees},
     .told = buffer_names_unread},
    {.name = "buffer-not-persisted-saved",
     .text = "a save has what is not persisted, and a load gives it back",
     .evidence = "a state dict of named_buffers()",
     .kills = "buffer.not-loaded buffer.not-persisted",
     .shows = {.in = resumes},
     .told = buffer_not_persisted_saved},
    {.name = "buffer-unit-dtype-ignored",
     .text = "all buffers have the options' buffer dtype",
     .evidence = "a policy of the root's for all",
     .kills = "buffer.dtype memory.buffers",
     .shows = {.in = trains_in_units, .mixed = true},
     .fault = {MUTANT_UNTELLS, MUTANT_UNITS(buffer_dtype)}},
    {0},
};
