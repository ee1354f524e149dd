/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout_test.c - which elements each of four shards owns, and how they lie on
 * the wire, worked out by hand: 5 rows of 2, 3 elements, a scalar, and a
 * parameter without elements, in one unit of 14.
 */
#include "sharded.h"
#include "testing/unit_testing.h"

#include <fsdp/arith/cast.h>

#include <string.h>

enum {
    PARAMETERS = 4,
    SHARDS = 4
};

static const uint64_t shape[PARAMETERS][FSDP_MAX_DIMS] = {
    {5, 2}, {3}, {0}, {0, 4}};
static const uint32_t n_dims[PARAMETERS] = {2, 1, 0, 2};
static const uint32_t module_of[PARAMETERS] = {0, 0, 0, 0};
static const uint32_t trainable[PARAMETERS] = {0};
static const uint32_t unit_of_module[] = {0};
static const struct fsdp_model model = {.size = sizeof(model),
                                        .n_modules = 1,
                                        .n_parameters = PARAMETERS,
                                        .parameter_module = module_of,
                                        .parameter_shape = shape,
                                        .parameter_n_dims = n_dims,
                                        .parameter_flags = trainable};
static const struct fsdp_units units = {
    .size = sizeof(units), .n_units = 1, .unit_of_module = unit_of_module};

struct place {
    uint32_t parameter;
    uint64_t first, n, local;
};

struct fixture {
    struct fsdp_model model;
    struct fsdp_env env;
    struct ref_unit unit;
    struct ref_parameter parameter[PARAMETERS];
    struct ref_part part[PARAMETERS + 1];
    struct fsdp_sharded s;
};

/* Bit p of `frozen`: parameter p is. */
static void lay_out_frozen(struct fixture *x, uint32_t layout, uint32_t shards,
                           uint32_t coordinate, uint32_t frozen)
{
    static uint32_t flags[PARAMETERS];

    memset(x, 0, sizeof(*x));
    for (uint32_t p = 0; p < PARAMETERS; p++) {
        flags[p] = frozen >> p & 1u ? FSDP_FROZEN : 0;
    }
    x->model = model;
    x->model.parameter_flags = flags;
    x->s = (struct fsdp_sharded){.env = &x->env,
                                 .model = &x->model,
                                 .units = &units,
                                 .options = {.layout = layout},
                                 .shards = shards,
                                 .coordinate = coordinate,
                                 .unit = &x->unit,
                                 .parameter = x->parameter,
                                 .part = x->part};
    ref_layout(&x->s);
}

static void lay_out(struct fixture *x, uint32_t layout, uint32_t shards,
                    uint32_t coordinate)
{
    lay_out_frozen(x, layout, shards, coordinate, 0);
}

static void check(uint32_t layout, uint32_t coordinate,
                  const struct place *want, uint32_t n)
{
    struct fixture x;

    lay_out(&x, layout, SHARDS, coordinate);
    assert_int_equal(x.s.n_parts, n);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(x.part[i].parameter, want[i].parameter);
        assert_int_equal(x.part[i].first, want[i].first);
        assert_int_equal(x.part[i].n, want[i].n);
        assert_int_equal(x.part[i].local, want[i].local);
    }
}

UNIT_TEST(flat_shards_are_equal)
{
    static const struct place s2[] = {{0, 8, 2, 0}, {1, 0, 2, 2}};
    static const struct place s3[] = {{1, 2, 1, 0}, {2, 0, 1, 1}};
    struct fixture x;

    lay_out(&x, FSDP_LAYOUT_FLAT, SHARDS, 0);
    assert_false(x.s.packs);
    assert_int_equal(x.unit.chunk, 4);
    assert_int_equal(x.unit.whole, 16);
    check(FSDP_LAYOUT_FLAT, 0, (const struct place[]){{0, 0, 4, 0}}, 1);
    check(FSDP_LAYOUT_FLAT, 2, s2, 2);
    check(FSDP_LAYOUT_FLAT, 3, s3, 2);
}

/* 2, 2, 1 and no rows, as torch.chunk deals them. */
UNIT_TEST(rows_are_dealt_in_blocks)
{
    static const struct place s0[] = {{0, 0, 4, 0}, {1, 0, 1, 4}, {2, 0, 1, 5}};
    static const struct place s1[] = {{0, 4, 4, 0}, {1, 1, 1, 4}};
    static const struct place s2[] = {{0, 8, 2, 0}, {1, 2, 1, 4}};
    struct fixture x;

    lay_out(&x, FSDP_LAYOUT_PER_PARAMETER, SHARDS, 0);
    assert_true(x.s.packs);
    assert_int_equal(x.unit.chunk, 6);
    assert_int_equal(x.unit.whole, 14);
    check(FSDP_LAYOUT_PER_PARAMETER, 0, s0, 3);
    check(FSDP_LAYOUT_PER_PARAMETER, 1, s1, 2);
    check(FSDP_LAYOUT_PER_PARAMETER, 2, s2, 2);
    check(FSDP_LAYOUT_PER_PARAMETER, 3, NULL, 0);
}

UNIT_TEST(one_shard_is_all)
{
    struct fixture x;

    lay_out(&x, FSDP_LAYOUT_PER_PARAMETER, 1, 0);
    assert_false(x.s.packs);
    assert_int_equal(x.unit.chunk, 14);
    assert_int_equal(x.unit.whole, 14);
    assert_int_equal(x.s.n_parts, 3);
    for (uint32_t i = 0; i < x.s.n_parts; i++) {
        assert_int_equal(x.part[i].local, x.parameter[i].offset);
    }
}

/* The 3 elements are frozen. Flat, they have a place in the gradient but none
 * in states; by rows, only trainable parameters have places, one behind the
 * other. */
static void frozen_ones_have_no_states(void **state)
{
    struct fixture x;

    (void)state;
    lay_out_frozen(&x, FSDP_LAYOUT_FLAT, SHARDS, 3, 1u << 1);
    assert_int_equal(x.unit.grad_chunk, 4);
    assert_int_equal(x.unit.grad_whole, 16);
    assert_int_equal(x.unit.n_states, 1);
    assert_int_equal(x.s.n_parts, 2);
    assert_true(x.part[0].frozen);
    assert_int_equal(x.part[1].grad, 1);
    assert_int_equal(x.part[1].state, 0);
    lay_out_frozen(&x, FSDP_LAYOUT_PER_PARAMETER, SHARDS, 0, 1u << 1);
    assert_int_equal(x.unit.chunk, 6);
    assert_int_equal(x.unit.grad_chunk, 5);
    assert_int_equal(x.unit.grad_whole, 11);
    assert_int_equal(x.unit.n_states, 5);
    assert_int_equal(x.part[2].local, 5);
    assert_int_equal(x.part[2].grad, 4);
    assert_int_equal(x.part[2].state, 4);
    assert_int_equal(x.parameter[2].grad_offset, 10);
    assert_true(x.unit.trains);
}

UNIT_TEST(what_is_all_frozen_has_no_gradient)
{
    struct fixture x;

    for (uint32_t layout = 0; layout < 2; layout++) {
        lay_out_frozen(&x, layout, SHARDS, 0, 15);
        assert_false(x.unit.trains);
        assert_true(x.unit.chunk > 0);
        assert_int_equal(x.unit.grad_chunk, 0);
        assert_int_equal(x.unit.grad_whole, 0);
        assert_int_equal(x.unit.n_states, 0);
    }
}

UNIT_TEST(what_is_packed_comes_back)
{
    static const float wire[] = {1, 2,  3, 4, 11, 14, 5, 6, 7, 8, 12, 0,
                                 9, 10, 0, 0, 13, 0,  0, 0, 0, 0, 0,  0};
    struct fixture x;
    float whole[14];
    float back[14];

    lay_out(&x, FSDP_LAYOUT_PER_PARAMETER, SHARDS, 0);
    for (int i = 0; i < 14; i++) {
        whole[i] = (float)(i + 1);
        back[i] = -1.0f;
    }
    assert_int_equal(ref_open(&x.env), FSDP_OK);
    assert_int_equal(ref_take(&x.s, REF_DEVICE, FSDP_STAGING, 0, 24,
                              FSDP_DTYPE_F32, &x.unit.wire),
                     FSDP_OK);
    memset(x.unit.wire, 0xff, sizeof(wire));
    x.unit.dtype.accumulate = x.unit.dtype.reduce = FSDP_DTYPE_F32;
    x.unit.grad_full = whole;
    x.unit.full = back;
    assert_int_equal(ref_pack(&x.s, 0), FSDP_OK);
    assert_memory_equal(x.unit.wire, wire, sizeof(wire));
    assert_int_equal(ref_unpack(&x.s, 0, FSDP_DTYPE_F32), FSDP_OK);
    assert_memory_equal(back, whole, sizeof(whole));
    /* A wire of 16 bits has each value in the same place, rounded. */
    x.unit.dtype.reduce = FSDP_DTYPE_BF16;
    whole[6] = 7.01f; /* bf16 rounds it to 7 */
    memset(x.unit.wire, 0xff, sizeof(wire));
    assert_int_equal(ref_pack(&x.s, 0), FSDP_OK);
    for (int i = 0; i < 24; i++) {
        assert_true(fsdp_load(FSDP_DTYPE_BF16, x.unit.wire, (uint64_t)i) ==
                    wire[i]);
    }
    ref_drop(&x.s, REF_DEVICE, &x.unit.wire);
    ref_close(&x.env);
}

/* "d" is told to be another name of "b". */
UNIT_TEST(what_is_tied_takes_no_place)
{
    static const uint64_t alike[PARAMETERS][FSDP_MAX_DIMS] = {
        {5, 2}, {3}, {0}, {3}};
    static const uint32_t dims[PARAMETERS] = {2, 1, 0, 1};
    static const int32_t alias[PARAMETERS] = {-1, -1, -1, 1};
    struct fixture x;

    memset(&x, 0, sizeof(x));
    x.model = model;
    x.model.parameter_shape = alike;
    x.model.parameter_n_dims = dims;
    x.model.parameter_alias = alias;
    x.s = (struct fsdp_sharded){.env = &x.env,
                                .model = &x.model,
                                .units = &units,
                                .shards = 1,
                                .unit = &x.unit,
                                .parameter = x.parameter,
                                .part = x.part};
    ref_layout(&x.s);
    assert_int_equal(x.unit.numel, 14);
    assert_int_equal(x.s.n_parts, 3);
    assert_int_equal(x.parameter[3].original, 1);
    assert_true(x.parameter[1].shared && x.parameter[3].shared);
    assert_false(x.parameter[0].shared);
    assert_true(ref_is_in(&x.s, 1, 0));
    assert_false(ref_is_in(&x.s, 3, 0));
}

/* The first and the last parameter are each alone in a unit. */
UNIT_TEST(a_module_uses_the_units_of_its_parameters)
{
    static const uint32_t unit_of_parameter[PARAMETERS] = {1, 0, 0, 2};
    const struct fsdp_units of_parameters = {.size = sizeof(of_parameters),
                                             .n_units = 3,
                                             .unit_of_module = unit_of_module,
                                             .unit_of_parameter =
                                                 unit_of_parameter};
    bool uses[3] = {false};

    ref_find_uses(&model, &of_parameters, uses);
    assert_true(uses[0] && uses[1] && uses[2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flat_shards_are_equal),
        cmocka_unit_test(rows_are_dealt_in_blocks),
        cmocka_unit_test(one_shard_is_all),
        cmocka_unit_test(frozen_ones_have_no_states),
        cmocka_unit_test(what_is_all_frozen_has_no_gradient),
        cmocka_unit_test(what_is_packed_comes_back),
        cmocka_unit_test(what_is_tied_takes_no_place),
        cmocka_unit_test(a_module_uses_the_units_of_its_parameters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
