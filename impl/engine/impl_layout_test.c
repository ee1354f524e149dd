/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_layout_test.c - the tables of both layouts, and packed copies, against
 * numbers worked out by hand: 5 rows of 2, 3 elements, a scalar, and a
 * parameter without elements, over four shards; all of it trainable, or not.
 */
#include "impl.h"
#include "impl_calls.h"
#include "testing/unit_testing.h"

#include <string.h>

enum {
    PARAMETERS = 4,
    SHARDS = 4
};

static const uint64_t shape[PARAMETERS][FSDP_MAX_DIMS] = {
    {5, 2}, {3}, {0}, {0, 4}};
static const uint32_t n_dims[PARAMETERS] = {2, 1, 0, 2};
static const uint32_t zeros[PARAMETERS] = {0, 0, 0, 0};
static const char *const names[PARAMETERS] = {"a", "b", "c", "d"};
static const struct fsdp_model model = {.size = sizeof(model),
                                        .n_modules = 1,
                                        .n_parameters = PARAMETERS,
                                        .parameter_name = names,
                                        .parameter_module = zeros,
                                        .parameter_shape = shape,
                                        .parameter_n_dims = n_dims,
                                        .parameter_flags = zeros};

/* A model some of whose parameters are frozen. */
static struct fsdp_model freeze(const uint32_t flags[PARAMETERS])
{
    struct fsdp_model frozen = model;

    frozen.parameter_flags = flags;
    return frozen;
}

/* Nothing is sent here. */
static const struct fsdp_comm nobody = {.size = sizeof(nobody)};

static void lay_out(const struct fsdp_model *of, struct fsdp_env *env,
                    struct fsdp_sharded *s, uint32_t layout, uint32_t shards,
                    uint32_t coordinate)
{
    const struct fsdp_engine *engine = fsdp_impl_engine();

    *env = (struct fsdp_env){
        .size = sizeof(*env), .world = shards, .comm = &nobody};
    assert_int_equal(engine->open(env), FSDP_OK);
    *s = (struct fsdp_sharded){
        .env = env,
        .model = of,
        .units = {.size = sizeof(s->units),
                  .n_units = 1,
                  .unit_of_module = zeros},
        .options = {.size = sizeof(s->options), .layout = layout},
        .shards = shards,
        .replicas = 1,
        .coordinate = coordinate};
    assert_int_equal(impl_lay_out(s), FSDP_OK);
}

static void release(struct fsdp_env *env, struct fsdp_sharded *s)
{
    impl_layout_release(s);
    fsdp_impl_engine()->close(env);
}

struct part {
    uint64_t first, n, local;
};

static void check(uint32_t layout, uint32_t shards, uint32_t coordinate,
                  const struct part want[PARAMETERS])
{
    struct fsdp_env env;
    struct fsdp_sharded s;

    lay_out(&model, &env, &s, layout, shards, coordinate);
    for (uint32_t p = 0; p < PARAMETERS; p++) {
        assert_int_equal(s.parameter[p].n, want[p].n);
        if (want[p].n > 0) {
            assert_int_equal(s.parameter[p].first, want[p].first);
            assert_int_equal(s.parameter[p].local, want[p].local);
        }
    }
    release(&env, &s);
}

UNIT_TEST(parts_of_shards)
{
    static const struct part flat[][PARAMETERS] = {
        {{0, 4, 0}},
        {{4, 4, 0}},
        {{8, 2, 0}, {0, 2, 2}},
        {{0, 0, 0}, {2, 1, 0}, {0, 1, 1}}};
    static const struct part rows[][PARAMETERS] = {
        {{0, 4, 0}, {0, 1, 4}, {0, 1, 5}},
        {{4, 4, 0}, {1, 1, 4}},
        {{8, 2, 0}, {2, 1, 4}},
        {{0, 0, 0}}};
    static const struct part all[PARAMETERS] = {
        {0, 10, 0}, {0, 3, 10}, {0, 1, 13}};

    for (uint32_t k = 0; k < SHARDS; k++) {
        check(FSDP_LAYOUT_FLAT, SHARDS, k, flat[k]);
        check(FSDP_LAYOUT_PER_PARAMETER, SHARDS, k, rows[k]);
    }
    check(FSDP_LAYOUT_FLAT, 1, 0, all);
    check(FSDP_LAYOUT_PER_PARAMETER, 1, 0, all);
}

struct trainable {
    uint64_t n_state;
    struct {
        uint64_t n, grad, state;
    } part[PARAMETERS];
};

static void check_trainable(uint32_t layout, uint32_t coordinate,
                            const struct trainable *want)
{
    static const uint32_t b_is_frozen[PARAMETERS] = {0, FSDP_FROZEN, 0, 0};
    const struct fsdp_model partly = freeze(b_is_frozen);
    struct fsdp_env env;
    struct fsdp_sharded s;
    uint64_t stepped = 0;

    lay_out(&partly, &env, &s, layout, SHARDS, coordinate);
    assert_int_equal(s.unit[0].n_state, want->n_state);
    for (uint32_t p = 0; p < PARAMETERS; p++) {
        assert_int_equal(s.parameter[p].frozen, p == 1);
        if (want->part[p].n > 0) {
            assert_int_equal(s.parameter[p].n, want->part[p].n);
            assert_int_equal(s.parameter[p].grad_local, want->part[p].grad);
            assert_int_equal(s.parameter[p].state_local, want->part[p].state);
        }
    }
    for (uint32_t i = 0; i < s.n_spans; i++) {
        stepped += s.span[i].n;
    }
    assert_int_equal(stepped, want->part[0].n + want->part[2].n);
    release(&env, &s);
}

/* Flat, a gradient has room for what is frozen, and a state has not; per
 * parameter neither has. */
UNIT_TEST(states_have_no_holes)
{
    static const struct trainable flat[] = {{4, {{4, 0, 0}}},
                                            {4, {{4, 0, 0}}},
                                            {2, {{2, 0, 0}}},
                                            {1, {{0}, {0}, {1, 1, 0}}}};
    static const struct trainable rows[] = {{5, {{4, 0, 0}, {0}, {1, 4, 4}}},
                                            {5, {{4, 0, 0}}},
                                            {5, {{2, 0, 0}}},
                                            {5, {{0}}}};

    for (uint32_t k = 0; k < SHARDS; k++) {
        check_trainable(FSDP_LAYOUT_FLAT, k, &flat[k]);
        check_trainable(FSDP_LAYOUT_PER_PARAMETER, k, &rows[k]);
    }
}

UNIT_TEST(sizes_of_units)
{
    struct fsdp_env env;
    struct fsdp_sharded s;

    lay_out(&model, &env, &s, FSDP_LAYOUT_FLAT, SHARDS, 0);
    assert_false(s.packs);
    assert_int_equal(s.unit[0].chunk, 4);
    assert_int_equal(s.unit[0].whole, 16);
    release(&env, &s);
    lay_out(&model, &env, &s, FSDP_LAYOUT_PER_PARAMETER, SHARDS, 0);
    assert_true(s.packs);
    assert_int_equal(s.unit[0].chunk, 6);
    assert_int_equal(s.unit[0].padded, 24);
    assert_int_equal(s.unit[0].whole, 14);
    release(&env, &s);
}

UNIT_TEST(sizes_of_gradients)
{
    static const uint32_t some[PARAMETERS] = {0, FSDP_FROZEN, 0, 0};
    static const uint32_t all[PARAMETERS] = {FSDP_FROZEN, FSDP_FROZEN,
                                             FSDP_FROZEN, FSDP_FROZEN};
    static const struct {
        uint32_t layout;
        const uint32_t *flags;
        bool frozen;
        uint64_t chunk, grad_chunk, grad_padded, grad_whole;
    } want[] = {
        {FSDP_LAYOUT_FLAT, zeros, false, 4, 4, 16, 16},
        {FSDP_LAYOUT_FLAT, some, false, 4, 4, 16, 16},
        {FSDP_LAYOUT_FLAT, all, true, 4, 0, 0, 0},
        {FSDP_LAYOUT_PER_PARAMETER, zeros, false, 6, 6, 24, 14},
        {FSDP_LAYOUT_PER_PARAMETER, some, false, 6, 5, 20, 11},
        {FSDP_LAYOUT_PER_PARAMETER, all, true, 6, 0, 0, 0},
    };

    for (uint32_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        const struct fsdp_model of = freeze(want[i].flags);
        struct fsdp_env env;
        struct fsdp_sharded s;

        lay_out(&of, &env, &s, want[i].layout, SHARDS, 0);
        assert_int_equal(s.unit[0].frozen, want[i].frozen);
        assert_int_equal(s.extent[0].frozen, want[i].frozen);
        assert_int_equal(s.unit[0].chunk, want[i].chunk);
        assert_int_equal(s.unit[0].grad_chunk, want[i].grad_chunk);
        assert_int_equal(s.unit[0].grad_padded, want[i].grad_padded);
        assert_int_equal(s.unit[0].grad_whole, want[i].grad_whole);
        release(&env, &s);
    }
}

/* Through one place on the wire, twice: NaN where nothing is written. */
UNIT_TEST(what_is_packed_comes_back)
{
    static const float wire[] = {1, 2,  3, 4, 11, 14, 5, 6, 7, 8, 12, 0,
                                 9, 10, 0, 0, 13, 0,  0, 0, 0, 0, 0,  0};
    struct impl_life life = {.size = 24};
    struct fsdp_env env;
    struct fsdp_sharded s;
    float whole[14];
    float back[14];
    float sent[24];

    lay_out(&model, &env, &s, FSDP_LAYOUT_PER_PARAMETER, SHARDS, 0);
    memset(sent, 0xff, sizeof(sent));
    memset(back, 0xff, sizeof(back));
    for (int i = 0; i < 14; i++) {
        whole[i] = (float)(i + 1);
    }
    for (uint32_t p = 0; p < PARAMETERS; p++) {
        s.parameter[p].accumulated = true;
    }
    s.wire.p = sent;
    s.unit[0].grad = whole;
    assert_int_equal(impl_pack(&s, 0, &life), FSDP_OK);
    assert_ptr_equal(s.unit[0].packed, sent);
    assert_null(s.unit[0].grad);
    assert_memory_equal(sent, wire, sizeof(wire));
    s.unit[0].arrived = sent;
    s.unit[0].full_dtype = FSDP_DTYPE_F32;
    s.unit[0].arrived_life = &life;
    assert_int_equal(impl_unpack(&s, 0, back), FSDP_OK);
    assert_null(s.unit[0].arrived);
    assert_memory_equal(back, whole, sizeof(whole));
    release(&env, &s);
}

/* NaN where nothing is written, and in no place of what is frozen. */
UNIT_TEST(what_is_frozen_is_not_packed)
{
    static const uint32_t b_is_frozen[PARAMETERS] = {0, FSDP_FROZEN, 0, 0};
    static const float wire[] = {1, 2,  3, 4, 11, 5, 6, 7, 8, 0,
                                 9, 10, 0, 0, 0,  0, 0, 0, 0, 0};
    const struct fsdp_model partly = freeze(b_is_frozen);
    struct impl_life life = {.size = 20};
    struct fsdp_env env;
    struct fsdp_sharded s;
    float whole[11];
    float sent[20];

    lay_out(&partly, &env, &s, FSDP_LAYOUT_PER_PARAMETER, SHARDS, 0);
    memset(sent, 0xff, sizeof(sent));
    for (int i = 0; i < 11; i++) {
        whole[i] = (float)(i + 1);
    }
    for (uint32_t p = 0; p < PARAMETERS; p++) {
        s.parameter[p].accumulated = p != 1;
    }
    s.wire.p = sent;
    s.unit[0].grad = whole;
    assert_int_equal(impl_pack(&s, 0, &life), FSDP_OK);
    assert_memory_equal(sent, wire, sizeof(wire));
    release(&env, &s);
}

/* Flat, the places of what is frozen are +0 when a gradient is complete. */
UNIT_TEST(holes_are_zero)
{
    static const uint32_t b_is_frozen[PARAMETERS] = {0, FSDP_FROZEN, 0, 0};
    static const float want[] = {1, 2,  3, 4, 5, 6,  7,  8,
                                 9, 10, 0, 0, 0, 14, 15, 16};
    const struct fsdp_model partly = freeze(b_is_frozen);
    struct fsdp_env env;
    struct fsdp_sharded s;
    float whole[16];

    lay_out(&partly, &env, &s, FSDP_LAYOUT_FLAT, SHARDS, 0);
    for (int i = 0; i < 16; i++) {
        whole[i] = (float)(i + 1);
    }
    for (uint32_t p = 0; p < PARAMETERS; p++) {
        s.parameter[p].accumulated = p != 1;
    }
    s.unit[0].grad = whole;
    assert_int_equal(impl_complete(&s, 0), FSDP_OK);
    assert_memory_equal(whole, want, sizeof(want));
    release(&env, &s);
}

/* "d" is told to be another name of "b": it has room for a fresh gradient. */
UNIT_TEST(what_is_tied_takes_no_place)
{
    static const uint64_t alike[PARAMETERS][FSDP_MAX_DIMS] = {
        {5, 2}, {3}, {0}, {3}};
    static const uint32_t dims[PARAMETERS] = {2, 1, 0, 1};
    static const int32_t alias[PARAMETERS] = {-1, -1, -1, 1};
    struct fsdp_model tied = model;
    struct fsdp_env env;
    struct fsdp_sharded s;

    tied.parameter_shape = alike;
    tied.parameter_n_dims = dims;
    tied.parameter_alias = alias;
    lay_out(&tied, &env, &s, FSDP_LAYOUT_FLAT, 2, 1);
    assert_int_equal(s.unit[0].numel, 14);
    assert_true(s.unit[0].shares);
    assert_int_equal(s.of_unit.first[1], 3);
    assert_int_equal(s.of_module.first[1], 4);
    assert_int_equal(s.parameter[3].offset, s.parameter[1].offset);
    assert_int_equal(s.parameter[3].n, 0);
    assert_int_equal(s.module_words[0], 17);
    release(&env, &s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_shards),
        cmocka_unit_test(states_have_no_holes),
        cmocka_unit_test(sizes_of_units),
        cmocka_unit_test(sizes_of_gradients),
        cmocka_unit_test(what_is_packed_comes_back),
        cmocka_unit_test(what_is_frozen_is_not_packed),
        cmocka_unit_test(holes_are_zero),
        cmocka_unit_test(what_is_tied_takes_no_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
