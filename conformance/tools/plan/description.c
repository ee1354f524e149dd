/* SPDX-License-Identifier: Apache-2.0 */
/*
 * description.c - reads a model's description, strictly. Whether its fields fit
 * together is checked by plan_model.c.
 */
#include "tools/plan/description.h"

#include "record/record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A number that is not negative; null: by the module's matrices. */
static bool read_flops(struct record_json *j, struct record_field at, json_t *v,
                       const struct record_row *row, void *base)
{
    struct description_module *const m = base;

    (void)row;
    if (json_is_null(v)) {
        return true;
    }
    m->has_flops = true;
    m->flops = json_number_value(v);
    return (json_is_number(v) && m->flops >= 0.0 && m->flops <= 0x1p62) ||
           record_refuse(j, at,
                         "a number of operations, or null, was expected");
}

static const struct record_type flops = {read_flops, NULL};

#define AT(member) RECORD_AT(struct description_parameter, member)
static const struct record_row parameter_rows[] = {
    {"name", &record_string, AT(name), .least = 1},
    {"dtype", &record_name, AT(dtype), .name = record_dtype_name},
    {"shape", &record_short_list,
     RECORD_LIST(struct description_parameter, shape, n_dims),
     .each = &(const struct record_row){.type = &record_u64,
                                        .room = sizeof(uint64_t)},
     .most = FSDP_MAX_DIMS},
};
#undef AT
static const struct record_table parameter_table = {
    RECORD_ROWS(parameter_rows), .size = sizeof(struct description_parameter),
    .prefix = "parameters."};

#define AT(member) RECORD_AT(struct description_module, member)
static const struct record_row module_rows[] = {
    {"name", &record_string, AT(name)},
    {"class", &record_string, AT(class_name), .least = 1},
    {"unit", &record_bool, AT(unit)},
    {"checkpoint", &record_bool, AT(checkpoint)},
    {"flops", &flops, AT(flops)},
    {"attention", &record_u32, AT(attention), .most = 1 << 24},
    {"parameters", &record_list,
     RECORD_LIST(struct description_module, parameter, n_parameters),
     .table = &parameter_table, .most = 1024},
};
#undef AT
static const struct record_table module_table = {
    RECORD_ROWS(module_rows), .size = sizeof(struct description_module),
    .prefix = "modules."};

#define AT(member) RECORD_AT(struct description_part, member)
static const struct record_row part_rows[] = {
    {"times", &record_u32, AT(times), .least = 1,
     .most = DESCRIPTION_MAX_MODULES},
    {"modules", &record_list,
     RECORD_LIST(struct description_part, module, n_modules),
     .table = &module_table, .least = 1, .most = DESCRIPTION_MAX_MODULES},
};
#undef AT
static const struct record_table part_table = {
    RECORD_ROWS(part_rows), .size = sizeof(struct description_part),
    .prefix = "parts."};

#define AT(member) RECORD_AT(struct description_call, member)
static const struct record_row call_rows[] = {
    {"point", &record_name, AT(point), .name = record_point_name},
    {"module", &record_string, AT(module)},
};
#undef AT
static const struct record_table call_table = {
    RECORD_ROWS(call_rows), .size = sizeof(struct description_call),
    .tuple = true};

#define AT(member) RECORD_AT(struct description, member)
static const struct record_row rows[] = {
    {"version", &record_version, .most = DESCRIPTION_VERSION},
    {"name", &record_string, AT(name), .least = 1},
    {"source", &record_string, AT(source)},
    {"parts", &record_list, RECORD_LIST(struct description, part, n_parts),
     .table = &part_table, .least = 1, .most = DESCRIPTION_MAX_MODULES},
    {"calls", &record_list, RECORD_LIST(struct description, call, n_calls),
     .table = &call_table, .most = DESCRIPTION_MAX_CALLS},
};
#undef AT
const struct record_table description_table = {RECORD_ROWS(rows), .prefix = ""};

int description_parse(const char *text, size_t bytes, const char *file,
                      struct description *out, struct fsdp_error *error)
{
    memset(out, 0, sizeof(*out));
    return record_parse(text, bytes, file, &description_table, NULL, out,
                        error);
}

void description_release(struct description *d)
{
    for (uint32_t i = 0; d->part && i < d->n_parts; i++) {
        for (uint32_t m = 0; d->part[i].module && m < d->part[i].n_modules;
             m++) {
            free(d->part[i].module[m].parameter);
        }
        free(d->part[i].module);
    }
    free(d->part);
    free(d->call);
    memset(d, 0, sizeof(*d));
}
