/* SPDX-License-Identifier: Apache-2.0 */
/*
 * witness_test.c - the numbers of a pass are those of what ranks would send in
 * it: in both layouts, over three shards of which the last has padding.
 */
#include "run/witness/witness.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "testing/unit_testing.h"

enum {
    SHARDS = 3,
    ROWS = 4, /* of the first parameter, of two elements each */
    MATRIX = 2 * ROWS,
    VECTOR = 3,
};

static const uint64_t shapes[3][FSDP_MAX_DIMS] = {{ROWS, 2}, {VECTOR}, {0, 2}};
static const uint32_t n_dims[3] = {2, 1, 2};
static const uint32_t module_of[3] = {0, 0, 0};
static uint32_t flags[3];
static const uint32_t unit_of_module[1] = {0};
static const float matrix[MATRIX] = {1, 2, 3, 4, 5, 6, 7, 8};
static const float vector[VECTOR] = {0.0f, -0.5f, 0.25f};

static const struct fsdp_model model = {.size = sizeof(model),
                                        .n_modules = 1,
                                        .n_parameters = 3,
                                        .parameter_module = module_of,
                                        .parameter_n_dims = n_dims,
                                        .parameter_shape = shapes,
                                        .parameter_flags = flags};
static const struct fsdp_units units = {
    .size = sizeof(units), .n_units = 1, .unit_of_module = unit_of_module};

static struct fsdp_tensor lent(const float *data, uint32_t dtype)
{
    /* Nothing is written there. */
    return (struct fsdp_tensor){.data = (void *)(uintptr_t)data,
                                .dtype = dtype};
}

/* Makes shard s, as it is sent; returns the number of its elements. */
static uint64_t shard_of(uint32_t layout, uint32_t s, float out[MATRIX])
{
    float flat[MATRIX + VECTOR + 1] = {0};

    memset(out, 0, MATRIX * sizeof(*out));
    memcpy(flat, matrix, sizeof(matrix));
    memcpy(flat + MATRIX, vector, sizeof(vector));
    if (layout == FSDP_LAYOUT_FLAT) {
        memcpy(out, flat + s * 4ul, 4 * sizeof(*out));
        return 4;
    }
    /* Two rows of four, so that the last shard has none; and one of three. */
    if (s < 2) {
        memcpy(out, matrix + s * 4ul, 4 * sizeof(*out));
    }
    out[4] = vector[s];
    return 5;
}

static uint64_t digest(uint32_t layout, uint32_t s)
{
    float shard[MATRIX];
    const uint64_t n = shard_of(layout, s, shard);

    return record_digest_add(0, s * n, shard, n, sizeof(float));
}

/* A pass of rank `me` in which the matrix was left `times` times. */
static void pass(uint32_t layout, uint32_t me, uint32_t times,
                 struct record_rank *out)
{
    struct fsdp_tensor m = lent(matrix, FSDP_DTYPE_F32);
    struct fsdp_tensor v = lent(vector, FSDP_DTYPE_F32);
    struct wire wire;
    struct witness w = {0};

    assert_int_equal(wire_make(&model, &units, layout, SHARDS, false, &wire),
                     FSDP_OK);
    assert_int_equal(witness_make(&wire, &units, me, &w), FSDP_OK);
    wire.calls[0] = (struct wire_calls){9, 9};
    witness_forget(&w);
    wire.calls[0].gathers++;
    witness_begin(&w, 5, 1);
    assert_true(witness_wants(&w, 0));
    witness_lent(&w, 0, &m);
    assert_false(witness_wants(&w, 0));
    assert_false(witness_wants(&w, 2)); /* it has no elements, */
    witness_left(&w, 2, &v);            /* and does not count */
    if (times > 0) {
        witness_lent(&w, 1, &v);
    }
    for (uint32_t i = 0; i < times; i++) {
        witness_left(&w, 0, &m);
    }
    witness_left(&w, 1, &v);
    wire.calls[0].reductions++;
    assert_int_equal(witness_end(&w, out), FSDP_OK);
    witness_release(&w);
    wire_release(&wire);
}

UNIT_TEST(what_is_lent_is_what_shards_are)
{
    for (uint32_t layout = 0; layout < 2; layout++) {
        for (uint32_t me = 0; me < SHARDS; me++) {
            struct record_rank r = {0};
            uint64_t all = 0;

            for (uint32_t s = 0; s < SHARDS; s++) {
                all += digest(layout, s);
            }
            pass(layout, me, 1, &r);
            assert_int_equal(r.n_passes, 1);
            assert_int_equal(r.pass->step, 5);
            assert_int_equal(r.pass->microbatch, 1);
            assert_int_equal(r.pass->gathers, 1);
            assert_int_equal(r.pass->reductions, 0);
            assert_int_equal(r.pass->reduced, 1);
            assert_int_equal(r.pass->lent_dtype, FSDP_DTYPE_F32);
            assert_true(r.pass->lent == all);
            /* The rank's own part stays in the number. */
            assert_true(r.pass->left == all - digest(layout, me));
            record_rank_release(&r);
        }
    }
}

/* The model adds up gradients that are left twice, so their sum is not known;
 * frozen parameters leave none. */
UNIT_TEST(what_is_not_known_is_not_told)
{
    struct record_rank r = {0};

    pass(FSDP_LAYOUT_FLAT, 0, 2, &r);
    assert_int_equal(r.pass[0].lent_dtype, FSDP_DTYPE_F32);
    assert_int_equal(r.pass[0].left_dtype, FSDP_DTYPE_NONE);
    pass(FSDP_LAYOUT_FLAT, 0, 0, &r);
    assert_int_equal(r.n_passes, 1); /* nor was all of it lent */
    flags[0] = FSDP_FROZEN;
    pass(FSDP_LAYOUT_FLAT, 0, 0, &r);
    flags[0] = 0;
    assert_int_equal(r.n_passes, 2);
    assert_int_equal(r.pass[1].lent_dtype, FSDP_DTYPE_NONE);
    assert_int_equal(r.pass[1].left_dtype, FSDP_DTYPE_F32);
    record_rank_release(&r);
}

/* The same value at another place has another number, and +0 has none. */
UNIT_TEST(a_place_counts)
{
    const float x[3] = {1.0f, 0.0f, 1.0f};

    assert_true(record_digest_add(0, 7, x + 1, 1, 4) == 0);
    assert_true(record_digest_add(0, 7, x, 1, 4) !=
                record_digest_add(0, 8, x, 1, 4));
    assert_true(record_digest_add(0, 7, x, 3, 4) ==
                record_digest_add(0, 7, x, 1, 4) +
                    record_digest_add(0, 9, x + 2, 1, 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_lent_is_what_shards_are),
        cmocka_unit_test(what_is_not_known_is_not_told),
        cmocka_unit_test(a_place_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
