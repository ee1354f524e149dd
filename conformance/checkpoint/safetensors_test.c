/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors_test.c - what the writer writes, the reader reads; the bytes are
 * canonical; and the reference implementation's file is read and would be
 * written the same.  The reader's refusals are in safetensors_refused_test.c,
 * the writer's in safetensors_write_test.c.
 *
 * FIXTURES_DIR is the path of fixtures/.
 */
#include "safetensors_testing.h"
#include "testing/unit_testing.h"

#define PYTHON_SAMPLE FIXTURES_DIR "/safetensors/python-sample.safetensors"

static const float f32[6] = {0.5F, -1.0F, 2.0F, 3.0F, 4.0F, 5.0F};
static const uint16_t bf16[3] = {0x3f80, 0xc000, 0x7fc0};
static const int64_t i64[1] = {-12345678901};
static const uint8_t u8[3] = {1, 127, 255};

static const struct safetensors_tensor tensors[] = {
    TENSOR("w", "F32", 2, SHAPE(2, 3), f32, sizeof(f32)),
    TENSOR("b", "BF16", 1, SHAPE(3), bf16, sizeof(bf16)),
    TENSOR("step", "I64", 0, SHAPE(0), i64, sizeof(i64)),
    TENSOR("mask", "U8", 8, SHAPE(1, 1, 1, 3, 1, 1, 1, 1), u8, sizeof(u8)),
    TENSOR("empty", "F32", 3, SHAPE(4, 0, 2), NULL, 0),
    TENSOR("", "F4", 2, SHAPE(2, 3), u8, 3),
    TENSOR("line\n\"\\\x7f \xc3\xa9", "F32", 1, SHAPE(1), f32, 4),
};
static const struct safetensors_meta pairs[] = {
    {"step", "7"}, {"", ""}, {"format", "\xe2\x82\xac\t"}};

enum {
    N_TENSORS = sizeof(tensors) / sizeof(tensors[0]),
    N_PAIRS = sizeof(pairs) / sizeof(pairs[0])
};

static struct safetensors_file *open_ok(const char *path)
{
    struct safetensors_file *file = NULL;
    char why[512] = "";
    const int status = safetensors_open(path, &file, why, sizeof(why));

    assert_string_equal(why, "");
    assert_int_equal(status, FSDP_OK);
    assert_non_null(file);
    return file;
}

static void assert_same_tensor(const struct safetensors_tensor *found,
                               const struct safetensors_tensor *expected)
{
    assert_non_null(found);
    assert_string_equal(found->name, expected->name);
    assert_string_equal(found->dtype, expected->dtype);
    assert_int_equal(found->n_dims, expected->n_dims);
    for (uint32_t i = 0; i < expected->n_dims; i++) {
        assert_int_equal(found->shape[i], expected->shape[i]);
    }
    assert_int_equal(found->bytes, expected->bytes);
    assert_non_null(found->data);
    if (expected->bytes > 0) {
        assert_memory_equal(found->data, expected->data, expected->bytes);
    }
}

static void what_is_written_is_read(void **state)
{
    const struct scratch *const s = *state;
    struct safetensors_file *file;

    write_ok(s->path, tensors, N_TENSORS, pairs, N_PAIRS, true);
    file = open_ok(s->path);
    assert_int_equal(safetensors_count(file), N_TENSORS);
    for (size_t i = 0; i < N_TENSORS; i++) {
        assert_same_tensor(safetensors_find(file, tensors[i].name),
                           &tensors[i]);
    }
    for (size_t i = 0; i < N_PAIRS; i++) {
        assert_string_equal(safetensors_meta(file, pairs[i].key),
                            pairs[i].value);
    }
    assert_null(safetensors_find(file, "W"));
    assert_null(safetensors_find(file, "__metadata__"));
    assert_null(safetensors_meta(file, "w"));
    assert_null(safetensors_at(file, N_TENSORS));
    assert_null(safetensors_meta_at(file, N_PAIRS));
    safetensors_close(file);
}

static void a_file_may_be_empty(void **state)
{
    const struct scratch *const s = *state;
    struct safetensors_file *file;
    size_t bytes = 0;
    unsigned char *p;

    write_ok(s->path, NULL, 0, NULL, 0, false);
    p = slurp(s->path, &bytes);
    assert_int_equal(bytes, 16);
    assert_memory_equal(p, "\x8\0\0\0\0\0\0\0{}      ", 16);
    free(p);
    file = open_ok(s->path);
    assert_int_equal(safetensors_count(file), 0);
    assert_null(safetensors_at(file, 0));
    assert_null(safetensors_find(file, ""));
    assert_null(safetensors_meta(file, ""));
    assert_null(safetensors_meta_at(file, 0));
    safetensors_close(file);
}

/* All the bytes of a small file, worked out by hand from the format. */
static void the_bytes_are_canonical(void **state)
{
    static const char expected[] =
        "\xc8\0\0\0\0\0\0\0"
        "{\"__metadata__\":{\"a\":\"1\",\"b\":\"2\"},"
        "\"step\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
        "\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[8,10]},"
        "\"b\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[10,10]}}"
        "    "
        "\x01\0\0\0\0\0\0\0\x02\x03";
    static const int64_t one = 1;
    static const uint8_t two[2] = {2, 3};
    const struct safetensors_tensor t[] = {
        TENSOR("b", "U8", 1, SHAPE(0), NULL, 0),
        TENSOR("a", "U8", 1, SHAPE(2), two, 2),
        TENSOR("step", "I64", 0, SHAPE(0), &one, 8)};
    const struct safetensors_meta meta[] = {{"b", "2"}, {"a", "1"}};
    const struct scratch *const s = *state;
    size_t bytes = 0;
    unsigned char *p;

    write_ok(s->path, t, 3, meta, 2, false);
    p = slurp(s->path, &bytes);
    assert_int_equal(bytes, sizeof(expected) - 1);
    assert_memory_equal(p, expected, bytes);
    free(p);
}

static void the_order_of_arguments_does_not_matter(void **state)
{
    const struct scratch *const s = *state;
    struct safetensors_tensor turned[N_TENSORS];
    struct safetensors_meta turned_pairs[N_PAIRS];

    write_ok(s->path, tensors, N_TENSORS, pairs, N_PAIRS, false);
    for (size_t turn = 0; turn < N_TENSORS; turn++) {
        for (size_t i = 0; i < N_TENSORS; i++) {
            turned[N_TENSORS - 1 - i] = tensors[(i + turn) % N_TENSORS];
        }
        for (size_t i = 0; i < N_PAIRS; i++) {
            turned_pairs[N_PAIRS - 1 - i] = pairs[(i + turn) % N_PAIRS];
        }
        write_ok(s->other, turned, N_TENSORS, turned_pairs, N_PAIRS, false);
        assert_same_files(s->path, s->other);
    }
}

static void every_tensor_is_aligned_to_its_element(void **state)
{
    const struct scratch *const s = *state;
    struct safetensors_file *file;

    write_ok(s->path, tensors, N_TENSORS, pairs, N_PAIRS, false);
    file = open_ok(s->path);
    assert_int_equal((uintptr_t)safetensors_at(file, 0)->data % 64, 0);
    for (size_t i = 0; i < N_TENSORS; i++) {
        const struct safetensors_tensor *const t = safetensors_at(file, i);
        const unsigned bits = safetensors_dtype_bits(t->dtype);

        assert_int_equal((uintptr_t)t->data % ((bits + 7) / 8), 0);
    }
    safetensors_close(file);
}

UNIT_TEST(the_dtypes_have_their_bits)
{
    static const struct {
        const char *name;
        unsigned bits;
    } dtypes[] = {{"F4", 4},          {"F6_E2M3", 6},
                  {"F6_E3M2", 6},     {"BOOL", 8},
                  {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8},
                  {"U8", 8},          {"I8", 8},
                  {"F8_E5M2", 8},     {"U16", 16},
                  {"I16", 16},        {"F8_E4M3", 8},
                  {"F16", 16},        {"BF16", 16},
                  {"F8_E8M0", 8},     {"F32", 32},
                  {"I32", 32},        {"U32", 32},
                  {"C64", 64},        {"F64", 64},
                  {"I64", 64},        {"U64", 64},
                  {"f32", 0},         {"F32 ", 0},
                  {"F8", 0},          {"", 0}};

    for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
        assert_int_equal(safetensors_dtype_bits(dtypes[i].name),
                         dtypes[i].bits);
    }
}

/*
 * Python's safetensors 0.8.0 wrote the sample.  Rewritten by this writer it
 * comes out the same, so the two agree on the order as well.
 */
static void the_reference_file_is_read_and_rewritten(void **state)
{
    static const float bias[3] = {-1.0F, 0.25F, 1e30F};
    static const float weight[6] = {0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 2.5F};
    static const int64_t step = 12345678901;
    static const uint16_t half[3] = {0x3c00, 0xc000, 0x7bff};
    static const uint8_t mask[3] = {1, 0, 1};
    static const int32_t tokens[4] = {1, -2, 3, -4};
    static const uint8_t bytes[3] = {0, 127, 255};
    static const uint16_t seven[1] = {7};
    const struct safetensors_tensor expected[] = {
        TENSOR("step", "I64", 0, SHAPE(0), &step, 8),
        TENSOR("empty", "F64", 2, SHAPE(0, 4), NULL, 0),
        TENSOR("layer.bias", "F32", 1, SHAPE(3), bias, 12),
        TENSOR("layer.weight", "F32", 2, SHAPE(2, 3), weight, 24),
        TENSOR("tokens", "I32", 2, SHAPE(2, 2), tokens, 16),
        TENSOR("half", "F16", 1, SHAPE(3), half, 6),
        TENSOR("name \"quoted\" \xc3\xa9", "U16", 1, SHAPE(1), seven, 2),
        TENSOR("bytes", "U8", 1, SHAPE(3), bytes, 3),
        TENSOR("mask", "BOOL", 1, SHAPE(3), mask, 3)};
    const size_t n = sizeof(expected) / sizeof(expected[0]);
    const struct scratch *const s = *state;
    struct safetensors_file *const file = open_ok(PYTHON_SAMPLE);

    assert_int_equal(safetensors_count(file), n);
    for (size_t i = 0; i < n; i++) {
        assert_same_tensor(safetensors_at(file, i), &expected[i]);
    }
    assert_string_equal(safetensors_meta(file, "format"), "np");
    write_ok(s->path, safetensors_at(file, 0), n, safetensors_meta_at(file, 0),
             1, false);
    assert_same_files(s->path, PYTHON_SAMPLE);
    safetensors_close(file);
}

/* A reader may not assume the canonical order of header or data. */
UNIT_TEST(any_order_of_header_and_data_is_read)
{
    static const char header[] =
        " \0\0\0\0\0\0\0"
        "{ \"b\" :\n{\"data_offsets\":[0,0],\"shape\":[0],\"dtype\":\"U8\"},\t"
        "\"c\":{\"data_offsets\":[1,5],\"shape\":[1],\"dtype\":\"F32\"},"
        "\"a\":{\"data_offsets\":[0,1],\"shape\":[1],\"dtype\":\"I8\"}}   "
        "\x7f\0\0\x80\x3f";
    char image[sizeof(header) - 1];
    struct safetensors_file *file = NULL;
    char why[512] = "";
    float one = 0.0F;

    memcpy(image, header, sizeof(image));
    image[0] = (char)(sizeof(image) - 8 - 5);
    assert_int_equal(
        safetensors_open_memory(image, sizeof(image), &file, why, sizeof(why)),
        FSDP_OK);
    assert_int_equal(safetensors_count(file), 3);
    assert_string_equal(safetensors_at(file, 0)->name, "b");
    assert_string_equal(safetensors_at(file, 1)->name, "a");
    assert_string_equal(safetensors_at(file, 2)->name, "c");
    assert_int_equal(*(const char *)safetensors_find(file, "a")->data, 0x7f);
    memcpy(&one, safetensors_find(file, "c")->data, sizeof(one));
    assert_true(one == 1.0F);
    /* Not copied. */
    assert_ptr_equal(safetensors_find(file, "a")->data,
                     image + sizeof(image) - 5);
    safetensors_close(file);
    safetensors_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_written_is_read),
        TEST(a_file_may_be_empty),
        TEST(the_bytes_are_canonical),
        TEST(the_order_of_arguments_does_not_matter),
        TEST(every_tensor_is_aligned_to_its_element),
        TEST(the_dtypes_have_their_bits),
        TEST(the_reference_file_is_read_and_rewritten),
        TEST(any_order_of_header_and_data_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
