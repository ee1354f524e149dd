/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect_test.c - the oracle's layout and folds against numbers worked out by
 * hand, and what it refuses.
 */
#include "judge/oracle/expect_testing.h"
#include "testing/unit_testing.h"
#include <stdlib.h>

static void check_parts(const struct expect *e, uint32_t shard,
                        const struct expect_part *want, uint32_t n)
{
    struct expect_part *part = NULL;
    uint32_t found = 0;

    assert_int_equal(expect_parts(e, shard, &part, &found), FSDP_OK);
    assert_int_equal(found, n);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(part[i].parameter, want[i].parameter);
        assert_int_equal(part[i].first, want[i].first);
        assert_int_equal(part[i].n, want[i].n);
        assert_int_equal(part[i].local, want[i].local);
    }
    free(part);
}

UNIT_TEST(parts_of_two_parameters)
{
    static const struct expect_part s0[] = {{0, 0, 2, 0}, {2, 0, 3, 0}};
    static const struct expect_part s1[] = {
        {0, 2, 1, 0}, {1, 0, 1, 1}, {2, 3, 3, 0}};
    static const struct expect_part s2[] = {{1, 1, 1, 0}, {2, 6, 1, 0}};
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 3, 1);
    struct expect e;
    struct expect_part *none = NULL;
    uint32_t n = 0;

    testing_model(&t, "-01", "1:3 1:2 2:7", "F1 f1 B1 b1", "F1 f1");
    assert_int_equal(expect_make(&c, &t.model, &t.units, &e), FSDP_OK);
    assert_int_equal(e.unit[0].numel, 5);
    assert_int_equal(e.unit[0].chunk, 2);
    assert_int_equal(e.unit[0].padded, 6);
    assert_int_equal(e.unit[1].padded, 9);
    assert_int_equal(e.offset[1], 3);
    assert_int_equal(e.offset[2], 0);
    assert_int_equal(e.unit_of_parameter[2], 1);
    check_parts(&e, 0, s0, 2);
    check_parts(&e, 1, s1, 3);
    check_parts(&e, 2, s2, 2);
    assert_int_equal(expect_parts(&e, 3, &none, &n), FSDP_ERR_INVALID);
    expect_release(&e);
}

UNIT_TEST(a_shard_may_be_empty)
{
    static const struct expect_part last[] = {{0, 4, 1, 0}};
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 4, 1);
    struct expect e;

    testing_model(&t, "-0", "1:5 1:0", "F1 f1 B1 b1", "F1 f1");
    assert_int_equal(expect_make(&c, &t.model, &t.units, &e), FSDP_OK);
    check_parts(&e, 2, last, 1);
    check_parts(&e, 3, NULL, 0);
    expect_release(&e);
}

/* Rows as torch.chunk deals them: 5 rows of 2 over four ranks are 2, 2, 1 and
 * none, where balanced parts would be 2, 1, 1, 1. Then 3 elements, a scalar,
 * and a parameter without any. */
UNIT_TEST(parts_by_rows)
{
    static const struct expect_part s0[] = {
        {0, 0, 4, 0}, {1, 0, 1, 4}, {2, 0, 1, 5}};
    static const struct expect_part s1[] = {{0, 4, 4, 0}, {1, 1, 1, 4}};
    static const struct expect_part s2[] = {{0, 8, 2, 0}, {1, 2, 1, 4}};
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 4, 1);
    struct expect e;

    testing_model(&t, "-01", "1:5 1:3 1:1 1:0 2:7", "F1 f1 F2 f2 B2 b2 B1 b1",
                  "F1 f1 F2 f2");
    t.shape[0][1] = 2;
    t.n_dims[0] = 2;
    t.n_dims[2] = 0;
    t.shape[3][1] = 4;
    t.n_dims[3] = 2;
    c.layout = FSDP_LAYOUT_PER_PARAMETER;
    assert_int_equal(expect_make(&c, &t.model, &t.units, &e), FSDP_OK);
    assert_int_equal(e.unit[0].numel, 14);
    assert_int_equal(e.unit[0].whole, 14);
    assert_int_equal(e.unit[0].chunk, 6);
    assert_int_equal(e.unit[0].padded, 24);
    assert_int_equal(e.unit[1].chunk, 2);
    assert_int_equal(e.unit[1].whole, 7);
    assert_int_equal(e.resting, 8);
    assert_int_equal(e.largest, 14);
    check_parts(&e, 3, (const struct expect_part[]){{4, 6, 1, 0}}, 1);
    assert_int_equal(expect_place(&e, 0, 0), 0);
    assert_int_equal(expect_place(&e, 0, 3), 3);
    assert_int_equal(expect_place(&e, 0, 9), 13);
    assert_int_equal(expect_place(&e, 1, 2), 16);
    assert_int_equal(expect_place(&e, 2, 0), 5);
    expect_release(&e);
    t.model.n_parameters = 4;
    assert_int_equal(expect_make(&c, &t.model, &t.units, &e), FSDP_OK);
    check_parts(&e, 0, s0, 3);
    check_parts(&e, 1, s1, 2);
    check_parts(&e, 2, s2, 2);
    check_parts(&e, 3, NULL, 0);
    expect_release(&e);
}

static void check_folds(uint32_t strategy, uint32_t replicas, uint32_t fold,
                        uint64_t numel, const float *x, const float *want,
                        uint64_t n)
{
    struct testing_model t;
    struct run_case c =
        testing_case(strategy, strategy == CASE_HYBRID_SHARD ? 6 : 4, replicas);
    struct expect e;

    testing_model(&t, "-0", "1:1", "F1 f1 B1 b1", "F1 f1");
    t.shape[0][0] = numel;
    c.fold = fold;
    assert_int_equal(expect_make(&c, &t.model, &t.units, &e), FSDP_OK);
    for (uint64_t flat = 0; flat < n; flat++) {
        assert_true(expect_fold(&e, 0, flat, x) == want[flat]);
    }
    expect_release(&e);
}

/* Around 1e8 a float32 counts in eights: 1e8 + 3 is 1e8. */
UNIT_TEST(folds_within_a_shard_group)
{
    static const float x[] = {1e8f, 1, -1e8f, 3};
    static const float y[] = {1, 1e8f, -1e8f, 3};
    static const float rank[] = {3, 3, 3, 3};
    static const float ring[] = {0, 1, 0, 3};
    static const float tree[] = {0, 0, 0, 0};

    check_folds(CASE_FULL_SHARD, 1, FSDP_FOLD_RANK, 4, x, rank, 4);
    check_folds(CASE_FULL_SHARD, 1, FSDP_FOLD_RANK, 4, y, rank, 4);
    check_folds(CASE_FULL_SHARD, 1, FSDP_FOLD_RING, 4, x, ring, 4);
    check_folds(CASE_FULL_SHARD, 1, FSDP_FOLD_TREE, 4, y, tree, 4);
    /* Without shards the all-reduce's owners are those of 4 quarters. */
    check_folds(CASE_NO_SHARD, 4, FSDP_FOLD_RING, 4, x, ring, 4);
}

/* Six ranks, three replicas of two: 6 elements a shard, of which each replica
 * owns two in the all-reduce. */
UNIT_TEST(folds_across_replicas)
{
    static const float x[] = {1e8f, 0, 1, 0, -1e8f, 0};
    static const float y[] = {1e8f, 3, -1e8f, 3, 1, 3};
    static const float ring[] = {0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0};
    static const float rank[] = {4, 4, 4, 4, 4, 4};
    /* (a + b) + c, and not a + (b + c), which is 1. */
    static const float z[] = {1, 0, -1e8f, 0, 1e8f, 0};
    static const float tree[] = {0};

    check_folds(CASE_HYBRID_SHARD, 3, FSDP_FOLD_RING, 12, x, ring, 12);
    check_folds(CASE_HYBRID_SHARD, 3, FSDP_FOLD_RANK, 12, y, rank, 6);
    check_folds(CASE_HYBRID_SHARD, 3, FSDP_FOLD_TREE, 12, z, tree, 1);
}

UNIT_TEST(folds_of_a_loss)
{
    static const float four[] = {1, 2, 3, 4};
    static const float three[] = {1, 2, 4};
    static const float order[] = {1e8f, 1, -1e8f, 3};
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 4, 1);
    struct expect e;

    testing_mlp(&t);
    assert_int_equal(expect_make(&c, &t.model, &t.units, &e), FSDP_OK);
    assert_true(expect_fold_loss(&e, four) == 2.5f);
    assert_true(expect_fold_loss(&e, order) == 0.75f);
    expect_release(&e);
    c.fold = FSDP_FOLD_RING;
    assert_int_equal(expect_make(&c, &t.model, &t.units, &e), FSDP_OK);
    assert_true(expect_fold_loss(&e, order) == 0);
    expect_release(&e);
    /* A product with the rounded third, which is not 7 / 3 rounded. */
    c = testing_case(CASE_FULL_SHARD, 3, 1);
    assert_int_equal(expect_make(&c, &t.model, &t.units, &e), FSDP_OK);
    assert_true(expect_fold_loss(&e, three) == 0x1.2aaaacp+1f);
    expect_release(&e);
}

static int make(const struct testing_model *t, const struct run_case *c)
{
    struct expect e;
    int status = expect_make(c, &t->model, &t->units, &e);

    expect_release(&e);
    return status;
}

UNIT_TEST(what_it_has_no_rules_for)
{
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 4, 1);
    struct run_case bad = c;

    testing_mlp(&t);
    assert_int_equal(make(&t, &c), FSDP_OK);
    bad.layout = FSDP_LAYOUT_PER_PARAMETER + 1;
    assert_int_equal(make(&t, &bad), FSDP_ERR_INVALID);
    bad = c;
    bad.ranks = 0;
    assert_int_equal(make(&t, &bad), FSDP_ERR_INVALID);
    bad.ranks = EXPECT_MAX_RANKS + 1;
    assert_int_equal(make(&t, &bad), FSDP_ERR_INVALID);
    bad.ranks = 4;
    bad.replicas = 3;
    assert_int_equal(make(&t, &bad), FSDP_ERR_INVALID);
    t.alias[1] = 0;
    assert_int_equal(make(&t, &c), FSDP_ERR_INVALID);
    t.alias[1] = -1;
    t.dtype[3] = FSDP_DTYPE_BF16;
    assert_int_equal(make(&t, &c), FSDP_ERR_INVALID);
    t.dtype[3] = FSDP_DTYPE_F32;
    t.unit_of_module[1] = FSDP_NO_UNIT; /* has a parameter */
    assert_int_equal(make(&t, &c), FSDP_ERR_INVALID);
}

/* Two of three parameters are one; the last has a unit of its own. */
UNIT_TEST(ties_take_no_place)
{
    static const struct expect_part s0[] = {{0, 0, 2, 0}, {2, 0, 1, 0}};
    const struct run_case c = testing_case(CASE_FULL_SHARD, 4, 1);
    struct testing_model t;
    struct expect_use use[4];
    struct expect e;

    testing_model(&t, "-001", "1:5 2:5 3:3",
                  "F1 f1 F2 f2 F3 f3 B3 b3 B2 b2 B1 b1", "F1 f1 F2 f2 F3 f3");
    t.alias[1] = 0;
    assert_int_equal(expect_make(&c, &t.model, &t.units, &e), FSDP_OK);
    assert_int_equal(e.unit[0].numel, 5);
    assert_true(e.shared[0] && e.shared[1] && !e.shared[2]);
    assert_int_equal(e.offset[1], e.offset[0]);
    check_parts(&e, 0, s0, 2);
    /* Each use has storage of its own: 5 elements. */
    assert_int_equal(e.peak[FSDP_STAGING], 5 * 4);
    /* The later module's backward comes first. */
    assert_int_equal(expect_uses(&e, 0, 0, 4, use), 2);
    assert_int_equal(use[0].parameter, 1);
    assert_int_equal(use[1].parameter, 0);
    assert_int_equal(expect_uses(&e, 2, 0, 4, use), 1);
    expect_release(&e);
    t.unit_of_module[2] = 1; /* across units */
    assert_int_equal(make(&t, &c), FSDP_ERR_INVALID);
}

static uint32_t count(const struct record_sequence *s, uint32_t kind)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->n; i++) {
        n += s->c[i].kind == kind;
    }
    return n;
}

/* Units of 512, 1024, 512 and 128, of which the second is frozen, over 4
 * shards. */
UNIT_TEST(a_unit_that_is_frozen)
{
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 4, 1);
    struct expect e;

    c.optimizer = FSDP_OPTIMIZER_ADAMW;
    testing_mlp(&t);
    t.parameter_flags[1] = FSDP_FROZEN;
    assert_int_equal(expect_make(&c, &t.model, &t.units, &e), FSDP_OK);
    assert_int_equal(count(&e.step, FSDP_ALL_GATHER), 8);
    assert_int_equal(count(&e.step, FSDP_REDUCE_SCATTER), 3);
    assert_int_equal(e.rest.live[FSDP_PARAM_SHARD], 544 * 4);
    assert_int_equal(e.rest.live[FSDP_OPTIM], 2 * 288 * 4);
    assert_int_equal(e.peak_grads, 512 * 4);
    assert_false(e.trained[1]);
    assert_int_equal(expect_states_less(&e, 1), 0);
    expect_release(&e);
}

/* All in one unit. Flat, [512, 1536) are frozen: shards have 512, 0, 96 and 544
 * elements that train. Per parameter, each has a quarter of each. */
UNIT_TEST(a_unit_that_is_mixed)
{
    static const uint32_t unit[5] = {0};
    static const uint64_t none[RECORD_N_KINDS] = {0};
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 4, 1);
    struct fsdp_units one;
    struct expect e;

    c.optimizer = FSDP_OPTIMIZER_MOMENTUM;
    testing_mlp(&t);
    t.parameter_flags[1] = FSDP_FROZEN;
    one = t.units;
    one.n_units = 1;
    one.unit_of_module = unit;
    for (uint32_t layout = 0; layout < 2; layout++) {
        c.layout = layout;
        assert_int_equal(expect_make(&c, &t.model, &one, &e), FSDP_OK);
        assert_int_equal(e.unit[0].chunk, 544);
        assert_int_equal(e.unit[0].grad_chunk, layout ? 288 : 544);
        assert_int_equal(e.peak_grads, (layout ? 1152 : 2176) * 4);
        assert_int_equal(e.rest.live[FSDP_OPTIM], (layout ? 288 : 544) * 4);
        assert_int_equal(expect_states_less(&e, 1), layout ? 0 : 544 * 4);
        assert_int_equal(expect_states_less(&e, 2), layout ? 0 : 448 * 4);
        assert_int_equal(expect_rest_of(&e, 2, FSDP_OPTIM, e.rest.live),
                         layout ? 288 * 4 : 96 * 4);
        assert_int_equal(expect_rest_of(&e, 2, FSDP_PARAM_SHARD, e.rest.live),
                         544 * 4);
        /* Before a life begins no rank has any states. */
        assert_int_equal(expect_rest_of(&e, 2, FSDP_OPTIM, none), 0);
        assert_int_equal(expect_peak_storage(&e, 2),
                         e.peak_storage - (layout ? 0 : 448 * 4));
        assert_int_equal(expect_peak_storage(&e, 3), e.peak_storage);
        expect_release(&e);
    }
}

/* The first shard has most states of both units together, four elements, and
 * all of them are on the host; the second has two, on the device. */
UNIT_TEST(who_has_most_has_none_on_the_device)
{
    static const uint32_t offload[2] = {1, 2}; /* all, nothing */
    static const uint64_t none[RECORD_N_KINDS] = {0};
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 2, 1);
    struct expect e;

    c.optimizer = FSDP_OPTIMIZER_ADAMW;
    testing_model(&t, "-01", "1:4 1:4 2:2 2:2", "F1 f1 F2 f2 B2 b2 B1 b1",
                  "F1 f1");
    t.parameter_flags[1] = t.parameter_flags[2] = FSDP_FROZEN;
    t.units.offload = offload;
    assert_int_equal(expect_make(&c, &t.model, &t.units, &e), FSDP_OK);
    assert_int_equal(e.fullest, 0);
    for (uint32_t k = 0; k < 2; k++) {
        assert_int_equal(expect_rest_of(&e, k, FSDP_OPTIM, e.rest.live),
                         k == 0 ? 0 : 2 * 2 * 4);
        assert_int_equal(
            expect_rest_of(&e, k, RECORD_HOST + FSDP_OPTIM, e.rest.live),
            k == 0 ? 2 * 4 * 4 : 0);
        assert_int_equal(expect_rest_of(&e, k, FSDP_OPTIM, none), 0);
    }
    expect_release(&e);
}

/* How many elements shard s owns. */
static uint64_t owned(const struct expect *e, uint32_t s)
{
    struct expect_part *part;
    uint64_t sum = 0;
    uint32_t n;

    assert_int_equal(expect_parts(e, s, &part, &n), FSDP_OK);
    for (uint32_t i = 0; i < n; i++) {
        sum += part[i].n;
    }
    free(part);
    return sum;
}

/* Packed, they have what the rank owns, without padding; flat, all of it. */
UNIT_TEST(late_states_have_no_padding)
{
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 3, 1);
    struct expect e;

    c.optimizer = FSDP_OPTIMIZER_ADAMW;
    testing_mlp(&t);
    for (uint32_t layout = 0; layout < 2; layout++) {
        bool less = false;

        c.layout = layout;
        assert_int_equal(expect_make(&c, &t.model, &t.units, &e), FSDP_OK);
        for (uint32_t k = 0; k < 3; k++) {
            assert_int_equal(expect_states_less(&e, k), 0);
        }
        e.late_states = true;
        for (uint32_t k = 0; k < 3; k++) {
            const uint64_t padding = layout ? e.resting - owned(&e, k) : 0;

            assert_int_equal(expect_states_less(&e, k), padding * 4 * 2);
            less = less || padding > 0;
        }
        assert_int_equal(less, layout);
        expect_release(&e);
    }
}

UNIT_TEST(sequences_that_are_none)
{
    struct testing_model t;
    struct run_case c = testing_case(CASE_FULL_SHARD, 4, 1);

    testing_model(&t, "-0", "1:8", "F1 B1 b1", "F1 f1");
    assert_int_equal(make(&t, &c), FSDP_ERR_INVALID); /* never closes */
    testing_model(&t, "-0", "1:8", "f1 B1 b1", "F1 f1");
    assert_int_equal(make(&t, &c), FSDP_ERR_INVALID); /* never opened */
    testing_model(&t, "-0", "1:8", "F7 f7 B1 b1", "F1 f1");
    assert_int_equal(make(&t, &c), FSDP_ERR_INVALID); /* no such module */
    testing_model(&t, "-0", "1:8", "F1 f1 B1 b1", "F1 f1");
    t.point[0][1] = FSDP_END;
    assert_int_equal(make(&t, &c), FSDP_ERR_INVALID);
    t.point[0][1] = FSDP_POST_FORWARD;
    assert_int_equal(make(&t, &c), FSDP_OK);
    c.scenario = CASE_EVAL;
    t.model.n_sequences = 1;
    assert_int_equal(make(&t, &c), FSDP_ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_two_parameters),
        cmocka_unit_test(a_shard_may_be_empty),
        cmocka_unit_test(parts_by_rows),
        cmocka_unit_test(folds_within_a_shard_group),
        cmocka_unit_test(folds_across_replicas),
        cmocka_unit_test(folds_of_a_loss),
        cmocka_unit_test(what_it_has_no_rules_for),
        cmocka_unit_test(a_unit_that_is_frozen),
        cmocka_unit_test(a_unit_that_is_mixed),
        cmocka_unit_test(who_has_most_has_none_on_the_device),
        cmocka_unit_test(late_states_have_no_padding),
        cmocka_unit_test(sequences_that_are_none),
        cmocka_unit_test(ties_take_no_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
