/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors_write_test.c - what the writer refuses, and that a write which
 * fails leaves the old file and nothing else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "safetensors_testing.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

static const float f32[3] = {0.5F, -1.0F, 2.0F};
static const uint8_t u8[64] = {1, 127, 255};

/* More than the limit that one test sets, in its second tensor. */
static const struct safetensors_tensor tensors[] = {
    TENSOR("w", "F32", 1, SHAPE(3), f32, sizeof(f32)),
    TENSOR("mask", "U8", 2, SHAPE(8, 8), u8, sizeof(u8))};

enum {
    N_TENSORS = sizeof(tensors) / sizeof(tensors[0])
};

static void check_invalid(const struct scratch *s,
                          const struct safetensors_tensor *t, size_t n,
                          const struct safetensors_meta *meta, size_t n_meta,
                          const char *complaint)
{
    char why[512] = "";

    assert_int_equal(
        safetensors_write(s->path, t, n, meta, n_meta, false, why, sizeof(why)),
        FSDP_ERR_INVALID);
    if (!strstr(why, complaint)) {
        fail_msg("\"%s\" does not say \"%s\"", why, complaint);
    }
    assert_int_equal(access(s->partial, F_OK), -1);
}

static void the_writer_refuses_what_makes_no_file(void **state)
{
    static const struct {
        struct safetensors_tensor tensor;
        const char *complaint;
    } bad[] = {
        {TENSOR(NULL, "F32", 1, SHAPE(1), f32, 4), "NULL"},
        {TENSOR("a", NULL, 1, SHAPE(1), f32, 4), "NULL"},
        {TENSOR("a", "F32", 1, SHAPE(1), NULL, 4), "the data is NULL"},
        {TENSOR("a", "f32", 1, SHAPE(1), f32, 4), "unknown dtype \"f32\""},
        {TENSOR("a", "F32", 9, SHAPE(1), f32, 4), "9 dimensions"},
        {TENSOR("a", "F32", 1, SHAPE(2), f32, 4), "4 bytes, dtype and shape "
                                                  "come to 8"},
        {TENSOR("a", "F32", 0, SHAPE(0), f32, 0), "come to 4"},
        {TENSOR("a", "F4", 1, SHAPE(1), f32, 1), "whole bytes"},
        {TENSOR("a", "U8", 2, SHAPE(1LL << 32, 1LL << 32), f32, 0),
         "overflows"},
        {TENSOR("a", "U8", 2, SHAPE(UINT64_MAX, 0), f32, 0),
         "shape[0] is too large"},
        {TENSOR("\xff", "U8", 1, SHAPE(1), f32, 1), "\"?\" is not UTF-8"},
        {TENSOR("__metadata__", "U8", 1, SHAPE(1), f32, 1), "reserved"},
    };
    const struct safetensors_tensor twice[] = {
        TENSOR("a", "F32", 1, SHAPE(1), f32, 4),
        TENSOR("b", "U16", 1, SHAPE(1), f32, 2),
        TENSOR("a", "U8", 1, SHAPE(1), f32, 1)};
    const struct safetensors_meta meta_twice[] = {
        {"k", "1"}, {"a", "2"}, {"k", "1"}};
    const struct safetensors_meta no_key = {NULL, "1"};
    const struct safetensors_meta no_value = {"k", NULL};
    const struct scratch *const s = *state;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        check_invalid(s, &bad[i].tensor, 1, NULL, 0, bad[i].complaint);
    }
    check_invalid(s, twice, 3, NULL, 0, "tensor \"a\": is given twice");
    check_invalid(s, NULL, 0, meta_twice, 3, "metadata \"k\" is given twice");
    check_invalid(s, NULL, 0, &no_key, 1, "NULL");
    check_invalid(s, NULL, 0, &no_value, 1, "NULL");
    assert_int_equal(access(s->path, F_OK), -1);
}

static void the_writer_refuses_metadata_that_is_not_utf8(void **state)
{
    /* Overlong, cut, stray, a surrogate, past U+10FFFF. */
    static const char *const not_utf8[] = {"\xc0\xaf",
                                           "\xe0\x9f\xbf",
                                           "\xf0\x8f\xbf\xbf",
                                           "\xc3",
                                           "\xe2\x82",
                                           "\xf0\x9f\x98",
                                           "\xc3 ",
                                           "\x80",
                                           "a\xff",
                                           "\xf8\x88\x80\x80\x80",
                                           "\xed\xa0\x80",
                                           "\xed\xbf\xbf",
                                           "\xf4\x90\x80\x80"};
    const struct scratch *const s = *state;

    for (size_t i = 0; i < sizeof(not_utf8) / sizeof(not_utf8[0]); i++) {
        const struct safetensors_meta key = {not_utf8[i], "1"};
        const struct safetensors_meta value = {"k", not_utf8[i]};

        check_invalid(s, NULL, 0, &key, 1, "is not UTF-8");
        check_invalid(s, NULL, 0, &value, 1, "is not UTF-8");
    }
    assert_int_equal(access(s->path, F_OK), -1);
}

/* Eight tensors of 2^60 bytes each; no data is read before the sum is known. */
static void the_writer_refuses_a_sum_past_63_bits(void **state)
{
    const struct safetensors_tensor t[] = {
        TENSOR("a", "I8", 1, SHAPE(1ULL << 60), u8, 1ULL << 60),
        TENSOR("b", "I8", 1, SHAPE(1ULL << 60), u8, 1ULL << 60),
        TENSOR("c", "I8", 1, SHAPE(1ULL << 60), u8, 1ULL << 60),
        TENSOR("d", "I8", 1, SHAPE(1ULL << 60), u8, 1ULL << 60),
        TENSOR("e", "I8", 1, SHAPE(1ULL << 60), u8, 1ULL << 60),
        TENSOR("f", "I8", 1, SHAPE(1ULL << 60), u8, 1ULL << 60),
        TENSOR("g", "I8", 1, SHAPE(1ULL << 60), u8, 1ULL << 60),
        TENSOR("h", "I8", 1, SHAPE(1ULL << 60), u8, 1ULL << 60)};

    check_invalid(*state, t, 8, NULL, 0, "tensor \"h\": ends past 2^63");
}

/* The first and the last character of each length, around the surrogates too.
 */
static void all_of_utf8_is_written(void **state)
{
    static const struct safetensors_meta edges = {
        "\x01\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf",
        "\xee\x80\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"};
    const struct scratch *const s = *state;
    struct safetensors_file *file = NULL;

    write_ok(s->path, NULL, 0, &edges, 1, false);
    assert_int_equal(safetensors_open(s->path, &file, NULL, 0), FSDP_OK);
    assert_string_equal(safetensors_meta(file, edges.key), edges.value);
    safetensors_close(file);
}

/* A write that fails midway leaves the old file and no .partial. */
static void a_failed_write_leaves_the_old_file(void **state)
{
    const struct scratch *const s = *state;
    struct rlimit old;
    struct rlimit low;
    char why[512] = "";
    int status;

    write_ok(s->path, tensors, 1, NULL, 0, false);
    write_ok(s->other, tensors, 1, NULL, 0, false);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    low = old;
    low.rlim_cur = 150;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    status = safetensors_write(s->path, tensors, N_TENSORS, NULL, 0, true, why,
                               sizeof(why));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_true(signal(SIGXFSZ, SIG_DFL) != SIG_ERR);
    assert_int_equal(status, FSDP_ERR_IO);
    assert_non_null(strstr(why, "cannot write"));
    assert_int_equal(access(s->partial, F_OK), -1);
    assert_same_files(s->path, s->other);
}

static void refusals_of_the_system_are_io_errors(void **state)
{
    const struct scratch *const s = *state;
    struct safetensors_file *file = (struct safetensors_file *)&file;
    char inside[256];
    char why[512] = "";

    assert_int_equal(safetensors_open(s->path, &file, why, sizeof(why)),
                     FSDP_ERR_IO);
    assert_null(file);
    assert_non_null(strstr(why, s->path));
    assert_int_equal(safetensors_open(s->directory, &file, why, sizeof(why)),
                     FSDP_ERR_IO);
    assert_non_null(strstr(why, "not a regular file"));
    assert_int_equal(mkfifo(s->path, 0600), 0);
    assert_int_equal(safetensors_open(s->path, &file, why, sizeof(why)),
                     FSDP_ERR_IO);
    assert_non_null(strstr(why, "not a regular file"));
    snprintf(inside, sizeof(inside), "%s/missing/a", s->directory);
    assert_int_equal(
        safetensors_write(inside, tensors, 1, NULL, 0, true, why, sizeof(why)),
        FSDP_ERR_IO);
    /* A directory cannot be renamed over. */
    assert_int_equal(safetensors_write(s->directory, tensors, 1, NULL, 0, true,
                                       why, sizeof(why)),
                     FSDP_ERR_IO);
    assert_non_null(strstr(why, "cannot rename"));
    snprintf(inside, sizeof(inside), "%s.partial", s->directory);
    assert_int_equal(access(inside, F_OK), -1);
}

static void a_stale_partial_is_replaced(void **state)
{
    const struct scratch *const s = *state;

    write_ok(s->other, tensors, N_TENSORS, NULL, 0, false);
    write_ok(s->partial, tensors, N_TENSORS, NULL, 0, false);
    write_ok(s->path, tensors, 1, NULL, 0, true);
    assert_int_equal(access(s->partial, F_OK), -1);
    write_ok(s->other, tensors, 1, NULL, 0, false);
    assert_same_files(s->path, s->other);
}

/* A .partial that is a link leads out of the directory: it is not followed. */
static void a_partial_that_is_a_link_is_refused(void **state)
{
    const struct scratch *const s = *state;
    struct stat about;
    char why[512] = "";

    assert_int_equal(symlink(s->other, s->partial), 0);
    assert_int_equal(
        safetensors_write(s->path, tensors, 1, NULL, 0, true, why, sizeof(why)),
        FSDP_ERR_IO);
    assert_int_equal(stat(s->other, &about), -1);
    assert_int_equal(unlink(s->partial), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_writer_refuses_what_makes_no_file),
        TEST(the_writer_refuses_metadata_that_is_not_utf8),
        TEST(the_writer_refuses_a_sum_past_63_bits),
        TEST(all_of_utf8_is_written),
        TEST(a_failed_write_leaves_the_old_file),
        TEST(refusals_of_the_system_are_io_errors),
        TEST(a_stale_partial_is_replaced),
        TEST(a_partial_that_is_a_link_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
