/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema_fields_test.c - the schemas in fixtures/schema/ say what the tables
 * of fields say: each field and no other, its type, its names, its bounds. A
 * schema may be narrower than its table, where a check beside the table is:
 * case_check knows how many ranks a case may have, for example.
 */
#include "record/record_fields.h"
#include "run/adapter_claims.h"
#include "testing/unit_testing.h"
#include "tools/check/own_record.h"
#include "tools/plan/cluster.h"
#include "tools/plan/description.h"
#include "tools/probes/probe_parse.h"
#include "tools/submit/bundle_files.h"
#include "tools/submit/explanations.h"
#include "tools/submit/submission.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The schema that is looked at. */
static json_t *schema;

static json_t *load_schema(const char *name)
{
    char path[512];
    json_error_t error;

    snprintf(path, sizeof(path), FIXTURES_DIR "/schema/%s.schema.json", name);
    schema = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!schema) {
        fail_msg("%s: line %d: %s", path, error.line, error.text);
    }
    return schema;
}

/* The schema that "$ref": "#/$defs/NAME" stands for. */
static const json_t *resolve(const json_t *s)
{
    const char *ref;

    while ((ref = json_string_value(json_object_get(s, "$ref")))) {
        s = json_object_get(json_object_get(schema, "$defs"),
                            strrchr(ref, '/') + 1);
        assert_non_null(s);
    }
    return s;
}

/* The i-th of the schema's alternatives; of one that has none, itself. */
static const json_t *alternative(const json_t *s, size_t i)
{
    const json_t *all = json_object_get(s, "anyOf");

    all = all ? all : json_object_get(s, "oneOf");
    if (!all) {
        return i == 0 ? s : NULL;
    }
    return i < json_array_size(all) ? resolve(json_array_get(all, i)) : NULL;
}

static bool is_type(const json_t *s, const char *type)
{
    const char *is = json_string_value(json_object_get(s, "type"));

    return is && strcmp(is, type) == 0;
}

/* The alternative of this type. */
static const json_t *of_type(const char *key, const json_t *s, const char *type)
{
    const json_t *one;

    for (size_t i = 0; (one = alternative(s, i)); i++) {
        if (is_type(one, type)) {
            return one;
        }
    }
    fail_msg("%s: the schema has no %s", key, type);
    return NULL;
}

/* [keyword least, keyword most] lies within what the table takes. */
static void compare_range(const char *key, const json_t *s, const char *low,
                          const char *high, int64_t least, int64_t most)
{
    const json_t *v = json_object_get(s, low);

    if ((v ? json_integer_value(v) : 0) < least) {
        fail_msg("%s: the schema's %s is under %lld", key, low,
                 (long long)least);
    }
    v = json_object_get(s, high);
    if (most < UINT32_MAX && (!v || json_integer_value(v) > most)) {
        fail_msg("%s: the schema's %s is over %lld", key, high,
                 (long long)most);
    }
}

static void compare_names(const struct record_row *row, const json_t *s)
{
    const json_t *names = NULL;
    const json_t *one;
    uint32_t n = 0;

    for (size_t i = 0; !names && (one = alternative(s, i)); i++) {
        names = json_object_get(one, "enum");
    }
    for (uint32_t i = 0; i <= 64; i++) {
        const char *name = row->name(i < 64 ? i : UINT32_MAX);

        if (!name) {
            continue;
        }
        if (n >= json_array_size(names) ||
            strcmp(json_string_value(json_array_get(names, n)), name) != 0) {
            fail_msg("%s: the schema lacks \"%s\" at its place", row->key,
                     name);
        }
        n++;
    }
    assert_int_equal(json_array_size(names), n);
}

/* Tables are within tables. NOLINTBEGIN(misc-no-recursion) */
static void compare_table(const char *key, const struct record_table *table,
                          const json_t *s);
static void compare_row(const struct record_row *row, const json_t *s);

static void compare_list(const struct record_row *row, const json_t *s)
{
    const bool fixed = row->type == &record_array;
    const uint64_t most = row->most != 0 ? row->most : UINT32_MAX;

    s = of_type(row->key, s, "array");
    if (!row->bounds) {
        compare_range(
            row->key, s, "minItems", "maxItems",
            (int64_t)(fixed && row->least == 0 ? row->most : row->least),
            (int64_t)most);
    }
    s = resolve(json_object_get(s, "items"));
    if (!row->each) {
        compare_table(row->key, row->table, s);
    } else {
        struct record_row each = *row->each;

        each.key = row->key;
        compare_row(&each, s);
    }
}

static void compare_text(const struct record_row *row, const json_t *s)
{
    s = of_type(row->key, s, "string");
    if (row->type == &record_sha256) {
        assert_string_equal(json_string_value(json_object_get(s, "pattern")),
                            "^[0-9a-f]{64}$");
    } else if (!json_object_get(s, "pattern")) {
        compare_range(row->key, s, "minLength", "maxLength",
                      (int64_t)row->least, (int64_t)row->room - 1);
    }
}

static void compare_number(const struct record_row *row, const json_t *s)
{
    const uint64_t most = row->most != 0 ? row->most : UINT32_MAX;

    if (row->type == &record_version) {
        const json_int_t said = json_integer_value(json_object_get(s, "const"));

        if (said < 0 || (uint64_t)said != row->most) {
            fail_msg("%s: the schema has the const %lld, the table %llu",
                     row->key, (long long)said, (unsigned long long)row->most);
        }
    } else if (row->type == &record_i32) {
        s = of_type(row->key, s, "integer");
        compare_range(row->key, s, "minimum", "maximum", INT32_MIN, INT32_MAX);
    } else if (row->type == &record_u64) {
        (void)of_type(row->key, s, "integer");
        (void)of_type(row->key, s, "string");
    } else if (!json_object_get(s, "enum")) {
        s = of_type(row->key, s, "integer");
        compare_range(row->key, s, "minimum", "maximum", (int64_t)row->least,
                      (int64_t)most);
    }
}

/* Types that one format alone has are not looked into. */
static void compare_row(const struct record_row *row, const json_t *s)
{
    const struct record_type *type = row->type;

    s = resolve(s);
    if (row->null) {
        (void)of_type(row->key, s, "null");
    }
    if (type == &record_version || type == &record_u32 || type == &record_u64 ||
        type == &record_i32) {
        compare_number(row, s);
    } else if (type == &record_flag || type == &record_bool) {
        (void)of_type(row->key, s, "boolean");
    } else if (type == &record_string || type == &record_sha256) {
        compare_text(row, s);
    } else if (type == &record_name || type == &record_name_or_number) {
        compare_names(row, s);
    } else if (type == &record_real) {
        (void)of_type(row->key, s, "number");
    } else if (type == &record_object) {
        compare_table(row->key, row->table, s);
    } else if (type == &record_list || type == &record_short_list ||
               type == &record_array) {
        compare_list(row, s);
    }
}

static void compare_tuple(const char *key, const struct record_table *table,
                          const json_t *s)
{
    const json_t *column = json_object_get(s, "prefixItems");

    s = of_type(key, s, "array");
    assert_int_equal(json_integer_value(json_object_get(s, "minItems")),
                     table->n);
    assert_int_equal(json_integer_value(json_object_get(s, "maxItems")),
                     table->n);
    for (size_t i = 0; i < table->n; i++) {
        compare_row(&table->row[i], column ? json_array_get(column, i)
                                           : json_object_get(s, "items"));
    }
}

static bool has_text(const json_t *list, const char *text)
{
    bool found = false;

    for (size_t i = 0; i < json_array_size(list); i++) {
        found = found ||
                strcmp(json_string_value(json_array_get(list, i)), text) == 0;
    }
    return found;
}

/* `beside`: fields of the schema that the table leaves to others. */
static void compare_object(const char *key, const struct record_table *table,
                           const json_t *s, size_t beside)
{
    const json_t *const properties = json_object_get(s, "properties");
    const json_t *const required = json_object_get(s, "required");
    size_t n_required = beside;

    assert_true(json_is_false(json_object_get(s, "additionalProperties")));
    for (size_t i = 0; i < table->n; i++) {
        const struct record_row *const row = &table->row[i];

        if (!json_object_get(properties, row->key)) {
            fail_msg("%s: the table has a field \"%s\", the schema's "
                     "properties lack it",
                     key, row->key);
        }
        if (has_text(required, row->key) == row->optional) {
            fail_msg("%s: \"%s\" is %s in the table, and the schema's list "
                     "of what is required %s it",
                     key, row->key, row->optional ? "optional" : "mandatory",
                     row->optional ? "has" : "lacks");
        }
        n_required += !row->optional;
        compare_row(row, json_object_get(properties, row->key));
    }
    if (json_object_size(properties) != table->n + beside) {
        fail_msg("%s: the schema has %zu fields, the table %zu", key,
                 json_object_size(properties), table->n + beside);
    }
    assert_int_equal(json_array_size(required), n_required);
}

static void compare_table(const char *key, const struct record_table *table,
                          const json_t *s)
{
    if (table->tuple) {
        compare_tuple(key, table, s);
    } else {
        compare_object(key, table, of_type(key, s, "object"), 0);
    }
}

/* NOLINTEND(misc-no-recursion) */

UNIT_TEST(schemas_of_files)
{
    const struct {
        const char *name;
        const struct record_table *table;
    } all[] = {{"record-case", &record_case_table},
               {"record-rank", &record_rank_table},
               {"about", &submission_about_table},
               {"submission", &submission_table},
               {"bundle-manifest", &bundle_manifest_table},
               {"explanations", &explanations_table},
               {"claims", &adapter_claims_table},
               {"own-record", &own_record_table},
               {"plan-model", &description_table},
               {"plan-cluster", &cluster_table}};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        compare_table(all[i].name, all[i].table, load_schema(all[i].name));
        json_decref(schema);
    }
}

static json_int_t greatest(const json_t *properties, const char *key)
{
    return json_integer_value(
        json_object_get(json_object_get(properties, key), "maximum"));
}

/* The bounds that case_check.c has. */
static void compare_case_bounds(const json_t *properties)
{
    const json_t *grains =
        json_object_get(json_object_get(properties, "grains"), "enum");

    assert_int_equal(greatest(properties, "ranks"), CASE_MAX_RANKS);
    assert_int_equal(greatest(properties, "replicas"), CASE_MAX_RANKS);
    assert_int_equal(greatest(properties, "prefetch_forward"), CASE_MAX_AHEAD);
    assert_int_equal(greatest(properties, "prefetch_backward"), CASE_MAX_AHEAD);
    assert_int_equal(greatest(properties, "reduces_in_flight"), CASE_MAX_AHEAD);
    assert_int_equal(json_array_size(grains), 3);
    assert_int_equal(json_integer_value(json_array_get(grains, 1)),
                     CASE_GRAINS);
    assert_int_equal(json_integer_value(json_array_get(grains, 2)),
                     CASE_MANY_GRAINS);
}

/* The case that adapters are given, and the case in a record, have one
 * table. */
UNIT_TEST(schema_of_a_case)
{
    const char *const names[] = {"job-case", "record-case"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const json_t *x;

        (void)load_schema(names[i]);
        x = resolve(
            json_object_get(json_object_get(schema, "properties"), "case"));
        compare_table("case", &record_run_case, x);
        compare_case_bounds(json_object_get(x, "properties"));
        json_decref(schema);
    }
}

static const char *type_of(const json_t *line)
{
    return json_string_value(json_object_get(
        json_object_get(json_object_get(line, "properties"), "type"), "const"));
}

/* Lines of a type that have as many fields beside it as the table. */
static void compare_line(const char *type, const struct record_table *table)
{
    const json_t *line;

    for (size_t i = 0; (line = alternative(schema, i)); i++) {
        const json_t *properties = json_object_get(line, "properties");

        if (strcmp(type_of(line), type) == 0 &&
            json_object_get(properties, table->row[table->n - 1].key) &&
            json_object_size(properties) == table->n + 1) {
            compare_object(type, table, line, 1);
            return;
        }
    }
    fail_msg("the schema has no such line as \"%s\"", type);
}

UNIT_TEST(schema_of_a_log)
{
    size_t n = 1;

    (void)load_schema("probe-log");
    compare_line("header", &probe_header);
    for (const struct probe_line *l = probe_lines; l->type; l++) {
        compare_line(l->type, l->table);
        n++;
    }
    assert_int_equal(json_array_size(json_object_get(schema, "oneOf")), n);
    json_decref(schema);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schemas_of_files),
        cmocka_unit_test(schema_of_a_case),
        cmocka_unit_test(schema_of_a_log),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
