/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors_refused_test.c - every way in which a file can depart from the
 * safetensors format, and what the reader says of it.  Each case is also a
 * file in fixtures/safetensors/refused, for readers other than this one.
 *
 * FIXTURES_DIR is the path of fixtures/.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "safetensors.h"

#include <dirent.h>
#include <fsdp/status.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REFUSED_DIR FIXTURES_DIR "/safetensors/refused"

/* As the length of a header: its true one. */
#define TRUE_LENGTH UINT64_MAX

/* An entry of one U8 element, so that a case can spoil another one. */
#define GOOD "\"good\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}"

#define ENTRY(dtype, shape, offsets)               \
    "{\"a\":{\"dtype\":" dtype ",\"shape\":" shape \
    ",\"data_offsets\":" offsets "}}"

struct refused {
    const char *name;      /* also of the file */
    uint64_t length;       /* what the file gives as the header's length */
    const char *header;    /* NULL: the file ends within the length */
    size_t data_bytes;     /* how many zeroes follow */
    const char *complaint; /* part of what the reader says */
};

static const struct refused refused[] = {
    {"empty-file", 0, NULL, 0, "too few"},
    {"length-cut", 0, NULL, 7, "too few"},
    {"length-zero", 0, "", 0, "a header of 0 bytes, 2 to 100000000 expected"},
    {"length-one", 1, "{}", 0, "a header of 1 bytes"},
    {"length-over-limit", 100000001, "{}", 0,
     "a header of 100000001 bytes, 2 to"},
    {"length-all-ones", UINT64_MAX - 1, "{}", 0,
     "18446744073709551614 bytes, 2 to"},
    {"length-past-end", 3, "{}", 0, "past the end: 2 bytes follow"},
    {"header-cut", 100000000, "{}", 0, "past the end"},
    {"leading-space", TRUE_LENGTH, " {}", 0, "byte 0x20, '{' expected"},
    {"byte-order-mark", TRUE_LENGTH, "\xef\xbb\xbf{}", 0, "byte 0xef"},
    {"array", TRUE_LENGTH, "[]", 0, "byte 0x5b"},
    {"not-json", TRUE_LENGTH, "{good}", 0, "not JSON"},
    {"unclosed", TRUE_LENGTH, "{" GOOD, 1, "not JSON"},
    {"trailing-comma", TRUE_LENGTH, "{" GOOD ",}", 1, "not JSON"},
    {"not-utf-8", TRUE_LENGTH,
     "{\"\xff\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
     "not JSON as the format has it: unable to decode byte 0xff"},
    {"overlong-utf-8", TRUE_LENGTH, "{\"__metadata__\":{\"a\":\"\xc0\xaf\"}}",
     0, "unable to decode byte 0xc0"},
    {"lone-surrogate", TRUE_LENGTH, "{\"__metadata__\":{\"a\":\"\\ud800\"}}", 0,
     "not JSON"},
    {"nul-in-name", TRUE_LENGTH,
     "{\"a\\u0000b\":{\"dtype\":\"U8\",\"shape\":[1],"
     "\"data_offsets\":[0,1]}}",
     1, "not JSON"},
    {"junk-after-json", TRUE_LENGTH, "{" GOOD "} {}", 1,
     "byte 0x7b at 57 after the header's JSON"},
    {"newline-after-json", TRUE_LENGTH, "{" GOOD "} \n", 1, "byte 0x0a at 57"},
    {"duplicate-tensor", TRUE_LENGTH, "{" GOOD "," GOOD "}", 1,
     "duplicate object key"},
    {"duplicate-tensor-escaped", TRUE_LENGTH,
     "{" GOOD ",\"g\\u006fod\":{\"dtype\":\"U8\",\"shape\":[0],"
     "\"data_offsets\":[1,1]}}",
     1, "duplicate object key"},
    {"duplicate-field", TRUE_LENGTH,
     "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"shape\":[1],"
     "\"data_offsets\":[0,1]}}",
     1, "duplicate object key"},
    {"duplicate-metadata-key", TRUE_LENGTH,
     "{\"__metadata__\":{\"k\":\"1\",\"k\":\"1\"}}", 0, "duplicate object key"},
    {"duplicate-metadata", TRUE_LENGTH,
     "{\"__metadata__\":{},\"__metadata__\":{}}", 0, "duplicate object key"},
    {"metadata-not-object", TRUE_LENGTH, "{\"__metadata__\":\"x\"}", 0,
     "__metadata__ is not an object"},
    {"metadata-null", TRUE_LENGTH, "{\"__metadata__\":null}", 0,
     "__metadata__ is not an object"},
    {"metadata-number", TRUE_LENGTH, "{\"__metadata__\":{\"step\":1}}", 0,
     "the value of \"step\" is not a string"},
    {"metadata-nested", TRUE_LENGTH, "{\"__metadata__\":{\"a\":{}}}", 0,
     "the value of \"a\" is not a string"},
    {"entry-not-object", TRUE_LENGTH, "{\"a\":[]}", 0,
     "tensor \"a\": its entry is not an object"},
    {"unknown-field", TRUE_LENGTH,
     "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],"
     "\"device\":\"cpu\"}}",
     1, "tensor \"a\": unknown field \"device\""},
    {"no-dtype", TRUE_LENGTH, "{\"a\":{\"shape\":[1],\"data_offsets\":[0,1]}}",
     1, "dtype is missing"},
    {"no-shape", TRUE_LENGTH,
     "{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1,
     "shape is missing"},
    {"no-offsets", TRUE_LENGTH, "{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1,
     "data_offsets is missing"},
    {"dtype-unknown", TRUE_LENGTH, ENTRY("\"F128\"", "[1]", "[0,16]"), 16,
     "unknown dtype \"F128\""},
    {"dtype-lower-case", TRUE_LENGTH, ENTRY("\"f32\"", "[1]", "[0,4]"), 4,
     "unknown dtype \"f32\""},
    {"dtype-number", TRUE_LENGTH, ENTRY("32", "[1]", "[0,4]"), 4,
     "dtype is missing or not a string"},
    {"shape-number", TRUE_LENGTH, ENTRY("\"U8\"", "1", "[0,1]"), 1,
     "shape is missing or not an array"},
    {"shape-negative", TRUE_LENGTH, ENTRY("\"U8\"", "[1,-1]", "[0,1]"), 1,
     "shape[1] is not an integer of at least 0"},
    {"shape-minus-zero", TRUE_LENGTH, ENTRY("\"U8\"", "[-0]", "[0,0]"), 0,
     "the number -0"},
    {"shape-real", TRUE_LENGTH, ENTRY("\"U8\"", "[1.0]", "[0,1]"), 1,
     "shape[0] is not an integer"},
    {"shape-exponent", TRUE_LENGTH, ENTRY("\"U8\"", "[1e0]", "[0,1]"), 1,
     "shape[0] is not an integer"},
    {"shape-string", TRUE_LENGTH, ENTRY("\"U8\"", "[\"1\"]", "[0,1]"), 1,
     "shape[0] is not an integer"},
    {"shape-over-64-bits", TRUE_LENGTH,
     ENTRY("\"U8\"", "[18446744073709551617]", "[0,1]"), 1, "not JSON"},
    {"shape-nine-dims", TRUE_LENGTH,
     ENTRY("\"U8\"", "[1,1,1,1,1,1,1,1,1]", "[0,1]"), 1,
     "9 dimensions, at most 8"},
    {"shape-overflow", TRUE_LENGTH,
     ENTRY("\"U8\"", "[4294967296,4294967296]", "[0,0]"), 0,
     "the product of the shape overflows"},
    {"shape-overflow-to-one", TRUE_LENGTH,
     ENTRY("\"U8\"", "[274177,67280421310721,1]", "[0,1]"), 1,
     "the product of the shape overflows"},
    {"shape-overflow-by-zero", TRUE_LENGTH,
     ENTRY("\"U8\"", "[0,4294967296,4294967296]", "[0,0]"), 0,
     "the product of the shape overflows"},
    {"bytes-overflow", TRUE_LENGTH,
     ENTRY("\"F32\"", "[4611686018427387905]", "[0,4]"), 4,
     "the bits of the shape overflow"},
    {"half-byte", TRUE_LENGTH, ENTRY("\"F4\"", "[3]", "[0,2]"), 2,
     "do not fill whole bytes"},
    {"quarter-byte", TRUE_LENGTH, ENTRY("\"F6_E2M3\"", "[5]", "[0,4]"), 4,
     "do not fill whole bytes"},
    {"offsets-object", TRUE_LENGTH, ENTRY("\"U8\"", "[1]", "{}"), 1,
     "data_offsets is missing or not an array of 2"},
    {"offsets-one", TRUE_LENGTH, ENTRY("\"U8\"", "[1]", "[1]"), 1,
     "data_offsets is missing or not an array of 2"},
    {"offsets-three", TRUE_LENGTH, ENTRY("\"U8\"", "[1]", "[0,1,1]"), 1,
     "data_offsets is missing or not an array of 2"},
    {"offsets-negative", TRUE_LENGTH, ENTRY("\"U8\"", "[1]", "[-1,0]"), 1,
     "data_offsets are not integers"},
    {"offsets-real", TRUE_LENGTH, ENTRY("\"U8\"", "[1]", "[0,1.0]"), 1,
     "data_offsets are not integers"},
    {"offsets-reversed", TRUE_LENGTH, ENTRY("\"U8\"", "[1]", "[1,0]"), 1,
     "begin at 1, past their end 0"},
    {"size-too-small", TRUE_LENGTH, ENTRY("\"F32\"", "[2]", "[0,7]"), 7,
     "span 7 bytes, dtype and shape come to 8"},
    {"size-too-large", TRUE_LENGTH, ENTRY("\"F32\"", "[2]", "[0,9]"), 9,
     "span 9 bytes, dtype and shape come to 8"},
    {"scalar-without-data", TRUE_LENGTH, ENTRY("\"F32\"", "[]", "[0,0]"), 0,
     "span 0 bytes, dtype and shape come to 4"},
    {"empty-with-data", TRUE_LENGTH, ENTRY("\"F32\"", "[0,1]", "[0,4]"), 4,
     "span 4 bytes, dtype and shape come to 0"},
    {"overlap", TRUE_LENGTH,
     "{" GOOD ",\"b\":{\"dtype\":\"U8\",\"shape\":[2],"
     "\"data_offsets\":[0,2]}}",
     2, "tensor \"b\": begins at 0, an overlap"},
    {"overlap-partial", TRUE_LENGTH,
     "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
     "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[3,7]}}",
     7, "tensor \"b\": begins at 3, an overlap: the data before it ends at 4"},
    {"overlap-empty", TRUE_LENGTH,
     "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
     "\"b\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[2,2]}}",
     4, "tensor \"b\": begins at 2, an overlap"},
    {"hole-first", TRUE_LENGTH, ENTRY("\"U8\"", "[1]", "[1,2]"), 2,
     "tensor \"a\": begins at 1, after a hole: the data before it ends at 0"},
    {"hole-between", TRUE_LENGTH,
     "{" GOOD ",\"b\":{\"dtype\":\"U8\",\"shape\":[1],"
     "\"data_offsets\":[2,3]}}",
     3, "tensor \"b\": begins at 2, after a hole"},
    {"data-cut", TRUE_LENGTH, ENTRY("\"F32\"", "[2]", "[0,8]"), 7,
     "the tensors end at 8, the data has 7 bytes"},
    {"data-left-over", TRUE_LENGTH, ENTRY("\"F32\"", "[2]", "[0,8]"), 9,
     "the tensors end at 8, the data has 9 bytes"},
    {"data-without-tensors", TRUE_LENGTH, "{}", 1,
     "the tensors end at 0, the data has 1 bytes"},
    {"forged-lines", TRUE_LENGTH, "{\"a\\n\\u001b[1mb\":0}", 0,
     "tensor \"a??[1mb\": its entry"},
};

enum {
    N_REFUSED = sizeof(refused) / sizeof(refused[0])
};

static unsigned char *make_file(const struct refused *c, size_t *bytes)
{
    const size_t header = !c->header ? 0 : strlen(c->header);
    const size_t prefix = !c->header ? 0 : 8;
    const uint64_t length = c->length == TRUE_LENGTH ? header : c->length;
    unsigned char *p;

    *bytes = prefix + header + c->data_bytes;
    p = calloc(1, *bytes + 1);
    assert_non_null(p);
    for (size_t i = 0; i < prefix; i++) {
        p[i] = (unsigned char)(length >> (8 * i) & 0xff);
    }
    if (header > 0) {
        memcpy(p + prefix, c->header, header);
    }
    return p;
}

/* WHY must hold the complaint, and be one line of printable ASCII. */
static void check_why(const char *why, const char *complaint)
{
    if (!strstr(why, complaint)) {
        fail_msg("\"%s\" does not say \"%s\"", why, complaint);
    }
    for (const char *c = why; *c != '\0'; c++) {
        assert_in_range(*c, ' ', '~');
    }
}

static void each_case_is_refused_from_memory(void **state)
{
    (void)state;
    for (int i = 0; i < N_REFUSED; i++) {
        struct safetensors_file *file = (struct safetensors_file *)&file;
        size_t bytes = 0;
        unsigned char *const p = make_file(&refused[i], &bytes);
        char why[512] = "";

        print_message("%s\n", refused[i].name);
        assert_int_equal(
            safetensors_open_memory(p, bytes, &file, why, sizeof(why)),
            FSDP_ERR_FORMAT);
        assert_null(file);
        check_why(why, refused[i].complaint);
        free(p);
    }
}

/* The fixture of a case has exactly the bytes of the table. */
static void check_fixture(const struct refused *c)
{
    char path[4096];
    char why[512] = "";
    unsigned char found[1024];
    struct safetensors_file *file = (struct safetensors_file *)&file;
    size_t bytes = 0;
    unsigned char *const p = make_file(c, &bytes);
    FILE *stream;

    snprintf(path, sizeof(path), REFUSED_DIR "/%s.safetensors", c->name);
    print_message("%s\n", path);
    stream = fopen(path, "rb");
    assert_non_null(stream);
    assert_int_equal(fread(found, 1, sizeof(found), stream), bytes);
    assert_memory_equal(found, p, bytes);
    assert_int_equal(fclose(stream), 0);
    free(p);

    assert_int_equal(safetensors_open(path, &file, why, sizeof(why)),
                     FSDP_ERR_FORMAT);
    assert_null(file);
    check_why(why, c->complaint);
    assert_non_null(strstr(why, c->name));
}

static void each_case_is_a_fixture_and_refused_from_disk(void **state)
{
    (void)state;
    for (int i = 0; i < N_REFUSED; i++) {
        check_fixture(&refused[i]);
    }
}

/* Nothing else lies in the directory, which others take as a whole. */
static void each_fixture_is_a_case(void **state)
{
    DIR *const directory = opendir(REFUSED_DIR);
    const struct dirent *item;
    int n = 0;

    (void)state;
    assert_non_null(directory);
    while ((item = readdir(directory))) {
        n += item->d_name[0] != '.';
    }
    assert_int_equal(closedir(directory), 0);
    assert_int_equal(n, N_REFUSED);
}

static void why_is_cut_to_its_buffer(void **state)
{
    const unsigned char junk[8] = {0};
    struct safetensors_file *file;
    char why[8] = "#######";

    (void)state;
    assert_int_equal(safetensors_open_memory(junk, 8, &file, why, 4),
                     FSDP_ERR_FORMAT);
    assert_string_equal(why, "(me");
    assert_int_equal(why[4], '#');
    assert_int_equal(safetensors_open_memory(junk, 8, &file, NULL, 0),
                     FSDP_ERR_FORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_case_is_refused_from_memory),
        cmocka_unit_test(each_case_is_a_fixture_and_refused_from_disk),
        cmocka_unit_test(each_fixture_is_a_case),
        cmocka_unit_test(why_is_cut_to_its_buffer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
