/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_record_test.c - the strict reader: a kept record (fixtures/check) with
 * one change in its text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "record/record_internal.h"
#include "tools/check/own_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A reader that takes a text takes it back with one change less. */
static int read_changed(const char *from, const char *to)
{
    char path[RECORD_PATH_BYTES];
    const struct record_source source = {.where = "test", .most = 1 << 24};
    struct own_record r = {0};
    struct fsdp_error error = {0};
    char *text = NULL;
    char *changed;
    const char *at;
    size_t bytes = 0;
    size_t room;
    int status;

    snprintf(path, sizeof(path), FIXTURES_DIR "/check/mlp/rank-1.json");
    assert_int_equal(record_read_file(path, &source, &text, &bytes, &error),
                     FSDP_OK);
    at = strstr(text, from);
    assert_non_null(at);
    room = bytes + strlen(to) + 1;
    changed = malloc(room);
    assert_non_null(changed);
    snprintf(changed, room, "%.*s%s%s", (int)(at - text), text, to,
             at + strlen(from));
    status = own_parse(changed, strlen(changed), "changed", &r, &error);
    assert_true(status == FSDP_OK || error.message[0] != '\0');
    own_record_release(&r);
    free(changed);
    free(text);
    return status;
}

static void the_reader_is_strict(void **state)
{
    static const char *const change[][2] = {
        {"\"version\": 1", "\"version\": 2"},
        {"\"rank\": 1", "\"rank\": 2"},
        {"\"steps\": 3", "\"steps\": 1"},
        {"\"how\": \"returned\"", "\"how\": \"well\""},
        {"[\"0.weight\",17,170", "[\"0.weight\",16,170"},
        {"[\"0.weight\",17,170", "[\"0.weight\",17,34"},
        {"\"pieces\": [[0,90,80]", "\"pieces\": [[0,90,81]"},
        {"\"pieces\": [[0,90,80]", "\"pieces\": [[6,90,80]"},
        {"[\"initial\",0,0,0,0,90,80,\"f32\"",
         "[\"initial\",0,0,0,0,90,80,\"f64\""},
        {"[\"initial\",0,0,0,0,90,80,\"f32\"",
         "[\"initial\",0,0,0,0,90,40,\"f32\""},
        {"\"held\": [[0,0]", "\"held\": [[-2,0]"},
        {"\"pieces\":", "\"filled\": [99], \"pieces\":"},
        {"\"pieces\":", "\"filled\": [true], \"pieces\":"},
        {"\"role\"", "\"roll\""},
    };

    (void)state;
    assert_int_equal(read_changed("\"version\": 1", "\"version\": 1"), FSDP_OK);
    assert_int_equal(
        read_changed("\"pieces\":", "\"filled\": [1], \"pieces\":"), FSDP_OK);
    for (size_t i = 0; i < sizeof(change) / sizeof(change[0]); i++) {
        if (read_changed(change[i][0], change[i][1]) != FSDP_ERR_FORMAT) {
            fail_msg("%s is not refused", change[i][1]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reader_is_strict),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
