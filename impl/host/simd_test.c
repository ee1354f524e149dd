/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simd_test.c - the choice of a level: by name, by itself, and refusals that
 * say what was wrong.
 */
#include "simd.h"

#include <fsdp/status.h>
#include <stdlib.h>
#include <string.h>

#include "testing/unit_testing.h"

UNIT_TEST(test_by_name)
{
    for (unsigned int i = 0; i < SIMD_N_LEVELS; i++) {
        enum simd_level level = SIMD_N_LEVELS;
        const char *name = simd_name((enum simd_level)i);
        char message[128] = "";
        int status = simd_choose(name, &level, message, sizeof(message));

        if (simd_has((enum simd_level)i)) {
            assert_int_equal(status, FSDP_OK);
            assert_int_equal(level, i);
        } else {
            assert_int_equal(status, FSDP_ERR_UNSUPPORTED);
            assert_non_null(strstr(message, name));
        }
    }
    assert_true(simd_has(SIMD_PORTABLE));
}

UNIT_TEST(test_best)
{
    enum simd_level by_default = SIMD_N_LEVELS;
    enum simd_level by_empty = SIMD_N_LEVELS;
    char message[128];

    assert_int_equal(simd_choose(NULL, &by_default, message, sizeof(message)),
                     FSDP_OK);
    assert_int_equal(simd_choose("", &by_empty, message, sizeof(message)),
                     FSDP_OK);
    assert_int_equal(by_default, by_empty);
    for (unsigned int i = by_default + 1; i < SIMD_N_LEVELS; i++) {
        assert_false(simd_has((enum simd_level)i));
    }
}

UNIT_TEST(test_unknown)
{
    enum simd_level level = SIMD_PORTABLE;
    char message[128] = "";

    assert_int_equal(simd_choose("sse9", &level, message, sizeof(message)),
                     FSDP_ERR_INVALID);
    assert_non_null(strstr(message, "sse9"));
    assert_int_equal(simd_choose("AVX2", &level, message, sizeof(message)),
                     FSDP_ERR_INVALID);
}

UNIT_TEST(test_environment)
{
    enum simd_level level = SIMD_N_LEVELS;
    char message[128] = "";

    assert_int_equal(setenv("FSDP_SIMD", "portable", 1), 0);
    assert_int_equal(simd_choose_environment(&level, message, sizeof(message)),
                     FSDP_OK);
    assert_int_equal(level, SIMD_PORTABLE);
    assert_int_equal(setenv("FSDP_SIMD", "fastest", 1), 0);
    assert_int_equal(simd_choose_environment(&level, message, sizeof(message)),
                     FSDP_ERR_INVALID);
    assert_non_null(strstr(message, "fastest"));
    assert_int_equal(unsetenv("FSDP_SIMD"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_name),
        cmocka_unit_test(test_best),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_environment),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
