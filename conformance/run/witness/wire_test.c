/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire_test.c - opens messages: 5 rows of 2, 3 elements, a scalar, and a
 * parameter without elements, over four shards. Element i of parameter p is 100
 * p + i + 1.
 */
#include "run/witness/wire.h"
#include "testing/unit_testing.h"

#include <string.h>

enum {
    PARAMETERS = 4,
    SHARDS = 4
};

static int initial(void *context, uint32_t p, uint64_t first, uint64_t n,
                   void *out)
{
    float *x = out;

    (void)context;
    for (uint64_t i = 0; i < n; i++) {
        x[i] = (float)(UINT64_C(100) * p + first + i + 1);
    }
    return FSDP_OK;
}

static const uint64_t shape[PARAMETERS][FSDP_MAX_DIMS] = {
    {5, 2}, {3}, {0}, {0, 4}};
static const uint32_t n_dims[PARAMETERS] = {2, 1, 0, 2};
static const uint32_t zeros[PARAMETERS] = {0, 0, 0, 0};
static const struct fsdp_model model = {.size = sizeof(model),
                                        .n_modules = 1,
                                        .n_parameters = PARAMETERS,
                                        .parameter_module = zeros,
                                        .parameter_shape = shape,
                                        .parameter_n_dims = n_dims,
                                        .initial = initial};
static const struct fsdp_units units = {
    .size = sizeof(units), .n_units = 1, .unit_of_module = zeros};

static int copy(void *self, struct fsdp_stream *stream, void *to,
                const void *from, uint64_t bytes)
{
    (void)self;
    (void)stream;
    memcpy(to, from, bytes);
    return FSDP_OK;
}

static int wait(void *self, struct fsdp_stream *later,
                struct fsdp_stream *earlier, uint64_t ticket, const char *edge)
{
    (void)self;
    (void)later;
    (void)earlier;
    (void)ticket;
    (void)edge;
    return FSDP_OK;
}

static const struct fsdp_device device = {
    .size = sizeof(device), .copy = copy, .wait = wait};

static const float flat[16] = {1, 2,  3,   4,   5,   6,   7, 8,
                               9, 10, 101, 102, 103, 201, 0, 0};
static const float rows[24] = {1, 2,  3, 4, 101, 201, 5, 6, 7, 8, 102, 0,
                               9, 10, 0, 0, 103, 0,   0, 0, 0, 0, 0,   0};

/* Checks what a look at these n elements finds. */
static void check(uint32_t layout, uint32_t kind, const float *whole,
                  uint64_t n, uint64_t dirty, uint64_t misplaced)
{
    const struct fsdp_collective c = {.size = sizeof(c),
                                      .kind = kind,
                                      .dim = FSDP_DIM_SHARD,
                                      .dtype = FSDP_DTYPE_F32,
                                      .n = n / SHARDS};
    struct wire w;

    assert_int_equal(wire_make(&model, &units, layout, SHARDS, true, &w),
                     FSDP_OK);
    assert_int_equal(wire_look(&w, &device, NULL, &c, whole), FSDP_OK);
    assert_int_equal(w.dirty, dirty);
    assert_int_equal(w.misplaced, misplaced);
    /* Only the first message has initial values for certain. */
    assert_int_equal(wire_look(&w, &device, NULL, &c, whole), FSDP_OK);
    assert_int_equal(w.dirty, 2 * dirty);
    assert_int_equal(w.misplaced, misplaced);
    wire_release(&w);
}

UNIT_TEST(what_is_right)
{
    check(FSDP_LAYOUT_FLAT, FSDP_ALL_GATHER, flat, 16, 0, 0);
    check(FSDP_LAYOUT_PER_PARAMETER, FSDP_ALL_GATHER, rows, 24, 0, 0);
}

UNIT_TEST(what_is_wrong)
{
    float x[24];

    memcpy(x, rows, sizeof(rows));
    x[14] = 1e-30f; /* behind the last row */
    x[11] = -0.0f;  /* in the place of a scalar */
    x[0] = 2.0f;
    x[1] = 1.0f;
    check(FSDP_LAYOUT_PER_PARAMETER, FSDP_ALL_GATHER, x, 24, 2, 2);
    check(FSDP_LAYOUT_PER_PARAMETER, FSDP_REDUCE_SCATTER, x, 24, 2, 0);
    memcpy(x, flat, sizeof(flat));
    x[15] = 1.0f;
    x[13] = 0.0f;
    check(FSDP_LAYOUT_FLAT, FSDP_ALL_GATHER, x, 16, 1, 1);
}

/* The 3 elements are frozen: what is gathered is as before. */
static const uint32_t flags[PARAMETERS] = {0, FSDP_FROZEN, 0, 0};

static void look_frozen(uint32_t layout, uint32_t kind, const float *whole,
                        uint64_t n, struct wire *w)
{
    const struct fsdp_collective c = {.size = sizeof(c),
                                      .kind = kind,
                                      .dim = FSDP_DIM_SHARD,
                                      .dtype = FSDP_DTYPE_F32,
                                      .n = n / SHARDS};
    struct fsdp_model freezes = model;

    freezes.parameter_flags = flags;
    assert_int_equal(wire_make(&freezes, &units, layout, SHARDS, true, w),
                     FSDP_OK);
    assert_int_equal(wire_look(w, &device, NULL, &c, whole), FSDP_OK);
    wire_release(&(struct wire){.values = w->values,
                                .gradients = w->gradients,
                                .gathered = w->gathered,
                                .calls = w->calls,
                                .aside = w->aside});
}

UNIT_TEST(what_is_frozen)
{
    static const float trained[20] = {1, 2,  3, 4, 201, 5, 6, 7, 8, 0,
                                      9, 10, 0, 0, 0,   0, 0, 0, 0, 0};
    float x[20];
    struct wire w;

    look_frozen(FSDP_LAYOUT_FLAT, FSDP_ALL_GATHER, flat, 16, &w);
    assert_int_equal(w.dirty + w.frozen + w.misplaced, 0);
    look_frozen(FSDP_LAYOUT_FLAT, FSDP_REDUCE_SCATTER, flat, 16, &w);
    assert_int_equal(w.dirty, 0);
    assert_int_equal(w.frozen, 3);
    memcpy(x, flat, sizeof(flat));
    memset(&x[10], 0, 3 * sizeof(x[10]));
    look_frozen(FSDP_LAYOUT_FLAT, FSDP_REDUCE_SCATTER, x, 16, &w);
    assert_int_equal(w.dirty + w.frozen, 0);
    x[11] = -0.0f;
    look_frozen(FSDP_LAYOUT_FLAT, FSDP_REDUCE_SCATTER, x, 16, &w);
    assert_int_equal(w.frozen, 1);

    look_frozen(FSDP_LAYOUT_PER_PARAMETER, FSDP_ALL_GATHER, rows, 24, &w);
    assert_int_equal(w.dirty + w.frozen + w.misplaced, 0);
    look_frozen(FSDP_LAYOUT_PER_PARAMETER, FSDP_REDUCE_SCATTER, trained, 20,
                &w);
    assert_int_equal(w.dirty + w.frozen, 0);
    memcpy(x, trained, sizeof(trained));
    x[9] = 1.0f; /* in the place of a scalar */
    look_frozen(FSDP_LAYOUT_PER_PARAMETER, FSDP_REDUCE_SCATTER, x, 20, &w);
    assert_int_equal(w.dirty, 1);
}

/* A message of another size is another fault, and is not looked into. */
UNIT_TEST(what_is_of_another_size)
{
    check(FSDP_LAYOUT_PER_PARAMETER, FSDP_ALL_GATHER, rows, 16, 0, 0);
    check(FSDP_LAYOUT_FLAT, FSDP_ALL_GATHER, rows, 24, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_right),
        cmocka_unit_test(what_is_wrong),
        cmocka_unit_test(what_is_frozen),
        cmocka_unit_test(what_is_of_another_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
