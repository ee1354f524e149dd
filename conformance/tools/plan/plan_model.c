/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_model.c - from what the user names to a model as engines are told of
 * one: descriptions are put together, repetitions spelt out.
 */
#include "tools/plan/plan_model.h"

#include "models/model_build.h"
#include "models/text.h"
#include "record/record_internal.h"
#include "tools/plan/plan_bytes.h"
#include "tools/plan/presets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    ROOM = DESCRIPTION_NAME_BYTES + 16
};

/* The state of each module while a model is made from a description. */
struct maker {
    struct plan_model *out;
    char (*name)[ROOM];
    bool *unit;
    uint32_t n, parameters;
    struct fsdp_error *error;
};

/* Writes `from` with "{i}" replaced. */
static void spell(char to[ROOM], const char *from, uint32_t i)
{
    const char *const mark = strstr(from, "{i}");

    if (!mark) {
        snprintf(to, ROOM, "%s", from);
    } else {
        snprintf(to, ROOM, "%.*s%u%s", (int)(mark - from), from, i, mark + 3);
    }
}

/* The module with the longest name that is a dotted beginning of this one;
 * the root, if there is none. */
static int32_t parent_of(const struct maker *k, const char *name)
{
    int32_t best = 0;
    size_t longest = 0;

    for (uint32_t m = 1; m < k->n; m++) {
        const size_t length = strlen(k->name[m]);

        if (length > longest && strncmp(k->name[m], name, length) == 0 &&
            name[length] == '.') {
            longest = length;
            best = (int32_t)m;
        }
    }
    return best;
}

static double default_flops(const struct description_module *m)
{
    double sum = 0.0;

    for (uint32_t p = 0; p < m->n_parameters; p++) {
        double n = 2.0;

        for (uint32_t d = 0; d < m->parameter[p].n_dims; d++) {
            n *= (double)m->parameter[p].shape[d];
        }
        sum += m->parameter[p].n_dims >= 2 ? n : 0.0;
    }
    return sum;
}

static int add_parameters(struct maker *k, const struct description_module *m,
                          int32_t module)
{
    for (uint32_t p = 0; p < m->n_parameters; p++) {
        const struct description_parameter *const q = &m->parameter[p];
        char name[ROOM + 64];

        if (q->dtype != FSDP_DTYPE_F32) {
            return record_fail(k->error, FSDP_ERR_INVALID, "plan",
                               "%.80s.%.60s: parameters are stored as f32; "
                               "--param-dtype says in what they are gathered",
                               k->name[module], q->name);
        }
        snprintf(name, sizeof(name), "%s%s%s", k->name[module],
                 k->name[module][0] != '\0' ? "." : "", q->name);
        if (++k->parameters > DESCRIPTION_MAX_PARAMETERS) {
            return record_fail(k->error, FSDP_ERR_INVALID, "plan",
                               "more than %d parameters",
                               (int)DESCRIPTION_MAX_PARAMETERS);
        }
        (void)model_build_parameter(k->out->build, name, module, q->dtype, 0,
                                    q->n_dims, q->shape);
    }
    return FSDP_OK;
}

static int add_module(struct maker *k, const struct description_module *m,
                      uint32_t i)
{
    int32_t at;

    if (k->n == DESCRIPTION_MAX_MODULES) {
        return record_fail(k->error, FSDP_ERR_INVALID, "plan",
                           "more than %d modules",
                           (int)DESCRIPTION_MAX_MODULES);
    }
    spell(k->name[k->n], m->name, i);
    at = model_build_module(k->out->build, k->name[k->n], m->class_name,
                            k->n == 0 ? -1 : parent_of(k, k->name[k->n]));
    if (at < 0) {
        return record_fail(k->error, at, "plan", "%s",
                           model_build_message(k->out->build));
    }
    k->unit[at] = m->unit;
    k->out->work[at] =
        (struct plan_work){.flops = m->has_flops ? m->flops : default_flops(m),
                           .attention = m->attention,
                           .checkpoint = m->checkpoint};
    k->n++;
    return add_parameters(k, m, at);
}

static int add_parts(struct maker *k, const struct description *d)
{
    static const struct description_module root = {.class_name = "Model",
                                                   .has_flops = true};

    if (d->part[0].module[0].name[0] != '\0') {
        FSDP_TRY(add_module(k, &root, 0));
    }
    for (uint32_t p = 0; p < d->n_parts; p++) {
        const struct description_part *const part = &d->part[p];

        for (uint32_t i = 0; i < part->times; i++) {
            for (uint32_t m = 0; m < part->n_modules; m++) {
                FSDP_TRY(add_module(k, &part->module[m], i));
            }
        }
    }
    return FSDP_OK;
}

static int find_module(const struct maker *k, const char *name, uint32_t *out)
{
    for (uint32_t m = 0; m < k->n; m++) {
        if (strcmp(k->name[m], name) == 0) {
            *out = m;
            return FSDP_OK;
        }
    }
    return record_fail(k->error, FSDP_ERR_INVALID, "plan",
                       "calls: there is no module \"%.96s\"", name);
}

static int add_calls(struct maker *k, const struct description *d)
{
    uint32_t *point = calloc((size_t)d->n_calls + 1, sizeof(*point));
    uint32_t *module = calloc((size_t)d->n_calls + 1, sizeof(*module));
    int status = point && module ? FSDP_OK : FSDP_ERR_NOMEM;

    for (uint32_t i = 0; status == FSDP_OK && i < d->n_calls; i++) {
        point[i] = d->call[i].point;
        status = find_module(k, d->call[i].module, &module[i]);
    }
    if (status == FSDP_OK) {
        status = model_build_sequence(k->out->build, "train", d->n_calls, point,
                                      module);
        if (status != FSDP_OK) {
            (void)record_fail(k->error, status, "plan", "%s",
                              model_build_message(k->out->build));
        }
    }
    free(point);
    free(module);
    return status;
}

static int is_marked(void *context, const struct fsdp_model *model,
                     uint32_t module)
{
    (void)model;
    return ((const bool *)context)[module];
}

static int finish(struct maker *k)
{
    struct plan_model *const out = k->out;
    const int status = model_build_finish(out->build, &out->model);

    if (status != FSDP_OK) {
        return record_fail(k->error, status, "plan", "%s",
                           model_build_message(out->build));
    }
    if (!plan_is_countable(&out->model, out->model.n_modules, 1)) {
        return record_fail(k->error, FSDP_ERR_INVALID, "plan",
                           "the model's bytes are beyond 2^63");
    }
    for (uint32_t p = 0; p < out->model.n_parameters; p++) {
        out->elements += fsdp_numel(&out->model, p);
    }
    if (out->elements == 0) {
        return record_fail(k->error, FSDP_ERR_INVALID, "plan",
                           "the model has no parameter with an element");
    }
    return wrap_by_callback(&out->model, is_marked, k->unit, &out->units);
}

int plan_model_of_description(const struct description *d,
                              struct plan_model *out, struct fsdp_error *error)
{
    struct maker k = {.out = out, .error = error};
    int status = FSDP_ERR_NOMEM;

    memset(out, 0, sizeof(*out));
    snprintf(out->name, sizeof(out->name), "%s", d->name);
    k.name = calloc(DESCRIPTION_MAX_MODULES, sizeof(*k.name));
    k.unit = calloc(DESCRIPTION_MAX_MODULES, sizeof(*k.unit));
    out->work = calloc(DESCRIPTION_MAX_MODULES, sizeof(*out->work));
    out->build = model_build_create();
    if (k.name && k.unit && out->work && out->build) {
        status = add_parts(&k, d);
    }
    if (status == FSDP_OK && d->n_calls > 0) {
        status = add_calls(&k, d);
    }
    if (status == FSDP_OK) {
        status = finish(&k);
    }
    free(k.name);
    free(k.unit);
    return status == FSDP_OK ? FSDP_OK
                             : record_fail(error, status, "plan", "%s",
                                           fsdp_status_text(status));
}

bool plan_count(struct plan_model *out)
{
    out->work = calloc((size_t)out->model.n_modules + 1, sizeof(*out->work));
    for (uint32_t p = 0; out->work && p < out->model.n_parameters; p++) {
        const double n = (double)fsdp_numel(&out->model, p);

        out->elements += fsdp_numel(&out->model, p);
        out->work[out->model.parameter_module[p]].flops +=
            out->model.parameter_n_dims[p] >= 2 ? 2.0 * n : 0.0;
    }
    return out->work != NULL;
}

int plan_model_of_case(const struct run_case *c, struct plan_model *out,
                       struct fsdp_error *error)
{
    struct text text;
    int status;

    memset(out, 0, sizeof(*out));
    FSDP_TRY(text_load(NULL, &text, error));
    status = case_model_make(c, text.bytes, text.n, &out->of_case, error);
    text_release(&text); /* what is built in stays */
    FSDP_TRY(status);
    out->model = out->of_case.model->model;
    out->idle = out->of_case.model->idle;
    out->units = out->of_case.units;
    memset(&out->of_case.units, 0, sizeof(out->of_case.units));
    snprintf(out->name, sizeof(out->name), "%.16s.%.16s", c->workload, c->size);
    return plan_count(out)
               ? FSDP_OK
               : record_fail(error, FSDP_ERR_NOMEM, "plan", "out of memory");
}

int plan_model_of_text(const char *text, size_t bytes, const char *file,
                       struct plan_model *out, struct fsdp_error *error)
{
    struct description d;
    int status = description_parse(text, bytes, file, &d, error);

    memset(out, 0, sizeof(*out));
    if (status == FSDP_OK) {
        status = plan_model_of_description(&d, out, error);
    }
    description_release(&d);
    return status;
}

static int open_file(const char *path, struct plan_model *out,
                     struct fsdp_error *error)
{
    const struct record_source from = {.where = "plan",
                                       .most = DESCRIPTION_MAX_BYTES};
    char *text = NULL;
    size_t bytes = 0;
    int status = record_read_file(path, &from, &text, &bytes, error);

    if (status == FSDP_OK) {
        status =
            plan_model_of_text(text, bytes, record_path_tail(path), out, error);
    }
    free(text);
    return status;
}

static int open_record(const char *path, struct run_case *c,
                       struct plan_model *out, struct fsdp_error *error)
{
    struct record r;
    int status = record_read(path, &r, error);

    if (status == FSDP_OK) {
        *c = r.c;
        status = plan_model_of_case(c, out, error);
    }
    record_release(&r);
    return status;
}

/* "gpt", "gpt.tiny": its default size, or another; trained on natural data. */
static int open_workload(const char *what, struct run_case *c,
                         struct plan_model *out, struct fsdp_error *error)
{
    struct run_case one = {.ranks = 1,
                           .replicas = 1,
                           .wrap = CASE_WRAP_BLOCK,
                           .microbatches = 1,
                           .sync = {1},
                           .seed = 1,
                           .lr = 0.125f,
                           .steps = 1};
    const char *const dot = strchr(what, '.');
    const size_t n = dot ? (size_t)(dot - what) : strlen(what);
    const struct workload *workload;

    snprintf(one.workload, sizeof(one.workload), "%.*s",
             n < sizeof(one.workload) ? (int)n : 0, what);
    workload = workload_find(one.workload);
    if (!workload) {
        return record_fail(error, FSDP_ERR_INVALID, "plan",
                           "%.200s is no file, no record, no model of `plan "
                           "--list` and no workload",
                           what);
    }
    if (strcmp(one.workload, "graph") == 0) {
        one.wrap = CASE_WRAP_DRAWN;
    }
    snprintf(one.size, sizeof(one.size), "%s",
             dot ? dot + 1 : workload->sizes[0]);
    while ((workload->data_kinds & (1u << one.data)) == 0) {
        one.data++;
    }
    *c = one;
    return plan_model_of_case(&one, out, error);
}

int plan_model_open(const char *what, struct run_case *c, bool *is_record,
                    struct plan_model *out, struct fsdp_error *error)
{
    const char *const preset = preset_find(preset_models, what);
    struct stat about;

    memset(out, 0, sizeof(*out));
    *is_record = false;
    if (preset) {
        return plan_model_of_text(preset, strlen(preset), what, out, error);
    }
    if (stat(what, &about) == 0) {
        *is_record = S_ISDIR(about.st_mode);
        return *is_record ? open_record(what, c, out, error)
                          : open_file(what, out, error);
    }
    return open_workload(what, c, out, error);
}

void plan_model_release(struct plan_model *m)
{
    wrap_release(&m->units);
    model_build_destroy(m->build);
    case_model_release(&m->of_case);
    free(m->work);
    memset(m, 0, sizeof(*m));
}

/* The root's unit, if it has one, stays by itself: its window is open around
 * the others'. */
static int merge(const struct plan_model *m, uint32_t n, struct wrap_units *out)
{
    const uint32_t root = m->units.unit_of_module[0];
    const uint32_t first = root != FSDP_NO_UNIT ? 1 : 0;
    uint32_t n_units = first;

    memset(out, 0, sizeof(*out));
    out->unit_of_module =
        calloc((size_t)m->model.n_modules + 1, sizeof(*out->unit_of_module));
    if (!out->unit_of_module) {
        return FSDP_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < m->model.n_modules; i++) {
        const uint32_t u = m->units.unit_of_module[i];

        out->unit_of_module[i] = u;
        if (u != FSDP_NO_UNIT && u != root) {
            out->unit_of_module[i] = (u - first) / n + first;
            if (out->unit_of_module[i] >= n_units) {
                n_units = out->unit_of_module[i] + 1;
            }
        }
    }
    out->units.size = sizeof(out->units);
    out->units.n_units = n_units;
    out->units.unit_of_module = out->unit_of_module;
    return FSDP_OK;
}

int plan_units(const struct plan_model *m, uint32_t n, struct wrap_units *out)
{
    if (n == 0) {
        return wrap_whole(&m->model, out);
    }
    return n == UINT32_MAX ? wrap_every(&m->model, 1, out) : merge(m, n, out);
}
