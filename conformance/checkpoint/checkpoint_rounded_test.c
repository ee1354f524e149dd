/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_rounded_test.c - a large parameter that is saved in 16 bits, given
 * in pieces of any length: each element is rounded where it belongs, and comes
 * back widened, from any place.
 */
#include "checkpoint/checkpoint.h"
#include "checkpoint/folder_erase.h"
#include "testing/unit_testing.h"

#include <fsdp/arith/bits.h>
#include <fsdp/arith/cast.h>
#include <stdlib.h>
#include <string.h>

enum {
    N = 20011 /* elements: several times what is rounded at once */
};

static float given[N], loaded[N];

static int alone(void *self, const void *in, uint64_t bytes, void *out)
{
    (void)self;
    memcpy(out, in, bytes);
    return FSDP_OK;
}

/* Element i: ordinary numbers, ties of either format, numbers that overflow,
 * subnormals, NaN. */
static float element(uint32_t i)
{
    static const uint32_t special[] = {
        0x3f808000, 0x3f818000, 0x3f801000, 0x3f803000, 0x477ff000, 0x7f7fffff,
        0x00000001, 0x80008000, 0x33000000, 0x7f800000, 0x7fc12345, 0x80000000};
    const uint32_t n = sizeof(special) / sizeof(special[0]);

    return i % 3 == 0 ? fsdp_f32_from_bits(special[i / 3 % n])
                      : (float)i * 0.37f - 1000.0f;
}

/* Saves the elements in pieces of `step`. */
static void save(const char *directory, uint32_t dtype, uint32_t step)
{
    struct fsdp_error error = {0};
    const struct fsdp_env env = {
        .size = sizeof(env), .world = 1, .exchange = alone, .error = &error};
    const struct fsdp_save how = {.size = sizeof(how),
                                  .form = FSDP_SAVE_FULL,
                                  .directory = directory,
                                  .dtype = dtype};
    const uint64_t shape[] = {N};
    struct checkpoint_table table = {NULL, 0};
    struct checkpoint_saving *saving = NULL;
    struct checkpoint_request request = {.env = &env,
                                         .save = &how,
                                         .world = 1,
                                         .shards = 1,
                                         .replicas = 1,
                                         .layout = "flat",
                                         .optimizer = "sgd",
                                         .table = &table,
                                         .state = {1, {1.0f, 1.0f}}};
    uint32_t w;

    assert_int_equal(checkpoint_table_add(&table, "w", 1, shape, false, &w),
                     FSDP_OK);
    if (checkpoint_begin(&request, &saving) != FSDP_OK) {
        fail_msg("%s", error.message);
    }
    for (uint32_t first = 0; first < N; first += step) {
        assert_int_equal(checkpoint_put(saving, w, first,
                                        N - first < step ? N - first : step,
                                        given + first),
                         FSDP_OK);
    }
    checkpoint_write(saving);
    if (checkpoint_finish(&env, saving) != FSDP_OK) {
        fail_msg("%s", error.message);
    }
    checkpoint_table_release(&table);
}

static void load(const char *directory, uint64_t first, uint64_t n)
{
    char why[CHECKPOINT_WHY_BYTES] = "";
    struct checkpoint *c;

    memset(loaded, 0xa5, sizeof(loaded));
    if (checkpoint_open(directory, &c, why) != FSDP_OK ||
        checkpoint_read_f32(c, "w", first, n, loaded, why) != FSDP_OK) {
        fail_msg("%s", why);
    }
    checkpoint_close(c);
}

static void expect(uint32_t dtype, uint64_t first, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        const uint32_t want =
            fsdp_f32_bits(fsdp_round(dtype, given[first + i]));

        if (fsdp_f32_bits(loaded[i]) != want) {
            fail_msg("dtype %u, element %llu: 0x%08x, 0x%08x was expected",
                     dtype, (unsigned long long)(first + i),
                     fsdp_f32_bits(loaded[i]), want);
        }
    }
}

UNIT_TEST(rounded_in_place)
{
    static const uint32_t dtypes[] = {FSDP_DTYPE_BF16, FSDP_DTYPE_F16};
    static const uint32_t steps[] = {N, 4096, 4097, 777};

    for (uint32_t i = 0; i < N; i++) {
        given[i] = element(i);
    }
    for (uint32_t i = 0; i < 8; i++) {
        const uint32_t dtype = dtypes[i / 4];
        char directory[] = "/tmp/checkpoint_rounded_test.XXXXXX";

        assert_non_null(mkdtemp(directory));
        save(directory, dtype, steps[i % 4]);
        load(directory, 0, N);
        expect(dtype, 0, N);
        load(directory, 4095, 4099);
        expect(dtype, 4095, 4099);
        load(directory, N - 1, 1);
        expect(dtype, N - 1, 1);
        folder_erase(directory);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rounded_in_place)};

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
