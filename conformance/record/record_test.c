/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_test.c - a record comes back bit for bit, and nothing is written that
 * would not.
 */
#include "record/record_testing.h"
#include "testing/unit_testing.h"

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

/* Two ranks were counted, and one has more rows than are kept. */
static void what_was_carried_comes_back(void **state)
{
    struct record_account *a;
    struct fsdp_error error = {0};
    struct record r;
    struct record back;

    make_record(&r);
    for (uint32_t k = 0; k < r.n_ranks; k++) {
        a = &r.rank[k].account;
        a->known = 1;
        a->own = k;
        record_traffic_exchange(&a->recorded, 16);
        for (uint32_t i = 0; i < RECORD_TRAFFIC_ROWS + k; i++) {
            record_traffic_add(&a->carried, i, FSDP_DIM_WORLD, i % 7, 1, 2,
                               UINT64_MAX / 64 - i);
        }
        a->n_payloads = k == 0 ? 0 : RECORD_PAYLOADS; /* 0: is not written */
        a->payload = calloc(RECORD_PAYLOADS, sizeof(*a->payload));
        a->digest = calloc(RECORD_PAYLOADS, sizeof(*a->digest));
        assert_true(a->payload && a->digest);
        for (uint32_t i = 0; i < a->n_payloads; i++) {
            a->payload[i] = record_payload_add(i, &i, sizeof(i));
        }
        a->n_digests = a->n_payloads;
        for (uint32_t i = 0; i < a->n_digests; i++) {
            a->digest[i] = record_digest_add(i, i, &i, 1, sizeof(i));
        }
        a->carried.amid = 3;
        a->carried.before = a->carried.reductions = 0; /* is not written */
        assert_int_equal(a->carried.n_rows, RECORD_TRAFFIC_ROWS);
        assert_true(a->carried.order != 0);
    }
    write_record(*state, &r);
    assert_int_equal(record_read(*state, &back, &error), FSDP_OK);
    for (uint32_t k = 0; k < r.n_ranks; k++) {
        const struct record_account *const x = &r.rank[k].account;
        const struct record_account *const y = &back.rank[k].account;

        assert_memory_equal(y, x, offsetof(struct record_account, payload));
        assert_true(!x->n_payloads || y->payload);
        assert_true(!x->n_digests || y->digest);
        for (uint32_t i = 0; i < x->n_payloads; i++) {
            assert_true(y->payload[i] == x->payload[i]);
            assert_true(y->digest[i] == x->digest[i]);
        }
    }
    assert_true(r.rank[0].account.carried.order !=
                r.rank[1].account.carried.order);
    record_release(&r);
    record_release(&back);
}

/* Answers of a script, of which there are as many as wrong calls. */
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

UNIT_TEST(names_of_tensors_are_read_as_written)
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
        snprintf(r.rank[1].error.message, sizeof(r.rank[1].error.message), "%s",
                 text[i].bytes);
        write_record(*state, &r);
        assert_int_equal(record_read(*state, &back, NULL), FSDP_OK);
        assert_string_equal(back.rank[1].error.message, text[i].back);
        record_release(&back);
    }
    record_release(&r);
}

UNIT_TEST(tensors_are_found_by_what_they_are)
{
    const struct record_tensor *t;
    struct record r;
    uint32_t i;

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

UNIT_TEST(text_ends_and_can_be_printed)
{
    static const char *const wrong[] = {"",         "a\nb",         "\033[2J",
                                        "\x7f",     "\xff",         "\xc3",
                                        "\xc0\xaf", "a\xed\xa0\x80"};

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
        TEST(what_was_carried_comes_back),
        TEST(many_answers_are_read_back),
        TEST(buffers_are_read_back),
        TEST(a_rank_without_files_is_not_present),
        TEST(a_rank_that_failed_at_once_is_written),
        TEST(names_of_tensors_are_read_as_written),
        TEST(a_writer_takes_no_nonsense),
        TEST(text_that_is_not_utf8_is_still_written),
        TEST(text_ends_and_can_be_printed),
        TEST(tensors_are_found_by_what_they_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
