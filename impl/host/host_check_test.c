/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_check_test.c - mistakes in an operator are found before anything is
 * written, and with the status that the plain device gives.
 */
#include "host_check.h"
#include "host_ops.h"

#include <string.h>

#include "testing/unit_testing.h"

int ref_device_open(struct fsdp_device *out);

enum {
    RANGE = 256,
    RANGES = FSDP_OP_MAX_IN + FSDP_OP_MAX_OUT,
    N_CHANGES = 26,
};

/* Valid operators; the words of each as in host_check.c. */
struct right {
    uint32_t kind;
    const char *ranges;
    uint64_t dim[5];
};

static const struct right rights[] = {
    {FSDP_OP_FILL, "| a", {6}},
    {FSDP_OP_SCALE, "a | =0", {6}},
    {FSDP_OP_ADD, "a a | a", {6}},
    {FSDP_OP_GEMM, "ac cb | ab", {4, 2, 6}},
    {FSDP_OP_GEMM_GRAD, "ca cb | ab", {4, 2, 6, 3}},
    {FSDP_OP_BIAS, "ab b | ab", {4, 2}},
    {FSDP_OP_COLUMN_SUM, "ab | b", {4, 3, 2}},
    {FSDP_OP_RELU, "a | a", {6}},
    {FSDP_OP_RELU_BACKWARD, "a a | a", {6}},
    {FSDP_OP_GELU, "a | a", {6}},
    {FSDP_OP_GELU_BACKWARD, "a a | a", {6}},
    {FSDP_OP_NORM, "ab b b | ab a2", {4, 3}},
    {FSDP_OP_NORM_BACKWARD, "ab b a2 ab | ab", {4, 3}},
    {FSDP_OP_NORM_GRAD, "ab a2 ab | b b", {4, 3, 2}},
    {FSDP_OP_EMBEDDING, "a db cb | ab", {4, 3, 2, 5}},
    {FSDP_OP_EMBEDDING_GRAD, "a ab | db cb", {4, 3, 2, 5, 2}},
    {FSDP_OP_ATTENTION, "abcd3 | abcd abc2", {2, 3, 2, 2}},
    {FSDP_OP_ATTENTION_BACKWARD, "abcd3 abcd abc2 abcd | abcd3", {2, 3, 2, 2}},
    {FSDP_OP_MSE, "ab ab | a ab", {4, 3}},
    {FSDP_OP_LINEAR_LOSS, "ab ab | a ab", {4, 3}},
    {FSDP_OP_CROSS_ENTROPY, "ab a | a ab", {4, 3}},
    {FSDP_OP_SGD, "a a | =0", {6}},
    {FSDP_OP_MOMENTUM, "a a a | =0 =2", {6}},
    {FSDP_OP_ADAMW, "a a a a | =0 =2 =3", {6}},
};

/* The ranges: zeros, which are ids too. */
struct memory {
    float range[RANGES][RANGE];
};

static uint64_t word_numel(const struct right *right, const char *word)
{
    uint64_t n = 1;

    for (; *word > ' '; word++) {
        n *= *word >= 'a' ? right->dim[*word - 'a'] : (uint64_t)(*word - '0');
    }
    return n;
}

static void make(const struct right *right, struct memory *memory,
                 struct fsdp_op *op)
{
    bool out = false;
    uint32_t used = 0;

    memset(memory, 0, sizeof(*memory));
    *op = (struct fsdp_op){
        .size = sizeof(*op), .kind = right->kind, .unit = FSDP_NO_UNIT};
    memcpy(op->dim, right->dim, sizeof(right->dim));
    for (const char *word = right->ranges; *word != '\0';) {
        if (*word == '|') {
            out = true;
        } else if (*word == '=') {
            uint32_t i = (uint32_t)(word[1] - '0');

            op->out[op->n_out++] =
                (struct fsdp_out){memory->range[i], op->in[i].bytes};
        } else if (out) {
            op->out[op->n_out++] = (struct fsdp_out){
                memory->range[used++], word_numel(right, word) * 4};
        } else {
            op->in[op->n_in++] = (struct fsdp_in){memory->range[used++],
                                                  word_numel(right, word) * 4};
        }
        word += strcspn(word, " ");
        word += strspn(word, " ");
    }
}

/* Makes change `which` of the header or of the ranges; false if the operator
 * has nothing to change there. Some changes do no harm to some operators. */
static bool change_range(uint32_t which, struct memory *memory,
                         struct fsdp_op *op)
{
    switch (which) {
    case 0:
        op->size--;
        return true;
    case 1:
        op->flags = 1;
        return true;
    case 2:
        op->flags = 2;
        return true;
    case 3:
        op->n_in++;
        return true;
    case 4:
        op->n_out++;
        return true;
    case 5:
        op->n_in--;
        return op->n_in != UINT32_MAX;
    case 6:
        op->n_out--;
        return true;
    case 7:
        op->in[0].bytes += 4;
        return op->n_in > 0;
    case 8:
        op->out[op->n_out - 1].bytes -= 4;
        return true;
    case 9:
        op->in[op->n_in > 0 ? op->n_in - 1 : 0].p = NULL;
        return op->n_in > 0;
    case 10:
        op->out[0].p = NULL;
        return true;
    case 11: /* not in place */
        op->out[0].p = memory->range[RANGES - 1];
        return true;
    case 12: /* over the first input */
        op->out[0].p = memory->range[0];
        return true;
    case 13: /* over the second */
        op->out[0].p = memory->range[1];
        return true;
    case 14: /* over a part of the first */
        op->out[op->n_out - 1].p = &memory->range[0][1];
        return true;
    default: /* over another output */
        op->out[op->n_out - 1].p = op->out[0].p;
        return op->n_out > 1;
    }
}

enum {
    RANGE_CHANGES = 16
};

/* Makes change `which`, of the dimensions and of the ids, too. */
static bool change(uint32_t which, struct memory *memory, struct fsdp_op *op)
{
    const int32_t negative = -1;
    const int32_t large = 5;
    uint64_t *grains = op->kind == FSDP_OP_GEMM_GRAD        ? &op->dim[3]
                       : op->kind == FSDP_OP_EMBEDDING_GRAD ? &op->dim[4]
                                                            : &op->dim[2];

    switch (which) {
    case RANGE_CHANGES:
    case 17:
    case 18:
        op->dim[which - RANGE_CHANGES] = (uint64_t)1 << 62;
        return true;
    case 19:
        *grains = 0;
        return true;
    case 20:
        *grains = 65;
        return true;
    case 21:
        *grains = 4;
        return true;
    case 22:
        memcpy(memory->range[0] + 3, &negative, sizeof(negative));
        return true;
    case 23:
        memcpy(memory->range[0] + 3, &large, sizeof(large));
        memcpy(memory->range[1] + 3, &large, sizeof(large));
        return true;
    case 24:
        memcpy(memory->range[1], &negative, sizeof(negative));
        return true;
    case 25: /* period, or whatever else that is */
        op->dim[2] = 0;
        op->in[2].bytes = op->in[2].bytes > 0 ? 0 : op->in[2].bytes;
        return true;
    default:
        return change_range(which, memory, op);
    }
}

static int run_plain(const struct right *right, uint32_t which,
                     struct memory *memory)
{
    struct fsdp_device plain;
    struct fsdp_op op;

    make(right, memory, &op);
    if (!change(which, memory, &op)) {
        return 1;
    }
    assert_int_equal(ref_device_open(&plain), FSDP_OK);
    return plain.run(plain.self, NULL, &op);
}

UNIT_TEST(test_changes)
{
    static struct memory memory;
    static struct memory before;
    uint32_t refused = 0;
    struct host_ops *ops;

    assert_int_equal(host_ops_create(SIMD_PORTABLE, &ops), FSDP_OK);
    for (size_t i = 0; i < sizeof(rights) / sizeof(rights[0]); i++) {
        for (uint32_t which = 0; which < N_CHANGES; which++) {
            int want = run_plain(&rights[i], which, &memory);
            struct fsdp_op op;
            int got;

            if (want == 1) {
                continue;
            }
            make(&rights[i], &memory, &op);
            change(which, &memory, &op);
            before = memory;
            got = host_ops_run(ops, &op);
            if (got != want) {
                fail_msg("op %u, change %u: %d, not %d", op.kind, which, got,
                         want);
            }
            if (got != FSDP_OK) {
                assert_memory_equal(&memory, &before, sizeof(memory));
                refused++;
            }
        }
    }
    assert_true(refused > 300);
    host_ops_destroy(ops);
}

UNIT_TEST(test_right)
{
    static struct memory memory;
    struct fsdp_op op;

    for (size_t i = 0; i < sizeof(rights) / sizeof(rights[0]); i++) {
        make(&rights[i], &memory, &op);
        assert_int_equal(host_check(&op), FSDP_OK);
    }
    assert_int_equal(host_check(NULL), FSDP_ERR_INVALID);
}

UNIT_TEST(test_unsupported)
{
    static struct memory memory;
    struct fsdp_op op;

    make(&rights[0], &memory, &op);
    op.kind = FSDP_OP_NORM_SUM;
    assert_int_equal(host_check(&op), FSDP_ERR_UNSUPPORTED);
    op.kind = FSDP_N_OPS;
    assert_int_equal(host_check(&op), FSDP_ERR_UNSUPPORTED);
    make(&rights[1], &memory, &op);
    op.kind = FSDP_OP_CAST;
    op.aux[0] = FSDP_DTYPE_F32;
    assert_int_equal(host_check(&op), FSDP_ERR_UNSUPPORTED); /* to NONE */
    op.aux[1] = FSDP_DTYPE_I32;
    assert_int_equal(host_check(&op), FSDP_ERR_UNSUPPORTED);
    make(&rights[2], &memory, &op);
    op.aux[1] = FSDP_DTYPE_U8;
    assert_int_equal(host_check(&op), FSDP_ERR_UNSUPPORTED);
    op.aux[1] = FSDP_DTYPE_BF16; /* but b is as long as float32 */
    assert_int_equal(host_check(&op), FSDP_ERR_INVALID);
}

static int check_copy(uint64_t rows, uint64_t row_bytes, uint64_t to_stride,
                      uint64_t from_stride, uint64_t to_bytes,
                      uint64_t from_bytes)
{
    static char from[64];
    static char to[64];
    struct fsdp_op op = {.size = sizeof(op),
                         .kind = FSDP_OP_COPY_2D,
                         .dim = {rows, row_bytes, to_stride, from_stride},
                         .n_in = 1,
                         .n_out = 1,
                         .in = {{from, from_bytes}},
                         .out = {{to, to_bytes}}};

    return host_check(&op);
}

UNIT_TEST(test_copy_2d)
{
    assert_int_equal(check_copy(3, 4, 5, 6, 14, 16), FSDP_OK);
    assert_int_equal(check_copy(3, 4, 5, 0, 14, 4), FSDP_OK);
    assert_int_equal(check_copy(1, 4, 0, 0, 4, 4), FSDP_OK);
    assert_int_equal(check_copy(0, 4, 5, 6, 0, 0), FSDP_OK);
    assert_int_equal(check_copy(3, 4, 5, 6, 15, 16), FSDP_ERR_INVALID);
    assert_int_equal(check_copy(3, 4, 5, 6, 14, 18), FSDP_ERR_INVALID);
    assert_int_equal(check_copy(3, 4, 3, 6, 10, 16), FSDP_ERR_INVALID);
    assert_int_equal(check_copy(5, 4, UINT64_MAX / 4 + 1, 4, 4, 20),
                     FSDP_ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right),
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_unsupported),
        cmocka_unit_test(test_copy_2d),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
