/* SPDX-License-Identifier: Apache-2.0 */
/*
 * case_model.c - from a case to its model and units. Here the wrap policies get
 * the arguments that fit the model: which class, which leaf, how many elements.
 */
#include "cases/case_model.h"

#include "cases/case_factors.h"
#include "cases/case_precision.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((format(printf, 3, 4))) static int
refuse(struct fsdp_error *error, int status, const char *format, ...)
{
    if (error && error->status == FSDP_OK) {
        va_list arguments;

        error->status = status;
        snprintf(error->where, sizeof(error->where), "case_model_make");
        va_start(arguments, format);
        vsnprintf(error->message, sizeof(error->message), format, arguments);
        va_end(arguments);
    }
    return status;
}

/* A tied parameter is stored, and so counted, with its original. */
static bool is_own(const struct fsdp_model *model, uint32_t p)
{
    return !model->parameter_alias || model->parameter_alias[p] < 0;
}

/* At least a quarter of the model makes a unit. */
static int wrap_quarter(const struct fsdp_model *model, struct wrap_units *out)
{
    uint64_t total = 0;

    for (uint32_t p = 0; p < model->n_parameters; p++) {
        total += is_own(model, p) ? fsdp_numel(model, p) : 0;
    }
    return wrap_by_size(model, total / 4 + (total % 4 != 0), out);
}

/* A transformer by its blocks, other models by their layers. */
static int wrap_blocks(const struct fsdp_model *model, struct wrap_units *out)
{
    const char *which = "Linear";

    for (uint32_t m = 0; m < model->n_modules; m++) {
        if (strcmp(model->module_class[m], "Block") == 0) {
            which = "Block";
        }
    }
    return wrap_by_class(model, &which, 1, out);
}

static bool has_child(const struct fsdp_model *model, uint32_t module)
{
    for (uint32_t m = module + 1; m < model->n_modules; m++) {
        if (model->module_parent[m] == (int32_t)module) {
            return true;
        }
    }
    return false;
}

/* The last leaf that has a parameter is a unit by itself. */
static int wrap_head(const struct fsdp_model *model, struct wrap_units *out)
{
    const char *name = NULL;
    uint32_t last = 0;

    for (uint32_t p = 0; p < model->n_parameters; p++) {
        const uint32_t m = model->parameter_module[p];

        if (m >= last && is_own(model, p) && !has_child(model, m)) {
            last = m;
            name = model->module_name[m];
        }
    }
    return name ? wrap_by_hand(model, &name, 1, out) : wrap_whole(model, out);
}

static int wrap_case(const struct run_case *c,
                     const struct workload_model *described,
                     struct wrap_units *out)
{
    const struct fsdp_model *const model = &described->model;

    switch (c->wrap) {
    case CASE_WRAP_DRAWN:
        return described->workload->wrap
                   ? described->workload->wrap(described, out)
                   : FSDP_ERR_INVALID;
    case CASE_WRAP_WHOLE:
        return wrap_whole(model, out);
    case CASE_WRAP_LAYER:
        return wrap_every(model, 1, out);
    case CASE_WRAP_PAIR:
        return wrap_every(model, 2, out);
    case CASE_WRAP_SIZE:
        return wrap_quarter(model, out);
    case CASE_WRAP_BLOCK:
        return wrap_blocks(model, out);
    case CASE_WRAP_APART:
        FSDP_TRY(wrap_blocks(model, out));
        return wrap_apart(model, out);
    case CASE_WRAP_IGNORE:
        FSDP_TRY(wrap_blocks(model, out));
        return wrap_ignore(model, out);
    case CASE_WRAP_SCATTER:
        FSDP_TRY(described->workload->wrap
                     ? described->workload->wrap(described, out)
                     : wrap_every(model, 1, out));
        return wrap_scatter(model, out);
    case CASE_WRAP_HEAD:
        return wrap_head(model, out);
    default:
        return FSDP_ERR_INVALID;
    }
}

static int refuse_workload(const struct run_case *c, struct fsdp_error *error)
{
    char names[120] = "";
    size_t length = 0;

    for (uint32_t i = 0; workloads[i]; i++) {
        const int n = snprintf(names + length, sizeof(names) - length, "%s%s",
                               i == 0 ? "" : ", ", workloads[i]->name);

        length += n > 0 ? (size_t)n : 0;
        if (length >= sizeof(names)) {
            break;
        }
    }
    return refuse(error, FSDP_ERR_INVALID,
                  "there is no workload \"%.16s\"; there are: %s", c->workload,
                  names);
}

/* The workload's own string for the case's size, which lives as long as the
 * model may; NULL if there is no such size. */
static const char *find_size(const struct run_case *c,
                             const struct workload *workload)
{
    for (uint32_t i = 0; workload->sizes[i]; i++) {
        if (strcmp(workload->sizes[i], c->size) == 0) {
            return workload->sizes[i];
        }
    }
    return workload->any_size ? c->size : NULL;
}

static int describe(const struct run_case *c, const char *text,
                    uint64_t text_bytes, struct workload_model **out,
                    struct fsdp_error *error)
{
    const struct workload *const workload = workload_find(c->workload);
    const bool reads =
        strcmp(c->workload, "gpt") == 0 || strcmp(c->workload, "lora") == 0;
    struct workload_config config = {
        .data = c->data,
        .seed = c->seed,
        .world = c->ranks,
        .microbatches = c->microbatches,
        .grains = c->grains,
        .text = reads ? text : NULL,
        .text_bytes = reads ? text_bytes : 0,
        .recompute = c->recompute,
        .frozen = c->frozen,
    };
    int status;

    if (!workload) {
        return refuse_workload(c, error);
    }
    config.size = find_size(c, workload);
    if (!config.size) {
        return refuse(error, FSDP_ERR_INVALID,
                      "workload %s has no size \"%.16s\"; its first is \"%s\"",
                      workload->name, c->size, workload->sizes[0]);
    }
    if ((workload->data_kinds & (1u << c->data)) == 0) {
        return refuse(error, FSDP_ERR_INVALID, "workload %s has no %s data",
                      workload->name, case_data_name(c->data));
    }
    if (c->recompute != WORKLOAD_KEEPS &&
        ((workload->recomputes | workload->recomputes_too) &
         (1u << c->recompute)) == 0) {
        return refuse(error, FSDP_ERR_INVALID, "workload %s has no %s",
                      workload->name, case_recompute_name(c->recompute));
    }
    if (c->frozen != WORKLOAD_TRAINS_ALL &&
        (workload->freezes & (1u << c->frozen)) == 0) {
        return refuse(error, FSDP_ERR_INVALID, "workload %s has no %s",
                      workload->name, case_frozen_name(c->frozen));
    }
    status = workload->describe(&config, out, error);
    return status == FSDP_OK
               ? FSDP_OK
               : refuse(error, status, "workload %s does not fit the case: %s",
                        workload->name, fsdp_status_text(status));
}

/* For units that have dtypes of their own: one array for each dtype, 0 where a
 * unit takes the option's. */
static int set_dtypes(const struct run_case *c, struct case_model *m)
{
    const uint32_t n = m->units.units.n_units;
    struct case_dtypes d;

    if (!case_has_units_dtypes(c)) {
        return FSDP_OK;
    }
    m->dtypes = calloc(6 * (size_t)n + 1, sizeof(*m->dtypes));
    if (!m->dtypes) {
        return FSDP_ERR_NOMEM;
    }
    for (uint32_t u = 0; u < n; u++) {
        if (case_dtypes_of_unit(c, u, &d)) {
            m->dtypes[u] = d.param;
            m->dtypes[n + u] = d.grad;
            m->dtypes[2 * n + u] = d.accumulate;
            m->dtypes[3 * n + u] = d.reduce;
            m->dtypes[4 * n + u] = d.sum;
            m->dtypes[5 * n + u] = case_buffer_dtype(c, d.param);
        }
    }
    m->units.units.param_dtype = m->dtypes;
    m->units.units.grad_dtype = m->dtypes + n;
    m->units.units.accumulate_dtype = m->dtypes + 2 * n;
    m->units.units.reduce_dtype = m->dtypes + 3 * n;
    m->units.units.sum_dtype = m->dtypes + 4 * n;
    if (case_has_buffers(c)) {
        m->units.units.buffer_dtype = m->dtypes + 5 * n;
    }
    return FSDP_OK;
}

static int set_factors(const struct run_case *c, struct case_model *m)
{
    const uint32_t n = m->units.units.n_units;

    if (c->factors != CASE_UNIT_FACTORS) {
        return FSDP_OK;
    }
    m->factors = calloc(2 * (size_t)n + 1, sizeof(*m->factors));
    if (!m->factors) {
        return FSDP_ERR_NOMEM;
    }
    for (uint32_t u = 0; u < n; u++) {
        struct case_unit_factors own;

        (void)case_factors_of_unit(c, u, &own);
        m->factors[u] = own.divide;
        m->factors[n + u] = own.predivide;
    }
    m->units.units.divide_factor = m->factors;
    m->units.units.predivide_factor = m->factors + n;
    return FSDP_OK;
}

static int set_offload(const struct run_case *c, struct case_model *m)
{
    const uint32_t n = m->units.units.n_units;

    if (c->offload < CASE_OFFLOAD_LESS) {
        return FSDP_OK;
    }
    m->offload = calloc((size_t)n + 1, sizeof(*m->offload));
    for (uint32_t u = 0; m->offload && u < n; u++) {
        m->offload[u] = case_offload_of_unit(c, u);
    }
    m->units.units.offload = m->offload;
    return m->offload ? FSDP_OK : FSDP_ERR_NOMEM;
}

int case_model_make(const struct run_case *c, const char *text,
                    uint64_t text_bytes, struct case_model *out,
                    struct fsdp_error *error)
{
    const char *const wrong = case_check(c);
    int status;

    memset(out, 0, sizeof(*out));
    if (wrong) {
        return refuse(error, FSDP_ERR_INVALID, "%s", wrong);
    }
    status = describe(c, text, text_bytes, &out->model, error);
    if (status == FSDP_OK) {
        status = wrap_case(c, out->model, &out->units);
        status = status == FSDP_OK ? set_dtypes(c, out) : status;
        status = status == FSDP_OK ? set_factors(c, out) : status;
        status = status == FSDP_OK ? set_offload(c, out) : status;
        if (status != FSDP_OK) {
            (void)refuse(error, status, "%s cannot be wrapped by %s: %s",
                         c->workload, case_wrap_name(c->wrap),
                         fsdp_status_text(status));
        }
    }
    if (status != FSDP_OK) {
        case_model_release(out);
    }
    return status;
}

void case_model_release(struct case_model *m)
{
    wrap_release(&m->units);
    free(m->dtypes);
    free(m->factors);
    free(m->offload);
    if (m->model) {
        m->model->workload->release(m->model);
    }
    memset(m, 0, sizeof(*m));
}
