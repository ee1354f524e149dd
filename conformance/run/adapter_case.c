/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adapter_case.c - writes the folder of a case for programs outside of the
 * suite.
 */
#include "run/adapter_case.h"

#include "cases/case_factors.h"
#include "cases/case_model.h"
#include "checkpoint/safetensors.h"
#include "record/record_internal.h"
#include "run/adapter_graph.h"
#include "script/script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FORMAT_VERSION = 1
};

static void add_modules(struct record_text *t, const struct fsdp_model *m,
                        const struct fsdp_units *units)
{
    record_text_add(t, " \"modules\": [");
    for (uint32_t i = 0; i < m->n_modules; i++) {
        record_text_add(t, "%s\n  {\"name\": ", i == 0 ? "" : ",");
        record_text_string(t, m->module_name[i], 256);
        record_text_add(t, ", \"class\": ");
        record_text_string(t, m->module_class[i], 256);
        record_text_add(t, ", \"parent\": %d, \"unit\": ", m->module_parent[i]);
        record_text_name(t, record_unit_name(units->unit_of_module[i]),
                         units->unit_of_module[i]);
        record_text_add(t, "}");
    }
    record_text_add(t, "],\n \"units\": %u,\n", units->n_units);
}

static void add_parameters(struct record_text *t, const struct fsdp_model *m,
                           const struct fsdp_units *units)
{
    const uint32_t *of = units->unit_of_parameter;

    record_text_add(t, " \"parameters\": [");
    for (uint32_t p = 0; p < m->n_parameters; p++) {
        record_text_add(t, "%s\n  {\"name\": ", p == 0 ? "" : ",");
        record_text_string(t, m->parameter_name[p], 256);
        record_text_add(t, ", \"module\": %u, \"decays\": %s, \"shape\": [",
                        m->parameter_module[p],
                        (m->parameter_flags[p] & FSDP_NO_DECAY) != 0 ? "false"
                                                                     : "true");
        for (uint32_t d = 0; d < m->parameter_n_dims[p]; d++) {
            record_text_add(t, "%s%llu", d == 0 ? "" : ", ",
                            (unsigned long long)m->parameter_shape[p][d]);
        }
        record_text_add(t, "]");
        if ((m->parameter_flags[p] & FSDP_FROZEN) != 0) {
            record_text_add(t, ", \"frozen\": true");
        }
        if (of && of[p] == FSDP_NO_UNIT) {
            record_text_add(t, ", \"ignored\": true");
        } else if (of &&
                   of[p] != units->unit_of_module[m->parameter_module[p]]) {
            record_text_add(t, ", \"unit\": %u", of[p]);
        }
        if (fsdp_original(m, p) != p) {
            record_text_add(t, ", \"original\": %u", fsdp_original(m, p));
        }
        record_text_add(t, "}");
    }
    record_text_add(t, "]");
}

static void add_buffers(struct record_text *t, const struct fsdp_model *m)
{
    for (uint32_t b = 0; b < m->n_buffers; b++) {
        record_text_add(
            t, "%s\n  {\"name\": ", b == 0 ? ",\n \"buffers\": [" : ",");
        record_text_string(t, m->buffer_name[b], 256);
        record_text_add(
            t, ", \"module\": %u, \"persists\": %s}", m->buffer_module[b],
            (m->buffer_flags[b] & FSDP_NOT_PERSISTED) != 0 ? "false" : "true");
    }
    record_text_add(t, m->n_buffers > 0 ? "]\n}\n" : "\n}\n");
}

static void add_numbers(struct record_text *t, const char *name, uint32_t n,
                        const float *x)
{
    record_text_add(t, ",\n  \"%s\": [", name);
    for (uint32_t g = 0; g < n; g++) {
        record_text_add(t, "%s%.9g", g == 0 ? "" : ", ", (double)x[g]);
    }
    record_text_add(t, "]");
}

/* Which group each parameter is in, where there are several or one has numbers
 * of its own; rates and decays, which a script says in its steps; and what
 * groups have of their own. */
static void add_groups(struct record_text *t, const struct run_case *c,
                       const struct script *script, uint32_t n_parameters)
{
    const uint32_t n = case_is_script(c) ? script->groups : case_groups(c);
    const bool own = case_has_numbers(c);
    float x[6][SCRIPT_MAX_GROUPS];

    if (n < 2 && !own) {
        return;
    }
    record_text_add(t, ",\n \"groups\": {\n  \"n\": %u,\n  \"of\": [", n);
    for (uint32_t p = 0; p < n_parameters; p++) {
        record_text_add(t, "%s%u", p == 0 ? "" : ", ",
                        own ? case_group_of(c, p) : script_group_of(n, p));
    }
    record_text_add(t, "]");
    for (uint32_t g = 0; g < SCRIPT_MAX_GROUPS; g++) {
        struct case_numbers numbers;

        (void)case_numbers_of_group(c, g, &numbers);
        x[0][g] = case_group_lr(c, g);
        x[1][g] = case_group_decay(c, g);
        x[2][g] = numbers.momentum;
        x[3][g] = numbers.beta1;
        x[4][g] = numbers.beta2;
        x[5][g] = numbers.eps;
    }
    for (uint32_t i = case_is_script(c) ? 2 : 0; i < (own ? 6 : 2); i++) {
        static const char *const name[] = {"lr",    "decay", "momentum",
                                           "beta1", "beta2", "eps"};

        add_numbers(t, name[i], n, x[i]);
    }
    record_text_add(t, "}");
}

/* The script that the case plays, in its canonical form, with semicolons for
 * the ends of lines, as records have it. */
static int add_script(struct record_text *t, const struct script *script,
                      struct fsdp_error *error)
{
    char *text = script_text(script);

    if (!text) {
        return record_fail(error, FSDP_ERR_NOMEM, "adapter", "out of memory");
    }
    for (char *end = text; (end = strchr(end, '\n'));) {
        *end = end[1] == '\0' ? '\0' : ';';
    }
    record_text_add(t, " \"script\": ");
    record_text_string(t, text, strlen(text) + 1);
    record_text_add(t, ",\n");
    free(text);
    return FSDP_OK;
}

static int write_case(const char *folder, const struct run_case *c,
                      const struct case_model *model,
                      const struct script *script, struct fsdp_error *error)
{
    char path[RECORD_PATH_BYTES];
    char id[CASE_ID_BYTES];
    char key[CASE_ID_BYTES];
    struct record_text t = {0};

    case_id(c, id);
    case_baseline_key(c, key);
    FSDP_TRY(record_path(path, folder, "case.json", error));
    record_text_add(&t,
                    "{\n \"version\": %d,\n \"id\": \"%s\",\n"
                    " \"baseline\": \"%s\",\n",
                    FORMAT_VERSION, id, key);
    record_text_add(&t, " \"case\": ");
    record_write_fields(&t, &record_run_case, c);
    record_text_add(&t, ",\n");
    if (case_is_script(c)) {
        FSDP_TRY(add_script(&t, script, error));
    }
    add_modules(&t, &model->model->model, &model->units.units);
    add_parameters(&t, &model->model->model, &model->units.units);
    add_groups(&t, c, script, model->model->model.n_parameters);
    adapter_graph_add(&t, c, model->model);
    add_buffers(&t, &model->model->model);
    return record_text_save(&t, path, error);
}

/* A growing list of tensors, with copies of the names and shapes that they
 * point to. */
struct bundle {
    struct safetensors_tensor *t;
    char (*name)[64];
    void **data;
    size_t n, room;
    /* step, microbatch and rank of the samples that are visited */
    uint32_t step, microbatch, rank;
};

static int bundle_grow(struct bundle *b)
{
    size_t room = b->room == 0 ? 64 : b->room * 2;
    void *t = realloc(b->t, room * sizeof(*b->t));
    void *name;
    void *data;

    b->t = t ? t : b->t;
    name = realloc(b->name, room * sizeof(*b->name));
    b->name = name ? name : b->name;
    data = realloc(b->data, room * sizeof(*b->data));
    b->data = data ? data : b->data;
    if (!t || !name || !data) {
        return FSDP_ERR_NOMEM;
    }
    b->room = room;
    return FSDP_OK;
}

/* Owns `data`, which was malloc'ed, also where it fails. */
static int bundle_add(struct bundle *b, const char *name, const char *dtype,
                      uint32_t n_dims, const uint64_t *shape, void *data)
{
    struct safetensors_tensor *t;
    uint64_t bytes = safetensors_dtype_bits(dtype) / 8;

    if (!data || (b->n == b->room && bundle_grow(b) != FSDP_OK)) {
        free(data);
        return FSDP_ERR_NOMEM;
    }
    t = &b->t[b->n];
    *t = (struct safetensors_tensor){.dtype = dtype, .n_dims = n_dims};
    for (uint32_t d = 0; d < n_dims; d++) {
        t->shape[d] = shape[d];
        bytes *= shape[d];
    }
    t->bytes = bytes;
    t->data = b->data[b->n] = data;
    snprintf(b->name[b->n], sizeof(b->name[0]), "%s", name);
    b->n++;
    return FSDP_OK;
}

static int bundle_write(struct bundle *b, const char *folder, const char *file,
                        struct fsdp_error *error)
{
    static const struct safetensors_meta meta = {"fsdp-cts", "1"};
    char path[RECORD_PATH_BYTES];
    char why[200] = "";
    int status = record_path(path, folder, file, error);

    for (size_t i = 0; i < b->n; i++) {
        b->t[i].name = b->name[i]; /* the list has moved while it grew */
    }
    if (status == FSDP_OK) {
        status = safetensors_write(path, b->t, b->n, &meta, 1, false, why,
                                   sizeof(why));
        if (status != FSDP_OK) {
            (void)record_fail(error, status, "adapter", "%s", why);
        }
    }
    return status;
}

static void bundle_release(struct bundle *b)
{
    for (size_t i = 0; i < b->n; i++) {
        free(b->data[i]);
    }
    free(b->t);
    free(b->name);
    free(b->data);
}

static int write_weights(const char *folder, const struct fsdp_model *m,
                         struct fsdp_error *error)
{
    struct bundle b = {0};
    int status = FSDP_OK;

    for (uint32_t p = 0; p < m->n_parameters && status == FSDP_OK; p++) {
        uint64_t n = fsdp_numel(m, p);
        float *data = calloc(n + 1, sizeof(*data));

        status = !data ? FSDP_ERR_NOMEM : m->initial(m->context, p, 0, n, data);
        if (status == FSDP_OK) {
            status =
                bundle_add(&b, m->parameter_name[p], "F32",
                           m->parameter_n_dims[p], m->parameter_shape[p], data);
        } else {
            free(data);
        }
    }
    if (status == FSDP_OK) {
        status = bundle_write(&b, folder, "weights.safetensors", error);
    }
    bundle_release(&b);
    return status;
}

static const char *const dtypes[] = {
    [FSDP_DTYPE_F32] = "F32", [FSDP_DTYPE_BF16] = "BF16",
    [FSDP_DTYPE_F16] = "F16", [FSDP_DTYPE_I32] = "I32",
    [FSDP_DTYPE_I64] = "I64", [FSDP_DTYPE_U8] = "U8"};

static int add_initial(struct bundle *b, const struct fsdp_model *m,
                       uint32_t buffer)
{
    const uint64_t n = m->buffer_numel[buffer];
    const uint32_t dtype = m->buffer_dtype[buffer];
    void *data = calloc(n * fsdp_dtype_bytes(dtype) + 1, 1);
    const int status = data ? m->initial_buffer(m->context, buffer, 0, n, data)
                            : FSDP_ERR_NOMEM;

    if (status != FSDP_OK) {
        free(data);
        return status;
    }
    return bundle_add(b, m->buffer_name[buffer], dtypes[dtype], 1, &n, data);
}

/* Writes the buffers of a model that has any. */
static int write_buffers(const char *folder, const struct fsdp_model *m,
                         struct fsdp_error *error)
{
    struct bundle b = {0};
    int status = FSDP_OK;

    for (uint32_t i = 0; i < m->n_buffers && status == FSDP_OK; i++) {
        status = add_initial(&b, m, i);
    }
    if (status == FSDP_OK && m->n_buffers > 0) {
        status = bundle_write(&b, folder, "buffers.safetensors", error);
    }
    bundle_release(&b);
    return status;
}

/* The latest samples of this microbatch, rank and name; NULL: none yet. */
static const struct safetensors_tensor *latest(const struct bundle *b,
                                               const char *name)
{
    const char *suffix = strchr(name, '.');

    for (size_t i = b->n; i > 0; i--) {
        if (strcmp(strchr(b->name[i - 1], '.'), suffix) == 0) {
            return &b->t[i - 1];
        }
    }
    return NULL;
}

static int visit_samples(void *context, const struct workload_samples *s)
{
    struct bundle *b = context;
    uint64_t bytes = safetensors_dtype_bits(s->dtype) / 8;
    const struct safetensors_tensor *before;
    char name[64];
    void *data;

    for (uint32_t d = 0; d < s->n_dims; d++) {
        bytes *= s->shape[d];
    }
    snprintf(name, sizeof(name), "%u.%u.%u.%.16s", b->step, b->microbatch,
             b->rank, s->name);
    before = latest(b, name);
    if (before && before->bytes == bytes &&
        memcmp(before->data, s->data, bytes) == 0) {
        return FSDP_OK;
    }
    data = malloc(bytes + 1);
    if (data) {
        memcpy(data, s->data, bytes);
    }
    return bundle_add(b, name, s->dtype, s->n_dims, s->shape, data);
}

/* The number of steps that have samples. An evaluation uses those of the step
 * behind the last; a script itself says which it wants. */
static uint32_t steps_of(const struct run_case *c, const struct script *script)
{
    struct script_walk walk = script_begin(script);
    const struct script_action *a;
    uint32_t steps = 0;

    if (!case_is_script(c)) {
        return c->steps + (c->scenario == CASE_EVAL ? 1 : 0);
    }
    while ((a = script_next(&walk))) {
        if (a->verb == SCRIPT_PASS || a->verb == SCRIPT_EVAL) {
            const uint32_t step = script_step(&walk, a);

            steps = step + 1 > steps ? step + 1 : steps;
        }
    }
    return steps;
}

static int write_batches(const char *folder, const struct run_case *c,
                         const struct workload_model *m, uint32_t steps,
                         struct fsdp_error *error)
{
    struct bundle b = {0};
    int status = FSDP_OK;

    for (b.step = 0; b.step < steps; b.step++) {
        for (b.microbatch = 0; b.microbatch < c->microbatches; b.microbatch++) {
            for (b.rank = 0; b.rank < c->ranks && status == FSDP_OK; b.rank++) {
                status = m->workload->samples(m, b.rank, b.step, b.microbatch,
                                              visit_samples, &b);
            }
        }
    }
    if (status == FSDP_OK) {
        status = bundle_write(&b, folder, "batches.safetensors", error);
    }
    bundle_release(&b);
    return status;
}

static int read_script(const struct run_case *c, struct script *out,
                       struct fsdp_error *error)
{
    const struct case_script *s = case_script_find(c->script);

    if (!s) {
        return record_fail(error, FSDP_ERR_INVALID, "adapter",
                           "there is no script '%s'", c->script);
    }
    return script_parse(s->text, out, error);
}

int adapter_case_write(const char *folder, const struct run_case *c,
                       const struct text *text, struct fsdp_error *error)
{
    struct case_model model = {0};
    struct script script = {0};
    int status = record_make_directory(folder, error);

    if (status == FSDP_OK && case_is_script(c)) {
        status = read_script(c, &script, error);
    }

    if (status == FSDP_OK) {
        status = case_model_make(c, text->bytes, text->n, &model, error);
    }
    if (status == FSDP_OK) {
        status = write_weights(folder, &model.model->model, error);
    }
    if (status == FSDP_OK) {
        status = write_buffers(folder, &model.model->model, error);
    }
    if (status == FSDP_OK) {
        status =
            write_batches(folder, c, model.model, steps_of(c, &script), error);
    }
    if (status == FSDP_OK) { /* written last: a folder that has it is
                                complete */
        status = write_case(folder, c, &model, &script, error);
    }
    script_release(&script);
    case_model_release(&model);
    if (status == FSDP_ERR_NOMEM) {
        (void)record_fail(error, status, "adapter", "out of memory");
    }
    return status;
}
