/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_sample_test.c - which ranks of a sampled record are drawn; what the
 * ranks that are not drawn leave out; and that no record can have another
 * sample.
 */
#include "record/record_testing.h"
#include "testing/unit_testing.h"

static uint32_t count(const struct run_case *c, uint32_t n)
{
    uint32_t drawn = 0;

    for (uint32_t k = 0; k < c->ranks; k++) {
        drawn += record_is_drawn(c, n, k);
    }
    return drawn;
}

UNIT_TEST(so_many_ranks_are_drawn_as_are_asked_for)
{
    static const uint32_t worlds[] = {1, 2, 3, 64, 512};

    for (uint64_t seed = 1; seed < 9; seed++) {
        for (size_t w = 0; w < sizeof(worlds) / sizeof(worlds[0]); w++) {
            const struct run_case c = {.seed = seed, .ranks = worlds[w]};

            for (uint32_t n = 1; n <= c.ranks; n += 1 + n / 3) {
                assert_int_equal(count(&c, n), n);
                assert_true(record_is_drawn(&c, n, 0));
            }
            assert_int_equal(count(&c, 0), c.ranks);
            assert_int_equal(count(&c, c.ranks + 1), c.ranks);
        }
    }
}

/* A larger sample contains the smaller one. Each rank is drawn by some seeds,
 * about as many as any other; only rank 0 is drawn by all. */
UNIT_TEST(ranks_are_drawn_by_the_seed)
{
    uint32_t times[64] = {0};

    for (uint64_t seed = 1; seed <= 512; seed++) {
        const struct run_case c = {.seed = seed, .ranks = 64};

        for (uint32_t k = 0; k < c.ranks; k++) {
            times[k] += record_is_drawn(&c, 8, k);
            assert_true(!record_is_drawn(&c, 8, k) ||
                        record_is_drawn(&c, 9, k));
        }
    }
    for (uint32_t k = 1; k < 64; k++) {
        /* 57 times on average, and 7 more or less. */
        assert_in_range(times[k], 57 - 28, 57 + 28);
    }
}

/* Only stages that show whole parameters are left out, and only if they have no
 * values. */
UNIT_TEST(places_without_values_go)
{
    static const uint32_t stages[] = {RECORD_UNSHARDED, RECORD_BEFORE,
                                      RECORD_LOCAL_GRADIENT, RECORD_UNSHARDED};
    float value = 1.0f;
    struct record_tensor tensor[4] = {{0}};
    struct record_rank r = {.tensor = tensor, .n_tensors = 4};

    for (uint32_t i = 0; i < 4; i++) {
        tensor[i].stage = stages[i];
        tensor[i].step = i;
        tensor[i].n = 1;
    }
    tensor[3].data = &value;
    record_leave_out(&r);
    assert_int_equal(r.n_tensors, 2);
    assert_int_equal(tensor[0].step, 1);
    assert_int_equal(tensor[1].step, 3);
}

/* Reads what was written of r; the complaint is NULL where it is right. */
static void check(const char *folder, const struct record *r,
                  const char *complaint)
{
    struct fsdp_error error = {0};
    struct record back;
    int status;

    write_record(folder, r);
    status = record_read(folder, &back, &error);
    if (complaint) {
        assert_int_equal(status, FSDP_ERR_FORMAT);
        if (!strstr(error.message, complaint)) {
            fail_msg("%s", error.message);
        }
    } else {
        assert_int_equal(status, FSDP_OK);
        assert_int_equal(record_n_sampled(&back), record_n_sampled(r));
    }
    record_release(&back);
}

static void no_other_sample_is_taken(void **state)
{
    static const char other[] = "ranks.unsampled: rank 0: not what the seed "
                                "draws";
    struct record r;

    make_record(&r);
    assert_int_equal(r.n_ranks, 2);
    check(*state, &r, NULL);
    r.rank[0].unsampled = 1;
    check(*state, &r, other);
    r.rank[1].unsampled = 1;
    check(*state, &r, other);
    r.rank[0].unsampled = 0;
    check(*state, &r, NULL);
    record_release(&r);
}

/* Rank 1 says that it left out what it shows. */
static void what_is_left_out_is_not_there(void **state)
{
    struct record_tensor *t;
    struct record r;

    make_record(&r);
    r.rank[1].unsampled = 1;
    r.rank[1].tensor = calloc(1, sizeof(*t));
    t = r.rank[1].tensor;
    assert_non_null(t);
    t->data = calloc(1, sizeof(*t->data));
    t->n = 1;
    r.rank[1].n_tensors = 1;
    t->stage = RECORD_FINAL;
    check(*state, &r, NULL);
    t->stage = RECORD_LOCAL_GRADIENT;
    check(*state, &r, "rank 1 is unsampled, and shows local-gradient");
    record_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(so_many_ranks_are_drawn_as_are_asked_for),
        TEST(ranks_are_drawn_by_the_seed),
        TEST(places_without_values_go),
        TEST(no_other_sample_is_taken),
        TEST(what_is_left_out_is_not_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
