/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_faults_test.c - what is not a record is refused with a sentence that
 * names file and field.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "checkpoint/safetensors.h"
#include "record/record_testing.h"

static void a_folder_without_a_case_is_no_record(void **state)
{
    struct fsdp_error error = {0};
    struct record r;
    struct record back;

    make_record(&r);
    write_record(*state, &r);
    discard(*state, "case.json");
    assert_int_equal(record_read(*state, &back, &error), FSDP_ERR_IO);
    assert_non_null(strstr(error.message, "case.json"));
    record_release(&back);
    record_release(&r);
}

static void ranks_that_the_case_lacks_are_refused(void **state)
{
    static const char *const extra[] = {"rank-2.json", "rank-64.safetensors",
                                        "rank-18446744073709551616.json"};
    static const char *const other[] = {"rank-2.log", "rank-.json", "notes",
                                        "rank-0.json.partial"};
    struct fsdp_error error = {0};
    struct record r;
    struct record back;

    make_record(&r);
    write_record(*state, &r);
    for (size_t i = 0; i < 4; i++) {
        store(*state, other[i], "", 0);
    }
    assert_int_equal(record_read(*state, &back, NULL), FSDP_OK);
    record_release(&back);
    for (size_t i = 0; i < 3; i++) {
        memset(&error, 0, sizeof(error));
        store(*state, extra[i], "{}", 2);
        assert_int_equal(record_read(*state, &back, &error), FSDP_ERR_FORMAT);
        assert_non_null(strstr(error.message, extra[i]));
        record_release(&back);
        discard(*state, extra[i]);
    }
    for (size_t i = 0; i < 4; i++) {
        discard(*state, other[i]);
    }
    record_release(&r);
}

/* Puts `now` in the place of `was` in a file. */
struct edit {
    const char *file, *was, *now, *complaint;
};

static const struct edit edits[] = {
    {"case.json", "\"version\": 2", "\"version\": 3", "this reader knows 2"},
    {"case.json", "\"version\": 2", "\"version\": \"2\"", "version: a number"},
    {"case.json", "\"version\": 2,", "", "version: an object"},
    {"case.json", "\"id\": \"mlp", "\"id\": \"gpt", "id: the case's is mlp."},
    {"case.json", "\"lr\": 0.05", "\"lr\": 0.06", "id: the case's is"},
    {"case.json", "\"lr\": 0.05", "\"lr\": \"0.05\"", "case.lr: a number"},
    {"case.json", "\"lr\": 0.05", "\"lr\": 1e300", "case.lr: a number"},
    {"case.json", "\"wrap\":", "\"warp\":", "case: field \"wrap\" is missing"},
    {"case.json", "\"wrap\":", "\"x\": 0, \"wrap\":", "unknown field \"x\""},
    {"case.json", "\"wrap\":", "\"fold\": 0, \"wrap\":", "duplicate"},
    {"case.json", "\"layer\"", "\"leaf\"", "case.wrap: \"leaf\" is not in"},
    {"case.json", "\"layer\"", "1", "case.wrap: a name"},
    {"case.json", "\"sync\": \"ns\"", "\"sync\": \"nx\"", "case.sync"},
    {"case.json", "\"sync\": \"ns\"", "\"sync\": \"nnnns\"", "case.sync"},
    {"case.json", "\"sync\": \"ns\"", "\"sync\": \"sn\"", "is reduced"},
    {"case.json", "\"ranks\": 2", "\"ranks\": 513", "ranks is from 1 to 512"},
    {"case.json", "\"ranks\": 2", "\"ranks\": -1", "case.ranks: a number"},
    {"case.json", "\"ranks\": 2", "\"ranks\": 2.0", "case.ranks: a number"},
    {"case.json", "\"ranks\": 2", "\"ranks\": 1", "id: the case's is"},
    {"case.json", "\"keep_root\": false", "\"keep_root\": 0", "keep_root"},
    {"case.json", "\"engine\": \"", "\"engine\": \"\\u0001", "control"},
    {"case.json", "\"engine\": \"", "\"engine\": \"\\u0000", "line 4"},
    {"case.json", "\"signalled\"", "\"hung\"", "ranks[1]: \"hung\" is not"},
    {"case.json", "\"signal\": 11", "\"signal\": 256", "ranks[1]: a number"},
    {"case.json", "\"collectives\": 17", "\"collectives\": 9007199254740993",
     "ranks[1]: a number from 0 to 2^53"},
    {"case.json", "\"last_unit\": \"none\"", "\"last_unit\": 4294967295",
     "is spelled \"none\""},
    {"rank-0.json", "\"version\": 2", "\"version\": 0", "0; this reader"},
    {"rank-0.json", "\"rank\": 0", "\"rank\": 1", "1 in the file of rank 0"},
    {"rank-0.json", "\"status\": 0", "\"status\": 2147483648", "32-bit"},
    {"rank-0.json", "\"error\": null", "\"error\": 0", "error: an object"},
    {"rank-0.json", "[1.5, \"0x3fc00000\"]", "[1.6, \"0x3fc00000\"]",
     "the decimal is not that of bits 0x3fc00000"},
    {"rank-0.json", "[1.5, \"0x3fc00000\"]", "[1.5, \"0x3FC00000\"]",
     "losses[0]: bits are"},
    {"rank-0.json", "[1.5, \"0x3fc00000\"]", "[1.5]", "losses[0]: [decimal"},
    {"rank-0.json", "[1.5, \"0x3fc00000\"]", "1.5", "losses[0]: [decimal"},
    {"rank-0.json", "[1.5, \"0x3fc00000\"],", "", "5 elements, 6 to 6"},
    {"rank-0.json", "[\"nan\"", "[\"inf\"", "the decimal is not that"},
    {"rank-0.json", "[-0.0", "[0.0", "the decimal is not that"},
    {"rank-0.json", "\"other_losses\": [", "\"other_losses\": [0, ",
     "other_losses: 4 elements, 3 to 3"},
    {"rank-0.json", "\"all-gather\"", "\"gather\"", "sequences[1]: \"gather\""},
    {"rank-0.json", "\"all-gather\"", "0", "0 is spelled \"all-gather\""},
    {"rank-0.json", "\"f32\", ", "", "sequences[1]: 6 elements"},
    {"rank-0.json", "\"shard_sequence\": 0", "\"shard_sequence\": 3",
     "shard_sequence: a number from 0 to 2"},
    {"rank-0.json", "\"step_sequences\": [1, 2", "\"step_sequences\": [1, 3",
     "step_sequences[1]: a number from 0 to 2"},
    {"rank-0.json", "\"step_sequences\": [1, ", "\"step_sequences\": [",
     "step_sequences: 2 elements, 3 to 3"},
    {"rank-0.json", "\"peak\": [", "\"peak\": [1, 2, 3, 4, 5, 6, 7, 8, 9, ",
     "memory.peak: 17 elements"},
    {"rank-0.json", "\"18446744073709551615\"", "\"18446744073709551616\"",
     "2^53"},
    {"rank-0.json", "\"18446744073709551615\"", "\"1\"", "2^53"},
    {"rank-0.json", "\"allocations\": [", "\"allocations\": [7, ",
     "memory.allocations: 4 elements"},
    {"rank-0.json", "\"launches\": [", "\"launches\": [7, ",
     "memory.launches: 4 elements"},
    {"rank-0.json", "\"zero-grad\", 0, [",
     "\"zero-grad\", 0, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, ",
     "memory.timeline[1]: 17 elements"},
    {"rank-0.json", "\"zero-grad\"", "\"zero\"",
     "memory.timeline[1]: \"zero\""},
    {"rank-0.json", "\"zero-grad\"", "10",
     "memory.timeline[1]: a name was expected"},
    {"rank-0.json", "[\"param-at-rest\", -1]", "[\"param-at-rest\"]",
     "answers[0]: 1 elements"},
    {"rank-0.json", "[\"param-at-rest\"",
     "[\"0123456789012345678901234567890x\"", "fewer than 32 bytes"},
    {"rank-0.json", "\"races\": {\"count\": 3", "\"races\": {\"count\": 1",
     "races.first: more races than were counted"},
    {"rank-0.json", "\"param-full\", 3", "\"params\", 3",
     "races.first[0]: \"params\" is not"},
    {"rank-0.json", "\"nothing\", \"none\"", "7, \"none\"",
     "races.first[1]: a name"},
    {"rank-0.json", "\"01234567890123456789012\"",
     "\"012345678901234567890123\"", "fewer than 24 bytes"},
    {"rank-0.json", "[77, \"none\", 7, 7, \"none\", true]",
     "[77, \"none\", 7, 7, 4294967295, true]",
     "flights[1]: 4294967295 is spelled"},
    {"rank-0.json", "[77, \"none\", 7, 7, \"none\", true]",
     "[77, \"none\", 7, 7, 8]", "flights[1]: 5 elements"},
    {"rank-0.json", "[\"input\", 1, \"bf16\"]", "[\"inputs\", 1, \"bf16\"]",
     "edges[0]: \"inputs\" is not"},
    {"rank-0.json", "[\"input\", 1, \"bf16\"]", "[\"input\", 1, 77]",
     "edges[0]: a name was expected"},
    {"rank-0.json", "[\"input\", 1, \"bf16\"]", "[\"input\", 1]",
     "edges[0]: 2 elements"},
    {"rank-0.json", "2, \"none\", 7, 0, 0]", "2, \"f8\", 7, 0, 0]",
     "passes[0]: \"f8\" is not"},
    {"rank-0.json", "2, \"none\", 7, 0, 0]", "2, \"none\", 7, 0]",
     "passes[0]: 9 elements"},
    {"rank-0.json", "\"tensors\": 5", "\"tensors\": 4",
     "5 tensors, where the rank's JSON says 4"},
    {"rank-0.json", "\"seconds\": ", "\"seconds\": -", "seconds"},
    {"rank-0.json", "{", "[", "line 2"},
    {"rank-0.json", "{", "", "line 2"},
    {"rank-1.json", "\"status\": -7", "\"status\": 0", "losses: 2 elements"},
    {"rank-1.json", "\"native\": 5", "\"native\": 5, \"more\": 1", "\"more\""},
};

static void faults_are_refused_by_name(void **state)
{
    struct fsdp_error error;
    struct record r;
    struct record back;
    char stem[8]; /* "/rank-0": either file of that rank */

    make_record(&r);
    for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
        write_record(*state, &r);
        replace(*state, edits[i].file, edits[i].was, edits[i].now);
        snprintf(stem, sizeof(stem), "/%s", edits[i].file);
        memset(&error, 0, sizeof(error));
        if (record_read(*state, &back, &error) != FSDP_ERR_FORMAT ||
            !strstr(error.message, edits[i].complaint) ||
            !strstr(error.message, stem)) {
            fail_msg("edit %zu (%s): %s", i, edits[i].now, error.message);
        }
        assert_int_equal(error.status, FSDP_ERR_FORMAT);
        record_release(&back);
    }
    record_release(&r);
}

static void tensors_of_another_form_are_refused(void **state)
{
    static const float x[2] = {1.0f, 2.0f};
    static const struct safetensors_meta good = {"record-version", "1"};
    static const struct safetensors_meta newer = {"record-version", "2"};
    static const struct {
        struct safetensors_tensor t;
        const struct safetensors_meta *meta;
        const char *complaint;
    } bad[] = {
        {{"reduced.0.0.0", "F32", 1, {2}, x, 8}, &good, "was expected"},
        {{"reduced.0.0.0#0", "I32", 1, {2}, x, 8}, &good, "F32"},
        {{"reduced.0.0.0#0", "F32", 2, {1, 2}, x, 8}, &good, "dimension"},
        {{"reduced.0.0.0#0", "F32", 0, {0}, x, 4}, &good, "dimension"},
        {{"reduced.4.0.0#0", "F32", 1, {2}, x, 8}, &good, "range"},
        {{"reduced.0.2.0#0", "F32", 1, {2}, x, 8}, &good, "range"},
        {{"reduced.0.0.1048576#0", "F32", 1, {2}, x, 8}, &good, "range"},
        {{"reduced.0.0.0#0", "F32", 1, {2}, x, 8}, &newer, "record-version"},
        {{"reduced.0.0.0#0", "F32", 1, {2}, x, 8}, NULL, "record-version"},
    };
    struct fsdp_error error;
    struct record r;
    struct record back;
    char path[256];

    make_record(&r);
    snprintf(path, sizeof(path), "%s/rank-0.safetensors", (const char *)*state);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        write_record(*state, &r);
        replace(*state, "rank-0.json", "\"tensors\": 5", "\"tensors\": 1");
        assert_int_equal(safetensors_write(path, &bad[i].t, 1, bad[i].meta,
                                           bad[i].meta != NULL, false, NULL, 0),
                         FSDP_OK);
        memset(&error, 0, sizeof(error));
        assert_int_equal(record_read(*state, &back, &error), FSDP_ERR_FORMAT);
        assert_non_null(strstr(error.message, bad[i].complaint));
        assert_non_null(strstr(error.message, "rank-0.safetensors"));
        record_release(&back);
    }
    record_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_folder_without_a_case_is_no_record),
        TEST(ranks_that_the_case_lacks_are_refused),
        TEST(faults_are_refused_by_name),
        TEST(tensors_of_another_form_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
