/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_build_test.c - a description comes out as it went in, its sequences
 * are the walks they are said to be, and what is wrong is refused and stays
 * refused.
 */
#include <stdlib.h>
#include <string.h>

#include "model_build.h"
#include "testing/unit_testing.h"

/*  root -> a -> (b, c); root -> d  */
static struct model_build *small_tree(void)
{
    const uint64_t shape[] = {2, 3};
    struct model_build *b = model_build_create();

    assert_non_null(b);
    assert_int_equal(model_build_module(b, "root", "Net", -1), 0);
    assert_int_equal(model_build_module(b, "a", "Block", 0), 1);
    assert_int_equal(model_build_module(b, "d", "Linear", 0), 2);
    assert_int_equal(model_build_module(b, "a.b", "Linear", 1), 3);
    assert_int_equal(model_build_module(b, "a.c", "Linear", 1), 4);
    assert_int_equal(
        model_build_parameter(b, "a.b.w", 3, FSDP_DTYPE_F32, 0, 2, shape), 0);
    assert_int_equal(model_build_parameter(b, "a.c.s", 4, FSDP_DTYPE_BF16,
                                           FSDP_NO_DECAY, 0, NULL),
                     1);
    assert_int_equal(model_build_tied(b, "d.w", 2, 0), 2);
    assert_int_equal(model_build_buffer(b, "d.count", 2, FSDP_DTYPE_I64,
                                        FSDP_NOT_PERSISTED, 5),
                     0);
    return b;
}

UNIT_TEST(test_arrays)
{
    struct model_build *b = small_tree();
    struct fsdp_model model;

    assert_int_equal(model_build_finish(b, &model), FSDP_OK);
    assert_string_equal(model_build_message(b), "");
    assert_int_equal(model.size, sizeof(model));
    assert_int_equal(model.n_modules, 5);
    assert_string_equal(model.module_name[3], "a.b");
    assert_string_equal(model.module_class[1], "Block");
    assert_int_equal(model.module_parent[0], -1);
    assert_int_equal(model.module_parent[4], 1);
    assert_int_equal(model.n_parameters, 3);
    assert_string_equal(model.parameter_name[2], "d.w");
    assert_int_equal(model.parameter_module[2], 2);
    assert_int_equal(model.parameter_alias[0], -1);
    assert_int_equal(model.parameter_alias[2], 0);
    assert_int_equal(fsdp_numel(&model, 2), 6);
    assert_int_equal(fsdp_numel(&model, 1), 1);
    assert_int_equal(model.parameter_dtype[1], FSDP_DTYPE_BF16);
    assert_int_equal(model.parameter_flags[1], FSDP_NO_DECAY);
    assert_int_equal(model.n_buffers, 1);
    assert_string_equal(model.buffer_name[0], "d.count");
    assert_int_equal(model.buffer_numel[0], 5);
    assert_int_equal(model.buffer_dtype[0], FSDP_DTYPE_I64);
    assert_int_equal(model.buffer_flags[0], FSDP_NOT_PERSISTED);
    assert_int_equal(model_build_module(b, "late", "Linear", 0),
                     FSDP_ERR_INVALID);
    model_build_destroy(b);
}

static void assert_sequence(const struct fsdp_sequence *s, const char *name,
                            uint32_t n, const uint32_t *point,
                            const uint32_t *module)
{
    assert_string_equal(s->name, name);
    assert_int_equal(s->n, n);
    assert_memory_equal(s->point, point, n * sizeof(*point));
    assert_memory_equal(s->module, module, n * sizeof(*module));
}

UNIT_TEST(test_derived_sequences)
{
    enum {
        IN = FSDP_PRE_FORWARD,
        OUT = FSDP_POST_FORWARD,
        BACK = FSDP_PRE_BACKWARD,
        DONE = FSDP_POST_BACKWARD,
    };
    const uint32_t point[] = {IN,   IN,   IN,   OUT,  IN,   OUT,  OUT,
                              IN,   OUT,  OUT,  BACK, BACK, DONE, BACK,
                              BACK, DONE, BACK, DONE, DONE, DONE};
    const uint32_t module[] = {0, 1, 3, 3, 4, 4, 1, 2, 2, 0,
                               0, 2, 2, 1, 4, 4, 3, 3, 1, 0};
    struct model_build *b = small_tree();
    struct fsdp_model model;

    assert_int_equal(model_build_finish(b, &model), FSDP_OK);
    assert_int_equal(model.n_sequences, 2);
    assert_sequence(model.sequence[FSDP_SEQUENCE_TRAIN], "train", 20, point,
                    module);
    assert_sequence(model.sequence[FSDP_SEQUENCE_EVAL], "eval", 10, point,
                    module);
    model_build_destroy(b);
}

/* Below: f and F are forward points, r and R of a recompute, b and B of the
 * backward; the modules of small_tree are root, a with b and c in it, and d. */
UNIT_TEST(test_recompute_sequences)
{
    enum {
        f = FSDP_PRE_FORWARD,
        F = FSDP_POST_FORWARD,
        b = FSDP_PRE_BACKWARD,
        B = FSDP_POST_BACKWARD,
        r = FSDP_PRE_RECOMPUTE,
        R = FSDP_POST_RECOMPUTE
    };
    static const struct {
        uint32_t checkpoint[5], n, point[12], module[12]; /* of the backward */
    } wants[] = {
        /* The modules in a, inside a's backward. */
        {{0, 0, 0, 1, 1},
         14,
         {b, b, B, b, r, R, r, R, b, B, b, B},
         {0, 2, 2, 1, 3, 3, 4, 4, 4, 4, 3, 3}},
        /* a and the modules in it, before its backward. */
        {{0, 1, 0, 1, 1},
         16,
         {b, b, B, r, r, R, r, R, R, b, b, B},
         {0, 2, 2, 1, 3, 3, 4, 4, 1, 1, 4, 4}},
        /* All but the root, together, before d's backward. */
        {{0, 1, 1, 1, 1},
         18,
         {b, r, r, R, r, R, R, r, R, b, B, b},
         {0, 1, 3, 3, 4, 4, 1, 2, 2, 2, 2, 1}},
        /* d alone. */
        {{0, 0, 7, 0, 0},
         12,
         {b, r, R, b, B, b, b, B, b, B, B, B},
         {0, 2, 2, 2, 2, 1, 4, 4, 3, 3, 1, 0}},
    };

    for (size_t i = 0; i < sizeof(wants) / sizeof(wants[0]); i++) {
        struct model_build *build = small_tree();
        const struct fsdp_sequence *s;
        struct fsdp_model model;

        assert_int_equal(model_build_recompute(build, wants[i].checkpoint), 0);
        assert_int_equal(model_build_finish(build, &model), FSDP_OK);
        s = model.sequence[FSDP_SEQUENCE_TRAIN];
        assert_int_equal(s->n, 10 + wants[i].n);
        assert_int_equal(s->point[0], f);
        assert_int_equal(s->point[9], F);
        assert_memory_equal(s->point + 10, wants[i].point,
                            sizeof(wants[i].point));
        assert_memory_equal(s->module + 10, wants[i].module,
                            sizeof(wants[i].module));
        assert_int_equal(model.sequence[FSDP_SEQUENCE_EVAL]->n, 10);
        model_build_destroy(build);
    }
}

UNIT_TEST(test_own_sequences)
{
    const uint32_t point[] = {FSDP_PRE_FORWARD, FSDP_PRE_FORWARD,
                              FSDP_POST_FORWARD, FSDP_POST_FORWARD};
    const uint32_t twice[] = {2, 3, 3, 2};
    struct model_build *b = small_tree();
    struct fsdp_model model;

    assert_int_equal(model_build_sequence(b, "extra", 4, point, twice), 0);
    assert_int_equal(model_build_sequence(b, "train", 4, point, twice), 0);
    assert_int_equal(model_build_sequence(b, "empty", 0, NULL, NULL), 0);
    assert_int_equal(model_build_finish(b, &model), FSDP_OK);
    assert_int_equal(model.n_sequences, 4);
    assert_sequence(model.sequence[0], "train", 4, point, twice);
    assert_string_equal(model.sequence[1]->name, "eval");
    assert_int_equal(model.sequence[1]->n, 10);
    assert_sequence(model.sequence[2], "extra", 4, point, twice);
    assert_int_equal(model.sequence[3]->n, 0);
    model_build_destroy(b);
}

/* Each entry must be refused, whatever comes after it. */
static int32_t wrong(struct model_build *b, int which)
{
    const uint64_t huge[] = {UINT64_MAX / 2, 0, 5};
    const uint32_t open[] = {FSDP_PRE_FORWARD, FSDP_PRE_FORWARD,
                             FSDP_POST_FORWARD, FSDP_POST_FORWARD};
    const uint32_t crossed[] = {1, 2, 1, 2};
    const uint32_t other_way[] = {FSDP_PRE_FORWARD, FSDP_POST_BACKWARD};
    const uint32_t unknown[] = {9, 9};
    const uint32_t odd[] = {FSDP_END, FSDP_END};

    switch (which) {
    case 0:
        return model_build_module(b, "a", "Linear", 0);
    case 1:
        return model_build_module(b, "e", "Linear", 5);
    case 2:
        return model_build_module(b, "e", "Linear", -1);
    case 3:
        return model_build_parameter(b, "d.count", 2, FSDP_DTYPE_F32, 0, 0,
                                     NULL);
    case 4:
        return model_build_buffer(b, "a.b.w", 2, FSDP_DTYPE_F32, 0, 1);
    case 5:
        return model_build_parameter(b, "x", 5, FSDP_DTYPE_F32, 0, 0, NULL);
    case 6:
        return model_build_parameter(b, "x", 1, FSDP_DTYPE_NONE, 0, 0, NULL);
    case 7:
        return model_build_parameter(b, "x", 1, FSDP_DTYPE_F32, 0, 3, huge);
    case 8:
        return model_build_parameter(b, "x", 1, FSDP_DTYPE_F32, 0, 5, huge);
    case 9:
        return model_build_tied(b, "x", 1, 3);
    case 10:
        return model_build_tied(b, "x", 1, 2);
    case 11:
        return model_build_sequence(b, "s", 4, open, crossed);
    case 12:
        return model_build_sequence(b, "s", 3, open, crossed);
    case 13:
        return model_build_sequence(b, "s", 2, other_way, crossed + 2);
    case 14:
        return model_build_sequence(b, "s", 2, open, unknown);
    case 15:
        return model_build_sequence(b, "s", 2, odd, crossed);
    case 16:
        return model_build_module(b, NULL, "Linear", 0);
    case 17:
        return model_build_module(b, "e", NULL, 0);
    default:
        return FSDP_OK;
    }
}

UNIT_TEST(test_what_is_wrong_is_refused)
{
    for (int which = 0; which < 18; which++) {
        struct model_build *b = small_tree();
        struct fsdp_model model;

        assert_int_equal(wrong(b, which), FSDP_ERR_INVALID);
        assert_true(strlen(model_build_message(b)) > 0);
        assert_int_equal(model_build_module(b, "fine", "Linear", 0),
                         FSDP_ERR_INVALID);
        assert_int_equal(model_build_finish(b, &model), FSDP_ERR_INVALID);
        assert_int_equal(model.n_modules, 0);
        model_build_destroy(b);
    }
}

UNIT_TEST(test_a_model_has_a_root)
{
    struct model_build *b = model_build_create();
    struct fsdp_model model;

    assert_int_equal(model_build_finish(b, &model), FSDP_ERR_INVALID);
    model_build_destroy(b);
    model_build_destroy(NULL);
}

UNIT_TEST(test_one_module_is_a_tree)
{
    const uint32_t point[] = {FSDP_PRE_FORWARD, FSDP_POST_FORWARD,
                              FSDP_PRE_BACKWARD, FSDP_POST_BACKWARD};
    const uint32_t module[] = {0, 0, 0, 0};
    struct model_build *b = model_build_create();
    struct fsdp_model model;

    assert_int_equal(model_build_module(b, "", "Net", -1), 0);
    assert_int_equal(model_build_finish(b, &model), FSDP_OK);
    assert_sequence(model.sequence[0], "train", 4, point, module);
    model_build_destroy(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_derived_sequences),
        cmocka_unit_test(test_recompute_sequences),
        cmocka_unit_test(test_own_sequences),
        cmocka_unit_test(test_what_is_wrong_is_refused),
        cmocka_unit_test(test_a_model_has_a_root),
        cmocka_unit_test(test_one_module_is_a_tree),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
