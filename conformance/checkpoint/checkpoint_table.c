/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_table.c - the tensors of a checkpoint, by name and global shape,
 * and how a run of one of them falls into boxes.
 */
#include "checkpoint_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int checkpoint_refuse(char *why, int status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(why, CHECKPOINT_WHY_BYTES, format, arguments);
    va_end(arguments);
    return status;
}

int checkpoint_refuse_system(char *why, const char *file, const char *what)
{
    return checkpoint_refuse(why,
                             errno == ENOMEM ? FSDP_ERR_NOMEM : FSDP_ERR_IO,
                             "%.90s: %s: %s", file, what, strerror(errno));
}

/* The product of the extents, or UINT64_MAX if it needs more than 62 bits. */
static uint64_t numel_of(uint32_t n_dims, const uint64_t *shape)
{
    uint64_t n = 1;

    for (uint32_t d = 0; d < n_dims; d++) {
        if (__builtin_mul_overflow(n, shape[d], &n) || n >> 60) {
            return UINT64_MAX;
        }
    }
    return n;
}

int checkpoint_table_add(struct checkpoint_table *table, const char *name,
                         uint32_t n_dims, const uint64_t *shape, bool is_state,
                         uint32_t *out)
{
    struct checkpoint_entry *e;
    uint64_t numel =
        n_dims <= FSDP_MAX_DIMS ? numel_of(n_dims, shape) : UINT64_MAX;

    if (numel == UINT64_MAX) {
        return FSDP_ERR_INVALID;
    }
    if ((table->n & (table->n - 1)) == 0) { /* full at every power of two */
        size_t room = table->n == 0 ? 1 : 2 * (size_t)table->n;
        e = realloc(table->entry, room * sizeof(*e));
        if (!e) {
            return FSDP_ERR_NOMEM;
        }
        table->entry = e;
    }
    e = &table->entry[table->n];
    memset(e, 0, sizeof(*e));
    e->n_dims = n_dims;
    e->numel = numel;
    e->is_state = is_state;
    if (n_dims > 0) {
        memcpy(e->shape, shape, n_dims * sizeof(*shape));
    }
    if (name) {
        e->name = strdup(name);
        if (!e->name) {
            return FSDP_ERR_NOMEM;
        }
    }
    if (out) {
        *out = table->n;
    }
    table->n++;
    return FSDP_OK;
}

static const char *const dtype_name[] = {
    [FSDP_DTYPE_NONE] = "F32",  [FSDP_DTYPE_F32] = "F32",
    [FSDP_DTYPE_BF16] = "BF16", [FSDP_DTYPE_F16] = "F16",
    [FSDP_DTYPE_I32] = "I32",   [FSDP_DTYPE_I64] = "I64",
    [FSDP_DTYPE_U8] = "U8"};

const char *checkpoint_dtype_name(uint32_t dtype)
{
    return dtype <= FSDP_DTYPE_U8 ? dtype_name[dtype] : NULL;
}

uint32_t checkpoint_dtype_of_name(const char *name)
{
    uint32_t dtype = FSDP_DTYPE_U8;

    while (dtype > FSDP_DTYPE_NONE && strcmp(dtype_name[dtype], name) != 0) {
        dtype--;
    }
    return dtype;
}

uint64_t checkpoint_element_bytes(const struct checkpoint_entry *e)
{
    return fsdp_dtype_bytes(e->dtype == FSDP_DTYPE_NONE ? FSDP_DTYPE_F32
                                                        : e->dtype);
}

int checkpoint_table_add_buffers(const struct fsdp_model *model,
                                 struct checkpoint_table *table)
{
    for (uint32_t b = 0; b < model->n_buffers; b++) {
        const bool kept = (model->buffer_flags[b] & FSDP_NOT_PERSISTED) == 0;
        const uint32_t dtype = model->buffer_dtype[b];
        uint32_t i;

        FSDP_TRY(checkpoint_table_add(table,
                                      kept ? model->buffer_name[b] : NULL, 1,
                                      &model->buffer_numel[b], false, &i));
        table->entry[i].dtype = dtype == FSDP_DTYPE_F32 ? 0 : dtype;
        table->entry[i].is_buffer = true;
    }
    return FSDP_OK;
}

void checkpoint_table_release(struct checkpoint_table *table)
{
    for (uint32_t i = 0; i < table->n; i++) {
        free(table->entry[i].name);
        free(table->entry[i].spare);
    }
    free(table->entry);
    *table = (struct checkpoint_table){0};
}

uint32_t checkpoint_states(uint32_t optimizer)
{
    return optimizer == FSDP_OPTIMIZER_ADAMW      ? 2
           : optimizer == FSDP_OPTIMIZER_MOMENTUM ? 1
                                                  : 0;
}

void checkpoint_unit_name(const struct fsdp_model *model,
                          const struct fsdp_units *units, uint32_t layout,
                          uint32_t u, uint32_t k,
                          char name[CHECKPOINT_UNIT_NAME_BYTES])
{
    const uint64_t prime = 0x100000001b3u; /* FNV-1a */
    uint64_t h = (0xcbf29ce484222325u ^ layout) * prime;

    for (uint32_t p = 0; p < model->n_parameters; p++) {
        uint64_t numel = fsdp_numel(model, p);
        if (fsdp_unit_of(model, units, p) != u ||
            fsdp_original(model, p) != p) {
            continue;
        }
        for (const char *c = model->parameter_name[p]; *c; c++) {
            h = (h ^ (unsigned char)*c) * prime;
        }
        for (uint32_t i = 0; i < 8; i++) {
            h = (h ^ (numel >> (8 * i) & 0xff)) * prime;
        }
        if (model->parameter_flags[p] & FSDP_FROZEN) { /* a frozen parameter has
                                                        * no states */
            h = (h ^ FSDP_FROZEN) * prime;
        }
    }
    snprintf(name, CHECKPOINT_UNIT_NAME_BYTES, "%sunit.%05u.%016llx.%u",
             k ? "optim." : "", u, (unsigned long long)h, k);
}

int checkpoint_compare_names(const void *a, const void *b)
{
    const char *const *left = a;
    const char *const *right = b;

    return strcmp(*left, *right);
}

const char **checkpoint_sorted_names(const struct checkpoint_table *table,
                                     uint32_t *n)
{
    const char **name = calloc(table->n + (size_t)1, sizeof(*name));

    *n = 0;
    for (uint32_t i = 0; name && i < table->n; i++) {
        if (table->entry[i].name) {
            name[(*n)++] = table->entry[i].name;
        }
    }
    if (name) {
        qsort(name, *n, sizeof(*name), checkpoint_compare_names);
    }
    return name;
}

/* Checks that names are unique: a parameter may have the name of another one's
 * state, or of a buffer. */
static int check_unique(const struct checkpoint_table *table, char *why)
{
    uint32_t n;
    const char **name = checkpoint_sorted_names(table, &n);
    int status = FSDP_OK;

    if (!name) {
        return checkpoint_no_memory(why);
    }
    for (uint32_t i = 1; i < n && status == FSDP_OK; i++) {
        if (strcmp(name[i - 1], name[i]) == 0) {
            status =
                checkpoint_refuse(why, FSDP_ERR_INVALID,
                                  "two tensors have the name %.120s", name[i]);
        }
    }
    free(name);
    return status;
}

/* Adds an entry; one that is left out has no name, but a spare one. */
static int add_entry(const struct fsdp_model *model, uint32_t p,
                     const char *name, bool left_out, bool is_state,
                     struct checkpoint_table *out)
{
    uint32_t i;

    FSDP_TRY(checkpoint_table_add(out, left_out ? NULL : name,
                                  model->parameter_n_dims[p],
                                  model->parameter_shape[p], is_state, &i));
    if (left_out && name) {
        out->entry[i].spare = strdup(name);
        return out->entry[i].spare ? FSDP_OK : FSDP_ERR_NOMEM;
    }
    return FSDP_OK;
}

/* Adds a parameter and its states; frozen parameters have no states, and
 * ignored ones are left out altogether. */
static int add_parameter(const struct fsdp_model *model,
                         const struct fsdp_units *units, uint32_t p,
                         uint32_t optimizer, struct checkpoint_table *out)
{
    static const char *const momentum[] = {"momentum_buffer"};
    static const char *const adamw[] = {"exp_avg", "exp_avg_sq"};
    const char *const *state =
        optimizer == FSDP_OPTIMIZER_ADAMW ? adamw : momentum;
    bool own = !model->parameter_alias || model->parameter_alias[p] < 0;
    const bool ignored = fsdp_unit_of(model, units, p) == FSDP_NO_UNIT;
    const bool frozen = (model->parameter_flags[p] & FSDP_FROZEN) != 0;
    size_t room = strlen(model->parameter_name[p]) + 48;
    char *name = malloc(room);
    int status =
        name ? add_entry(model, p, own ? model->parameter_name[p] : NULL,
                         ignored, false, out)
             : FSDP_ERR_NOMEM;

    for (uint32_t k = 0; status == FSDP_OK && k < checkpoint_states(optimizer);
         k++) {
        snprintf(name, room, "optim.state.%s.%s", model->parameter_name[p],
                 state[k]);
        status = add_entry(model, p, own ? name : NULL, frozen || ignored, true,
                           out);
    }
    free(name);
    return status;
}

int checkpoint_table_of_model(const struct fsdp_model *model,
                              const struct fsdp_units *units,
                              uint32_t optimizer, struct checkpoint_table *out,
                              char *why)
{
    int status = FSDP_OK;

    *out = (struct checkpoint_table){0};
    for (uint32_t p = 0; status == FSDP_OK && p < model->n_parameters; p++) {
        status = add_parameter(model, units, p, optimizer, out);
    }
    if (status == FSDP_OK) {
        status = checkpoint_table_add_buffers(model, out);
    }
    if (status != FSDP_OK) {
        (void)checkpoint_refuse(why, status, "%s", fsdp_status_text(status));
    } else {
        status = check_unique(out, why);
    }
    if (status != FSDP_OK) {
        checkpoint_table_release(out);
    }
    return status;
}

/* The largest box that begins at `first`, is a run, and ends by `end`. */
static void largest_box(uint32_t n_dims, const uint64_t *shape, uint64_t first,
                        uint64_t end, struct checkpoint_box *box)
{
    uint64_t stride = 1;
    uint64_t rest = first;
    uint32_t d = n_dims;

    /* Extents below dimension d are full; d is as far out as place and length
     * allow. */
    while (d > 1 && shape[d - 1] > 0 && first % (stride * shape[d - 1]) == 0 &&
           end - first >= stride * shape[d - 1]) {
        stride *= shape[--d];
    }
    memset(box, 0, sizeof(*box));
    box->first = first;
    box->n = n_dims == 0 ? 1 : stride;
    for (uint32_t i = n_dims; i-- > 0;) {
        box->offset[i] = shape[i] ? rest % shape[i] : 0;
        rest = shape[i] ? rest / shape[i] : 0;
        box->shape[i] = i >= d ? shape[i] : 1;
    }
    if (n_dims > 0) {
        uint64_t room = shape[d - 1] - box->offset[d - 1];
        uint64_t wanted = (end - first) / stride;
        box->shape[d - 1] = wanted < room ? wanted : room;
        box->n = stride * box->shape[d - 1];
    }
}

uint32_t checkpoint_boxes(uint32_t n_dims, const uint64_t *shape,
                          uint64_t first, uint64_t n,
                          struct checkpoint_box box[CHECKPOINT_MAX_BOXES])
{
    uint64_t end = first + n;
    uint32_t found = 0;

    while (first < end && found < CHECKPOINT_MAX_BOXES) {
        largest_box(n_dims, shape, first, end, &box[found]);
        first += box[found++].n;
    }
    return found;
}
