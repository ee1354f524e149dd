/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_test.c - a record comes back bit for bit, and what is not a record
 * is refused with a sentence that names file and field.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "checkpoint/safetensors.h"
#include "record/record_testing.h"

#include <math.h>

static void a_record_comes_back_bit_for_bit(void **state)
{
    struct fsdp_error error = {0};
    struct record r;
    struct record back;

    make_record(&r);
    write_record(*state, &r);
    assert_int_equal(record_read(*state, &back, &error), FSDP_OK);
    assert_string_equal(error.message, "");
    assert_same_records(&r, &back);
    assert_true(record_claims(&back, "hybrid-shard"));
    assert_false(record_claims(&back, "hybrid"));
    record_release(&r);
    record_release(&back);
}

static void writing_what_was_read_gives_the_same_bytes(void **state)
{
    static const char *const name[] = {"case.json", "rank-0.json",
                                       "rank-1.json", "rank-0.safetensors"};
    struct record r;
    struct record back;
    struct bytes first[4];
    struct bytes second;

    make_record(&r);
    write_record(*state, &r);
    for (size_t i = 0; i < 4; i++) {
        first[i] = load(*state, name[i]);
    }
    assert_int_equal(record_read(*state, &back, NULL), FSDP_OK);
    assert_int_equal(record_clear(*state, NULL), FSDP_OK);
    write_record(*state, &back);
    for (size_t i = 0; i < 4; i++) {
        second = load(*state, name[i]);
        assert_int_equal(first[i].n, second.n);
        assert_memory_equal(first[i].p, second.p, second.n);
        free(first[i].p);
        free(second.p);
    }
    record_release(&r);
    record_release(&back);
}

/* A script answers as often as it makes wrong calls. */
static void many_answers_are_read_back(void **state)
{
    enum {
        MANY = 2 * CASE_MAX_STEPS
    };
    struct record_answer *many;
    struct fsdp_error error = {0};
    struct record r;
    struct record back;

    make_record(&r);
    many = realloc(r.rank[0].answer, MANY * sizeof(*many));
    assert_non_null(many);
    for (uint32_t i = r.rank[0].n_answers; i < MANY; i++) {
        many[i] = many[0];
        many[i].status = (int32_t)i;
    }
    r.rank[0].answer = many;
    r.rank[0].n_answers = MANY;
    write_record(*state, &r);
    assert_int_equal(record_read(*state, &back, &error), FSDP_OK);
    assert_int_equal(back.rank[0].n_answers, MANY);
    assert_int_equal(back.rank[0].answer[MANY - 1].status, MANY - 1);
    record_release(&r);
    record_release(&back);
}

/* Integers of buffers, of each width, come back to the last bit; and a kind of
 * bytes that older records do not have. */
static void buffers_are_read_back(void **state)
{
    static const uint32_t dtypes[] = {FSDP_DTYPE_U8, FSDP_DTYPE_I32,
                                      FSDP_DTYPE_I64, FSDP_DTYPE_BF16};
    static const float digits[] = {255.0f, 1.0f, 128.0f, 3.0f,
                                   5.0f,   0.0f, 254.0f, 2.0f};
    struct record_rank *rank;
    struct record r;
    struct record back;

    make_record(&r);
    rank = &r.rank[0];
    rank->tensor =
        realloc(rank->tensor, (rank->n_tensors + 4) * sizeof(*rank->tensor));
    assert_non_null(rank->tensor);
    for (uint32_t i = 0; i < 4; i++) {
        struct record_tensor *t = &rank->tensor[rank->n_tensors++];

        *t = (struct record_tensor){.stage = RECORD_BUFFER + i % 4,
                                    .parameter = i,
                                    .n = 8,
                                    .dtype = dtypes[i]};
        t->data = malloc(sizeof(digits));
        assert_non_null(t->data);
        memcpy(t->data, digits, sizeof(digits));
    }
    record_sort(rank);
    rank->memory.after_shard.live[FSDP_BUFFER] = 2;
    rank->memory.peak[FSDP_BUFFER] = 2;
    write_record(*state, &r);
    assert_int_equal(record_read(*state, &back, NULL), FSDP_OK);
    for (uint32_t i = 0; i < 4; i++) {
        const struct record_tensor *t =
            record_find(&back.rank[0], RECORD_BUFFER + i, 0, 0, i, 0);

        assert_non_null(t);
        assert_int_equal(t->dtype, dtypes[i]);
        assert_int_equal(t->n, 8);
        assert_memory_equal(t->data, digits, sizeof(digits));
    }
    assert_int_equal(back.rank[0].memory.after_shard.live[FSDP_BUFFER], 2);
    assert_int_equal(back.rank[1].memory.after_shard.live[FSDP_BUFFER], 0);
    record_release(&r);
    record_release(&back);
}

static void a_rank_without_files_is_not_present(void **state)
{
    static const char *const lost[] = {"rank-1.json", "rank-1.safetensors"};
    struct record r;
    struct record back;

    make_record(&r);
    for (size_t i = 0; i < 2; i++) {
        write_record(*state, &r);
        discard(*state, lost[i]);
        assert_int_equal(record_read(*state, &back, NULL), FSDP_OK);
        assert_true(back.rank[0].present);
        assert_false(back.rank[1].present);
        assert_int_equal(back.rank[1].status, FSDP_ERR_INTERNAL);
        assert_int_equal(back.rank[1].end, WORLD_SIGNALLED);
        assert_int_equal(back.rank[1].signal, 11);
        assert_int_equal(back.rank[1].n_collectives, 17);
        assert_int_equal(back.rank[1].n_tensors, 0);
        record_release(&back);
    }
    record_release(&r);
}

static void a_rank_that_failed_at_once_is_written(void **state)
{
    struct record r;
    struct record back;

    make_record(&r);
    record_rank_release(&r.rank[1]);
    r.rank[1].status = r.rank[1].exit_status = FSDP_ERR_NOMEM;
    r.rank[1].error.status = FSDP_ERR_NOMEM;
    write_record(*state, &r);
    assert_int_equal(record_read(*state, &back, NULL), FSDP_OK);
    assert_true(back.rank[1].present);
    assert_int_equal(back.rank[1].status, FSDP_ERR_NOMEM);
    assert_int_equal(back.rank[1].n_sequences, 1);
    assert_int_equal(back.rank[1].sequence[0].n, 0);
    assert_int_equal(back.rank[1].n_steps, 0);
    record_release(&back);
    record_release(&r);
}

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
        (void)snprintf(stem, sizeof(stem), "/%s", edits[i].file);
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

static void names_of_tensors_are_read_as_written(void **state)
{
    static const char *const bad[] = {
        "",
        "reduced",
        "reduced.0.0.0",
        "reduced.0.0.0#",
        "reduced.0.0.0#1 ",
        "reduced.0.0.0#01",
        "reduced.00.0.0#1",
        "reduced.-1.0.0#1",
        "reduced.+1.0.0#1",
        "reduced. 1.0.0#1",
        "reduced.0.0#0",
        "reduced.0.0.0.0#0",
        "Reduced.0.0.0#0",
        "reduce.0.0.0#0",
        ".0.0.0#0",
        "reduced.4294967296.0.0#0",
        "reduced.0.0.0#9007199254740993",
        "reduced.0.0.0#99999999999999999999999",
    };
    struct record_tensor t = {.step = UINT32_MAX,
                              .microbatch = 3,
                              .parameter = 10,
                              .first = (uint64_t)1 << 53};
    struct record_tensor back;
    char name[RECORD_TENSOR_NAME_BYTES];

    (void)state;
    for (t.stage = 0; t.stage < RECORD_N_STAGES; t.stage++) {
        record_tensor_name(&t, name);
        assert_true(record_tensor_parse(name, &back));
        assert_int_equal(record_tensor_order(&t, &back), 0);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (record_tensor_parse(bad[i], &back)) {
            fail_msg("\"%s\" was taken", bad[i]);
        }
    }
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
    (void)snprintf(path, sizeof(path), "%s/rank-0.safetensors",
                   (const char *)*state);
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

static void a_writer_takes_no_nonsense(void **state)
{
    struct fsdp_error error = {0};
    struct record_tensor spare;
    struct record r;

    make_record(&r);
    r.rank[0].step_sequence[1] = 3;
    assert_int_equal(record_write_rank(*state, 0, &r.rank[0], &error),
                     FSDP_ERR_INVALID);
    assert_non_null(strstr(error.message, "step_sequence"));
    r.rank[0].step_sequence[1] = 0;
    r.rank[0].end_sequence = 3;
    assert_int_equal(record_write_rank(*state, 0, &r.rank[0], NULL),
                     FSDP_ERR_INVALID);
    r.rank[0].end_sequence = 0;
    spare = r.rank[0].tensor[1];
    r.rank[0].tensor[1] = r.rank[0].tensor[0];
    assert_int_equal(record_write_rank(*state, 0, &r.rank[0], NULL),
                     FSDP_ERR_INVALID);
    r.rank[0].tensor[1] = spare;
    r.rank[0].tensor[1].data = NULL;
    assert_int_equal(record_write_rank(*state, 0, &r.rank[0], NULL),
                     FSDP_ERR_INVALID);
    r.n_ranks = 1;
    assert_int_equal(record_write_case(*state, &r, NULL), FSDP_ERR_INVALID);
    r.n_ranks = 2;
    r.c.lr = NAN;
    assert_int_equal(record_write_case(*state, &r, NULL), FSDP_ERR_INVALID);
    r.c.lr = 0.05f;
    r.rank[1].end = 4;
    assert_int_equal(record_write_case(*state, &r, NULL), FSDP_ERR_INVALID);
    assert_int_equal(record_write_case("/nowhere/at/all", &r, NULL),
                     FSDP_ERR_INVALID);
    r.rank[1].end = 0;
    memset(&error, 0, sizeof(error));
    assert_int_equal(record_write_case("/nowhere/at/all", &r, &error),
                     FSDP_ERR_IO);
    assert_non_null(strstr(error.message, "/nowhere/at/all"));
    r.rank[0].tensor[1] = spare;
    record_release(&r);
}

static void text_that_is_not_utf8_is_still_written(void **state)
{
    static const struct {
        const char *bytes, *back;
    } text[] = {
        {"quote \" and \\", "quote \" and \\"},
        {"tab\tand\nline", "tab?and?line"},
        {"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x99\x82",
         "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x99\x82"},
        {"\xff\xc3", "??"},
        {"\xc0\xaf\xed\xa0\x80", "?????"},
        {"\xf4\x90\x80\x80", "????"},
    };
    struct record r;
    struct record back;

    make_record(&r);
    for (size_t i = 0; i < sizeof(text) / sizeof(text[0]); i++) {
        (void)snprintf(r.rank[1].error.message, sizeof(r.rank[1].error.message),
                       "%s", text[i].bytes);
        write_record(*state, &r);
        assert_int_equal(record_read(*state, &back, NULL), FSDP_OK);
        assert_string_equal(back.rank[1].error.message, text[i].back);
        record_release(&back);
    }
    record_release(&r);
}

static void tensors_are_found_by_what_they_are(void **state)
{
    const struct record_tensor *t;
    struct record r;
    uint32_t i;

    (void)state;
    make_record(&r);
    record_sort(&r.rank[0]);
    t = record_find(&r.rank[0], RECORD_REDUCED, 1, 0, 2, 5);
    assert_non_null(t);
    assert_int_equal(t->n, 0);
    assert_null(record_find(&r.rank[0], RECORD_REDUCED, 1, 0, 2, 4));
    assert_null(record_find(&r.rank[0], RECORD_SUMMONED, 9, 0, 2, 4));
    assert_null(record_find(&r.rank[1], RECORD_REDUCED, 0, 0, 0, 0));
    assert_int_equal(record_parts(&r.rank[0], RECORD_REDUCED, 1, 0, 2, &i), 2);
    assert_int_equal(r.rank[0].tensor[i].first, 3);
    assert_int_equal(r.rank[0].tensor[i + 1].first, 5);
    assert_int_equal(record_parts(&r.rank[0], RECORD_REDUCED, 1, 0, 1, &i), 0);
    record_release(&r);
    record_release(&r); /* any state */
}

static void text_ends_and_can_be_printed(void **state)
{
    static const char *const wrong[] = {"",         "a\nb",         "\033[2J",
                                        "\x7f",     "\xff",         "\xc3",
                                        "\xc0\xaf", "a\xed\xa0\x80"};

    (void)state;
    assert_true(record_is_text("words, \xc3\xa9 and \xe2\x82\xac", 20));
    assert_true(record_is_text("abc", 4));
    assert_false(record_is_text("abcd", 4));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_false(record_is_text(wrong[i], 32));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_record_comes_back_bit_for_bit),
        TEST(writing_what_was_read_gives_the_same_bytes),
        TEST(many_answers_are_read_back),
        TEST(buffers_are_read_back),
        TEST(a_rank_without_files_is_not_present),
        TEST(a_rank_that_failed_at_once_is_written),
        TEST(a_folder_without_a_case_is_no_record),
        TEST(ranks_that_the_case_lacks_are_refused),
        TEST(faults_are_refused_by_name),
        TEST(names_of_tensors_are_read_as_written),
        TEST(tensors_of_another_form_are_refused),
        TEST(a_writer_takes_no_nonsense),
        TEST(text_that_is_not_utf8_is_still_written),
        TEST(text_ends_and_can_be_printed),
        TEST(tensors_are_found_by_what_they_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
