/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_docs_test.c - docs/formats.md says of each field of a record who
 * checks it: every field of the tables has a row in the page, and every row is
 * about a field.
 */
#include "record/record_internal.h"
#include "testing/unit_testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_FIELDS = 128,
    FIELD_BYTES = 64
};

struct fields {
    uint32_t n;
    char name[MOST_FIELDS][FIELD_BYTES];
    bool told[MOST_FIELDS];
};

/* A table of tables is as deep as the format. NOLINTNEXTLINE(misc-no-recursion)
 */
static void walk_table(struct fields *to, const struct record_table *table,
                       const char *above);

/* What has fields of its own is none. NOLINTNEXTLINE(misc-no-recursion) */
static void walk_row(struct fields *to, const struct record_row *row,
                     const char *name)
{
    while (!row->table && row->each) {
        row = row->each;
    }
    if (row->table) {
        walk_table(to, row->table, name);
        return;
    }
    assert_true(to->n < MOST_FIELDS);
    snprintf(to->name[to->n++], FIELD_BYTES, "%s", name);
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static void walk_table(struct fields *to, const struct record_table *table,
                       const char *above)
{
    for (size_t i = 0; i < table->n; i++) {
        char name[FIELD_BYTES];

        snprintf(name, sizeof(name), "%s%s%s", above,
                 above[0] != '\0' ? "." : "", table->row[i].key);
        walk_row(to, &table->row[i], name);
    }
}

/* `a`, `b`: the names in the first cell of a row. */
static void tell(struct fields *to, const char *cell)
{
    const char *end = strchr(cell, '|');

    assert_non_null(end);
    while ((cell = strchr(cell, '`')) && cell < end) {
        const size_t n = strcspn(++cell, "`");
        uint32_t i = 0;

        while (i < to->n && (strlen(to->name[i]) != n ||
                             strncmp(to->name[i], cell, n) != 0)) {
            i++;
        }
        if (i == to->n || to->told[i]) {
            fail_msg("docs/formats.md: `%.*s` is no field of the file, or is "
                     "there twice",
                     (int)n, cell);
        }
        to->told[i] = true;
        cell += n + 1;
    }
}

/* The table whose first line begins with `head`. */
static void compare(const struct record_table *table, const char *head)
{
    struct fields all = {0};
    size_t bytes = 0;
    char *text = NULL;
    const struct record_source from = {.where = "docs", .most = 1 << 20};
    const char *line;

    walk_table(&all, table, "");
    assert_int_equal(
        record_read_file("docs/formats.md", &from, &text, &bytes, NULL),
        FSDP_OK);
    line = strstr(text, head);
    assert_non_null(line);
    line = strstr(line, "|---|---|---|\n");
    assert_non_null(line);
    while ((line = strchr(line, '\n') + 1)[0] == '|') {
        tell(&all, line + 1);
    }
    for (uint32_t i = 0; i < all.n; i++) {
        if (!all.told[i]) {
            fail_msg("docs/formats.md does not say who checks `%s`",
                     all.name[i]);
        }
    }
    free(text);
}

UNIT_TEST(each_field_has_its_row)
{
    compare(&record_case_table, "| field of `case.json` |");
    compare(&record_rank_table, "| field of `rank-R.json` |");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_field_has_its_row)};

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
