/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wrap_test.c - every policy on one tree whose units were worked out by hand:
 *
 *     0 net (4)
 *       1 embed (100)
 *       2 block0            3 norm (6)   4 mlp (90)
 *       5 block1            6 norm (6)   7 mlp (90)
 *       8 drop              nothing below or in it
 *       9 head              only a tied name of embed's parameter
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_build.h"
#include "testing/unit_testing.h"
#include "wrap.h"

enum {
    N = 10,
    NONE = 99
};

static struct model_build *builder;
static struct fsdp_model model;

static void add(const char *name, const char *class_name, int32_t parent,
                uint64_t numel)
{
    const int32_t m = model_build_module(builder, name, class_name, parent);
    char weight[64];

    assert_true(m >= 0);
    if (numel > 0) {
        snprintf(weight, sizeof(weight), "%s.weight", name);
        assert_true(model_build_parameter(builder, weight, m, FSDP_DTYPE_F32, 0,
                                          1, &numel) >= 0);
    }
}

static int setup(void **state)
{
    (void)state;
    builder = model_build_create();
    add("net", "Net", -1, 4);
    add("embed", "Embedding", 0, 100);
    add("block0", "Block", 0, 0);
    add("block0.norm", "LayerNorm", 2, 6);
    add("block0.mlp", "MLP", 2, 90);
    add("block1", "Block", 0, 0);
    add("block1.norm", "LayerNorm", 5, 6);
    add("block1.mlp", "MLP", 5, 90);
    add("drop", "Dropout", 0, 0);
    add("head", "Linear", 0, 0);
    assert_true(model_build_tied(builder, "head.weight", 9, 1) >= 0);
    return model_build_finish(builder, &model);
}

static int teardown(void **state)
{
    (void)state;
    model_build_destroy(builder);
    return 0;
}

static void assert_units(int status, struct wrap_units *units, uint32_t n_units,
                         const uint32_t *want)
{
    assert_int_equal(status, FSDP_OK);
    assert_int_equal(units->units.size, sizeof(units->units));
    assert_int_equal(units->units.n_units, n_units);
    assert_ptr_equal(units->units.unit_of_module, units->unit_of_module);
    for (uint32_t m = 0; m < N; m++) {
        assert_int_equal(units->unit_of_module[m],
                         want[m] == NONE ? FSDP_NO_UNIT : want[m]);
    }
    assert_null(units->units.offload);
    wrap_release(units);
    assert_null(units->unit_of_module);
}

static void assert_refused(int status, struct wrap_units *units)
{
    assert_int_equal(status, FSDP_ERR_INVALID);
    assert_null(units->unit_of_module);
    wrap_release(units);
}

UNIT_TEST(test_whole)
{
    const uint32_t want[N] = {0};
    struct wrap_units u;

    assert_units(wrap_whole(&model, &u), &u, 1, want);
}

UNIT_TEST(test_by_size)
{
    /* 90 elements: the MLPs are units by themselves; norms are left to the
     * root. */
    const uint32_t at_90[N] = {0, 1, 0, 0, 2, 0, 0, 3, 0, 0};
    /* 96 elements: a block has that many only with both of its children. */
    const uint32_t at_96[N] = {0, 1, 2, 2, 2, 3, 3, 3, 0, 0};
    const uint32_t at_97[N] = {0, 1, 0, 0, 0, 0, 0, 0, 0, 0};
    const uint32_t at_101[N] = {0};
    /* 0 elements: even modules without parameters are marked, and vanish. */
    const uint32_t at_0[N] = {0, 1, NONE, 2, 3, NONE, 4, 5, NONE, NONE};
    const uint32_t at_1[N] = {0, 1, 0, 2, 3, 0, 4, 5, 0, 0};
    struct wrap_units u;

    assert_units(wrap_by_size(&model, 90, &u), &u, 4, at_90);
    assert_units(wrap_by_size(&model, 96, &u), &u, 4, at_96);
    assert_units(wrap_by_size(&model, 97, &u), &u, 2, at_97);
    assert_units(wrap_by_size(&model, 101, &u), &u, 1, at_101);
    assert_units(wrap_by_size(&model, 0, &u), &u, 6, at_0);
    assert_units(wrap_by_size(&model, 1, &u), &u, 6, at_1);
}

UNIT_TEST(test_by_class)
{
    const char *const block[] = {"Block"};
    const char *const nested[] = {"Block", "MLP"};
    const char *const unknown[] = {"Block", "Conv"};
    const char *const root[] = {"Net"};
    const uint32_t want_block[N] = {0, 0, 1, 1, 1, 2, 2, 2, 0, 0};
    const uint32_t want_nested[N] = {0, 0, 1, 1, 2, 3, 3, 4, 0, 0};
    const uint32_t want_root[N] = {0};
    struct wrap_units u;

    assert_units(wrap_by_class(&model, block, 1, &u), &u, 3, want_block);
    assert_units(wrap_by_class(&model, nested, 2, &u), &u, 5, want_nested);
    assert_units(wrap_by_class(&model, root, 1, &u), &u, 1, want_root);
    assert_refused(wrap_by_class(&model, unknown, 2, &u), &u);
}

static int is_norm(void *context, const struct fsdp_model *m, uint32_t module)
{
    *(uint32_t *)context += 1;
    return strcmp(m->module_class[module], "LayerNorm") == 0;
}

UNIT_TEST(test_by_callback)
{
    const uint32_t want[N] = {0, 0, 0, 1, 0, 0, 2, 0, 0, 0};
    uint32_t calls = 0;
    struct wrap_units u;

    assert_units(wrap_by_callback(&model, is_norm, &calls, &u), &u, 3, want);
    assert_int_equal(calls, N - 1);
}

UNIT_TEST(test_by_hand)
{
    const char *const names[] = {"block1", "embed", "drop"};
    const char *const twice[] = {"embed", "embed"};
    const char *const unknown[] = {"block2"};
    /* Units are numbered in the model's order, not in that of the names. */
    const uint32_t want[N] = {0, 1, 0, 0, 0, 2, 2, 2, NONE, 0};
    struct wrap_units u;

    assert_units(wrap_by_hand(&model, names, 3, &u), &u, 3, want);
    assert_refused(wrap_by_hand(&model, twice, 2, &u), &u);
    assert_refused(wrap_by_hand(&model, unknown, 1, &u), &u);
}

UNIT_TEST(test_every)
{
    const uint32_t by_1[N] = {0, 1, 0, 2, 3, 0, 4, 5, 0, 0};
    const uint32_t by_2[N] = {0, 1, 0, 1, 2, 0, 2, 3, 0, 0};
    const uint32_t by_9[N] = {0, 1, 0, 1, 1, 0, 1, 1, 0, 0};
    struct wrap_units u;

    assert_units(wrap_every(&model, 1, &u), &u, 6, by_1);
    assert_units(wrap_every(&model, 2, &u), &u, 4, by_2);
    assert_units(wrap_every(&model, 9, &u), &u, 2, by_9);
    assert_refused(wrap_every(&model, 0, &u), &u);
}

/* A root that keeps no parameter has no unit. */
UNIT_TEST(test_empty_root)
{
    const uint64_t numel = 3;
    struct model_build *b = model_build_create();
    struct fsdp_model chain;
    struct wrap_units u;

    model_build_module(b, "net", "Net", -1);
    model_build_module(b, "l0", "Linear", 0);
    model_build_module(b, "l1", "Linear", 0);
    model_build_parameter(b, "l0.w", 1, FSDP_DTYPE_F32, 0, 1, &numel);
    model_build_parameter(b, "l1.w", 2, FSDP_DTYPE_F32, 0, 1, &numel);
    assert_int_equal(model_build_finish(b, &chain), FSDP_OK);
    assert_int_equal(wrap_every(&chain, 1, &u), FSDP_OK);
    assert_int_equal(u.units.n_units, 2);
    assert_int_equal(u.unit_of_module[0], FSDP_NO_UNIT);
    assert_int_equal(u.unit_of_module[1], 0);
    assert_int_equal(u.unit_of_module[2], 1);
    wrap_release(&u);
    wrap_release(NULL);
    model_build_destroy(b);
}

/* Units of parameters: trainable ones apart, frozen vectors in none. The second
 * layer has no frozen parameter, the third only frozen ones. */
UNIT_TEST(test_of_parameters)
{
    const uint64_t shape[] = {2, 3};
    const uint32_t apart[] = {0, 1, 1, 2, 3, 3};
    const uint32_t ignored[] = {FSDP_NO_UNIT, 0, 0, 1, FSDP_NO_UNIT, 2};
    struct model_build *b = model_build_create();
    struct fsdp_model layers;
    struct wrap_units u;

    model_build_module(b, "net", "Net", -1);
    model_build_module(b, "l0", "Linear", 0);
    model_build_module(b, "l1", "Linear", 0);
    model_build_module(b, "l2", "Linear", 0);
    model_build_parameter(b, "l0.v", 1, FSDP_DTYPE_F32, FSDP_FROZEN, 1, shape);
    model_build_parameter(b, "l0.w", 1, FSDP_DTYPE_F32, 0, 2, shape);
    model_build_parameter(b, "l0.b", 1, FSDP_DTYPE_F32, 0, 1, shape);
    model_build_parameter(b, "l1.b", 2, FSDP_DTYPE_F32, 0, 1, shape);
    model_build_parameter(b, "l2.v", 3, FSDP_DTYPE_F32, FSDP_FROZEN, 1, shape);
    model_build_parameter(b, "l2.w", 3, FSDP_DTYPE_F32, FSDP_FROZEN, 2, shape);
    assert_int_equal(model_build_finish(b, &layers), FSDP_OK);
    assert_int_equal(wrap_every(&layers, 1, &u), FSDP_OK);
    assert_int_equal(fsdp_unit_of(&layers, &u.units, 5), 2);
    assert_int_equal(wrap_apart(&layers, &u), FSDP_OK);
    assert_int_equal(u.units.n_units, 4);
    assert_memory_equal(u.units.unit_of_parameter, apart, sizeof(apart));
    assert_int_equal(u.unit_of_module[0], FSDP_NO_UNIT);
    assert_int_equal(u.unit_of_module[1], 0);
    assert_int_equal(u.unit_of_module[2], 2);
    assert_int_equal(u.unit_of_module[3], 3);
    wrap_release(&u);
    assert_int_equal(wrap_every(&layers, 1, &u), FSDP_OK);
    assert_int_equal(wrap_ignore(&layers, &u), FSDP_OK);
    assert_int_equal(u.units.n_units, 3);
    assert_memory_equal(u.units.unit_of_parameter, ignored, sizeof(ignored));
    assert_int_equal(fsdp_unit_of(&layers, &u.units, 4), FSDP_NO_UNIT);
    u.units.size = offsetof(struct fsdp_units, unit_of_parameter);
    assert_int_equal(fsdp_unit_of(&layers, &u.units, 4), 2);
    wrap_release(&u);
    model_build_destroy(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),      cmocka_unit_test(test_by_size),
        cmocka_unit_test(test_by_class),   cmocka_unit_test(test_by_callback),
        cmocka_unit_test(test_by_hand),    cmocka_unit_test(test_every),
        cmocka_unit_test(test_empty_root), cmocka_unit_test(test_of_parameters),
    };

    return cmocka_run_group_tests(tests, setup, teardown) != 0;
}
