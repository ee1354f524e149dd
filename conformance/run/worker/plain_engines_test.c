/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plain_engines_test.c - engines that claim float32 alone refuse every other
 * dtype of the options and of a unit, and accept what a driver that was built
 * against earlier headers gives, whatever lies behind its structs. And what
 * ranks compare in engines that use kit.h.
 */
#include "run/worker/engine_load.h"
#include "testing/unit_testing.h"

#include <fsdp/kit.h>

#include <string.h>

static const char *const engines[] = {"impl", "ref", "unsharded", FIRST_ENGINE,
                                      GROWN_ENGINE};

enum {
    N_CLAIM_BF16 = 3, /* of engines[], the first */
    N_ENGINES = sizeof(engines) / sizeof(engines[0]),
    /* Sizes of structs as they ended before grad_dtype. */
    OLD_OPTIONS = (offsetof(struct fsdp_options, grad_dtype) + 7) / 8 * 8,
    OLD_UNITS = offsetof(struct fsdp_units, grad_dtype)
};

static int exchange(void *self, const void *mine, uint64_t bytes, void *all)
{
    (void)self;
    memcpy(all, mine, bytes);
    return FSDP_OK;
}

/* One rank, and one module with a parameter of eight elements. */
static int initial(void *context, uint32_t parameter, uint64_t first,
                   uint64_t n, void *out)
{
    float *const to = out;

    (void)context;
    (void)parameter;
    for (uint64_t i = 0; i < n; i++) {
        to[i] = (float)(first + i);
    }
    return FSDP_OK;
}

/* Returns the engine's answer to these options and units. */
static int offer(const char *name, const struct fsdp_options *options,
                 const struct fsdp_units *units)
{
    static const char *const modules[] = {"m"};
    static const char *const parameters[] = {"m.w"};
    static const int32_t none[] = {-1};
    static const uint32_t zero[] = {0};
    static const uint32_t one[] = {1, 1};
    static const uint32_t f32[] = {FSDP_DTYPE_F32};
    static const uint64_t shape[][FSDP_MAX_DIMS] = {{8}};
    static const char *const dims[] = {"replicate", "shard"};
    static const struct fsdp_mesh mesh = {sizeof(mesh), 2, dims, one};
    const struct fsdp_model model = {.size = sizeof(model),
                                     .n_modules = 1,
                                     .module_name = modules,
                                     .module_parent = none,
                                     .n_parameters = 1,
                                     .parameter_name = parameters,
                                     .parameter_module = zero,
                                     .parameter_n_dims = one,
                                     .parameter_shape = shape,
                                     .parameter_dtype = f32,
                                     .parameter_flags = zero,
                                     .parameter_alias = none,
                                     .initial = initial};
    struct fsdp_error error = {.status = FSDP_OK};
    struct fsdp_env env = {.size = sizeof(env),
                           .world = 1,
                           .mesh = &mesh,
                           .error = &error,
                           .exchange = exchange};
    const struct fsdp_engine *ref = NULL;
    const struct fsdp_engine *engine = NULL;
    struct fsdp_sharded *s = NULL;
    int status;

    assert_int_equal(engine_load("ref", &ref, &error), FSDP_OK);
    assert_int_equal(engine_load(name, &engine, &error), FSDP_OK);
    assert_int_equal(ref->open(&env), FSDP_OK); /* a device of plain loops */
    status = engine->shard(&env, &model, units, options, &s);
    engine->destroy(s);
    ref->close(&env);
    return status;
}

static const uint32_t unit_of_module[] = {0};
static const struct fsdp_options plain = {.size = sizeof(plain),
                                          .reshard_after_forward = 1};
static const struct fsdp_units whole = {
    .size = sizeof(whole), .n_units = 1, .unit_of_module = unit_of_module};

/* The dtypes of engines that claim bf16; sums of float32 or of the wire's
 * dtype. */
UNIT_TEST(dtypes_that_are_claimed)
{
    static const uint32_t bf16[] = {FSDP_DTYPE_BF16};
    struct fsdp_units u = whole;
    struct fsdp_options o = plain;

    u.reduce_dtype = bf16;
    o.param_dtype = FSDP_DTYPE_F16;
    o.grad_dtype = o.accumulate_dtype = FSDP_DTYPE_BF16;
    for (size_t e = 0; e < N_CLAIM_BF16; e++) {
        assert_int_equal(offer(engines[e], &o, &u), FSDP_OK);
        o.sum_dtype = FSDP_DTYPE_F32;
        assert_int_equal(offer(engines[e], &o, &u), FSDP_OK);
        o.sum_dtype = FSDP_DTYPE_F16; /* not as wide as a wire of bf16 */
        assert_int_equal(offer(engines[e], &o, &u), FSDP_ERR_INVALID);
        o.sum_dtype = FSDP_DTYPE_NONE;
        o.output_dtype = FSDP_DTYPE_BF16; /* is the model's */
        assert_int_equal(offer(engines[e], &o, &u), FSDP_ERR_UNSUPPORTED);
        o.output_dtype = FSDP_DTYPE_NONE;
        o.grad_dtype = FSDP_DTYPE_I32;
        assert_int_equal(offer(engines[e], &o, &u), FSDP_ERR_UNSUPPORTED);
        o.grad_dtype = FSDP_DTYPE_BF16;
    }
}

UNIT_TEST(other_dtypes_are_refused)
{
    static const uint32_t bf16[] = {FSDP_DTYPE_BF16};
    static const size_t of_options[] = {
        offsetof(struct fsdp_options, param_dtype),
        offsetof(struct fsdp_options, reduce_dtype),
        offsetof(struct fsdp_options, output_dtype),
        offsetof(struct fsdp_options, buffer_dtype),
        offsetof(struct fsdp_options, grad_dtype),
        offsetof(struct fsdp_options, accumulate_dtype),
        offsetof(struct fsdp_options, sum_dtype)};
    static const size_t of_units[] = {
        offsetof(struct fsdp_units, param_dtype),
        offsetof(struct fsdp_units, reduce_dtype),
        offsetof(struct fsdp_units, output_dtype),
        offsetof(struct fsdp_units, buffer_dtype),
        offsetof(struct fsdp_units, grad_dtype),
        offsetof(struct fsdp_units, accumulate_dtype),
        offsetof(struct fsdp_units, sum_dtype)};
    const uint32_t *const own = bf16;

    for (size_t e = N_CLAIM_BF16; e < N_ENGINES; e++) {
        assert_int_equal(offer(engines[e], &plain, &whole), FSDP_OK);
        for (size_t i = 0; i < sizeof(of_options) / sizeof(*of_options); i++) {
            struct fsdp_options o = plain;

            memcpy((char *)&o + of_options[i], bf16, sizeof(*bf16));
            if (offer(engines[e], &o, &whole) != FSDP_ERR_UNSUPPORTED) {
                fail_msg("%s takes the options' dtype %zu", engines[e], i);
            }
        }
        for (size_t i = 0; i < sizeof(of_units) / sizeof(*of_units); i++) {
            struct fsdp_units u = whole;

            memcpy((char *)&u + of_units[i], &own, sizeof(own));
            if (offer(engines[e], &plain, &u) != FSDP_ERR_UNSUPPORTED) {
                fail_msg("%s takes a unit's dtype %zu", engines[e], i);
            }
        }
    }
}

UNIT_TEST(what_is_behind_a_struct_is_not_read)
{
    struct fsdp_options o = plain;
    struct fsdp_units u = whole;

    memset((char *)&o + offsetof(struct fsdp_options, grad_dtype), 0x55,
           sizeof(o) - offsetof(struct fsdp_options, grad_dtype));
    memset((char *)&u + OLD_UNITS, 0x55, sizeof(u) - OLD_UNITS);
    o.size = OLD_OPTIONS;
    u.size = OLD_UNITS;
    for (size_t e = 0; e < N_ENGINES; e++) {
        if (offer(engines[e], &o, &u) != FSDP_OK) {
            fail_msg("%s refuses an earlier driver's structs", engines[e]);
        }
    }
}

static int keep(void *self, const void *mine, uint64_t bytes, void *all)
{
    memcpy(self, mine, bytes);
    memcpy(all, mine, bytes);
    return FSDP_OK;
}

/* The value that fsdp_agree sends to the other ranks. */
static uint64_t told(const struct fsdp_options *o, const struct fsdp_units *u)
{
    const struct fsdp_model model = {.n_modules = 1};
    uint64_t out = 0;
    const struct fsdp_env env = {
        .world = 1, .exchange = keep, .exchange_self = &out};

    assert_int_equal(fsdp_agree(&env, &model, u, o), FSDP_OK);
    return out;
}

UNIT_TEST(what_ranks_agree_on)
{
    static const uint32_t zero[] = {0};
    static const uint32_t two[] = {2};
    static const float half[] = {0.5f};
    struct fsdp_options o;
    struct fsdp_units u = whole;
    const uint64_t same = told(&plain, &whole);

    memset(&o, 0x55, sizeof(o)); /* padding, and behind an earlier struct */
    o.layout = o.fold = o.keep_root = o.optimizer = o.n_groups = 0;
    o.reshard_after_forward = 1;
    o.momentum = o.beta1 = o.beta2 = o.eps = 0.0f;
    memset((char *)&o + offsetof(struct fsdp_options, divide_factor), 0,
           offsetof(struct fsdp_options, grad_dtype) -
               offsetof(struct fsdp_options, divide_factor));
    o.size = OLD_OPTIONS;
    assert_true(told(&o, &whole) == same);
    o.prefetch_forward = 1;
    assert_true(told(&o, &whole) != same);
    u.grad_dtype = zero; /* as if there were none */
    assert_true(told(&plain, &u) == same);
    u.grad_dtype = two;
    assert_true(told(&plain, &u) != same);
    u.grad_dtype = NULL;
    u.divide_factor = half;
    assert_true(told(&plain, &u) != same);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dtypes_that_are_claimed),
        cmocka_unit_test(other_dtypes_are_refused),
        cmocka_unit_test(what_is_behind_a_struct_is_not_read),
        cmocka_unit_test(what_ranks_agree_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
