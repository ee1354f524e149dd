/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_check.c - the shapes of op.h as a table, and whether an operator has its
 * shape: flags, number and length of its ranges, which of them overlap, grains,
 * and ids.
 */
#include "host_check.h"

#include <stddef.h>

/*
 * A row of `ranges` has a word for each input, "|", and a word for each output.
 * The number of elements of a range is the product of the word's letters, a for
 * dim[0] and so on, and digits. over[o] is the set of inputs, bit i for in[i],
 * that out[o] may be, as the same range; `in_place`: must be. `grains` names
 * the dimension of rows that the number of grains divides; `ids` the dimension
 * that bounds the ids in in[ids_in].
 */
struct shape {
    const char *ranges;
    uint8_t over[FSDP_OP_MAX_OUT];
    bool in_place;
    char rows, grains;
    char ids;
    uint8_t ids_in;
    char period;
};

enum {
    IN_0 = 1 << 0,
    IN_1 = 1 << 1,
    IN_2 = 1 << 2,
    IN_3 = 1 << 3,
};

/* The elements of COPY_2D are bytes, and it is measured apart; NORM_SUM is not
 * supported. */
static const struct shape shapes[FSDP_N_OPS] = {
    [FSDP_OP_FILL] = {.ranges = "| a"},
    [FSDP_OP_SCALE] = {.ranges = "a | a", .over = {IN_0}, .in_place = true},
    [FSDP_OP_ADD] = {.ranges = "a a | a", .over = {IN_0 | IN_1}},
    [FSDP_OP_COPY_2D] = {.ranges = "- | -"},
    [FSDP_OP_CAST] = {.ranges = "a | a"},
    [FSDP_OP_GEMM] = {.ranges = "ac cb | ab"},
    [FSDP_OP_GEMM_GRAD] = {.ranges = "ca cb | ab", .rows = 'c', .grains = 'd'},
    [FSDP_OP_BIAS] = {.ranges = "ab b | ab", .over = {IN_0}},
    [FSDP_OP_COLUMN_SUM] = {.ranges = "ab | b", .rows = 'a', .grains = 'c'},
    [FSDP_OP_RELU] = {.ranges = "a | a", .over = {IN_0}},
    [FSDP_OP_RELU_BACKWARD] = {.ranges = "a a | a", .over = {IN_1}},
    [FSDP_OP_GELU] = {.ranges = "a | a"},
    [FSDP_OP_GELU_BACKWARD] = {.ranges = "a a | a", .over = {IN_1}},
    [FSDP_OP_NORM] = {.ranges = "ab b b | ab a2"},
    [FSDP_OP_NORM_BACKWARD] = {.ranges = "ab b a2 ab | ab"},
    [FSDP_OP_NORM_GRAD] = {.ranges = "ab a2 ab | b b",
                           .rows = 'a',
                           .grains = 'c'},
    [FSDP_OP_EMBEDDING] = {.ranges = "a db cb | ab",
                           .rows = 'a',
                           .ids = 'd',
                           .period = 'c'},
    [FSDP_OP_EMBEDDING_GRAD] = {.ranges = "a ab | db cb",
                                .rows = 'a',
                                .grains = 'e',
                                .ids = 'd',
                                .period = 'c'},
    [FSDP_OP_ATTENTION] = {.ranges = "abcd3 | abcd abc2"},
    [FSDP_OP_ATTENTION_BACKWARD] = {.ranges = "abcd3 abcd abc2 abcd | abcd3"},
    [FSDP_OP_MSE] = {.ranges = "ab ab | a ab"},
    [FSDP_OP_LINEAR_LOSS] = {.ranges = "ab ab | a ab"},
    [FSDP_OP_CROSS_ENTROPY] = {.ranges = "ab a | a ab",
                               .over = {0, IN_0},
                               .ids = 'b',
                               .ids_in = 1},
    [FSDP_OP_SGD] = {.ranges = "a a | a", .over = {IN_0}, .in_place = true},
    [FSDP_OP_MOMENTUM] = {.ranges = "a a a | a a",
                          .over = {IN_0, IN_2},
                          .in_place = true},
    [FSDP_OP_ADAMW] = {.ranges = "a a a a | a a a",
                       .over = {IN_0, IN_2, IN_3},
                       .in_place = true},
};

/* UINT64_MAX is a product that is too large: no range is so long. */
static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product;

    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

uint32_t host_range_dtype(const struct fsdp_op *op, uint32_t range)
{
    uint32_t dtype = FSDP_DTYPE_NONE;

    if (op->kind == FSDP_OP_CAST) {
        return op->aux[range & 1];
    }
    if (op->kind == FSDP_OP_FILL || op->kind == FSDP_OP_SCALE) {
        dtype = op->aux[0];
    } else if (op->kind == FSDP_OP_ADD) {
        dtype = op->aux[range & 1];
    }
    return dtype != FSDP_DTYPE_NONE ? dtype : FSDP_DTYPE_F32;
}

/* Whether the operator names its dtypes; the ranges of all others are
 * float32. */
static bool says_dtypes(uint32_t kind)
{
    return kind == FSDP_OP_CAST || kind == FSDP_OP_FILL ||
           kind == FSDP_OP_SCALE || kind == FSDP_OP_ADD;
}

static uint64_t word_bytes(const struct fsdp_op *op, const char *word,
                           uint64_t element)
{
    uint64_t bytes = element;

    for (; *word >= '0'; word++) {
        bytes = times(bytes, *word >= 'a' ? op->dim[*word - 'a']
                                          : (uint64_t)(*word - '0'));
    }
    return bytes;
}

/* From the first byte of the first row to the last byte of the last. */
static uint64_t span(uint64_t rows, uint64_t row_bytes, uint64_t stride)
{
    uint64_t bytes;

    if (rows == 0 || row_bytes == 0) {
        return 0;
    }
    return __builtin_add_overflow(times(rows - 1, stride), row_bytes, &bytes)
               ? UINT64_MAX
               : bytes;
}

/* The length that range `i` of the operator, in[] and then out[], should have;
 * `word` is what the table says. */
static uint64_t range_bytes(const struct fsdp_op *op, uint32_t i,
                            const char *word)
{
    if (op->kind == FSDP_OP_COPY_2D) {
        return span(op->dim[0], op->dim[1], op->dim[i == 0 ? 3 : 2]);
    }
    return word_bytes(op, word,
                      says_dtypes(op->kind)
                          ? fsdp_dtype_bytes(host_range_dtype(op, i))
                          : sizeof(float));
}

static bool range_fits(uint64_t want, const void *p, uint64_t bytes)
{
    return want != UINT64_MAX && bytes == want && (p || bytes == 0);
}

/* As many ranges as the table has words, each as long as it should be. */
static bool ranges_fit(const struct fsdp_op *op, const char *word)
{
    uint32_t n_in = 0;
    uint32_t n_out = 0;

    for (; *word != '|'; word += *word == ' ') {
        const char *next = word;

        if (n_in >= op->n_in ||
            !range_fits(range_bytes(op, n_in, word), op->in[n_in].p,
                        op->in[n_in].bytes)) {
            return false;
        }
        for (; *next != ' '; next++) {
        }
        word = next;
        n_in++;
    }
    for (word++; *word == ' '; n_out++) {
        word++;
        if (n_out >= op->n_out ||
            !range_fits(range_bytes(op, n_in + n_out, word), op->out[n_out].p,
                        op->out[n_out].bytes)) {
            return false;
        }
        for (; *word != ' ' && *word != '\0'; word++) {
        }
    }
    return n_in == op->n_in && n_out == op->n_out;
}

static bool overlap(const void *a, uint64_t a_bytes, const void *b,
                    uint64_t b_bytes)
{
    uintptr_t x = (uintptr_t)a;
    uintptr_t y = (uintptr_t)b;

    if (a_bytes == 0 || b_bytes == 0) {
        return false;
    }
    return x <= y ? y - x < a_bytes : x - y < b_bytes;
}

/* Lies out[o] only where it may? */
static bool placed_well(const struct fsdp_op *op, const struct shape *shape,
                        uint32_t o)
{
    const struct fsdp_out *out = &op->out[o];

    for (uint32_t i = 0; i < op->n_in; i++) {
        const struct fsdp_in *in = &op->in[i];
        bool over = (shape->over[o] >> i & 1) != 0;
        bool same = in->p == out->p && in->bytes == out->bytes;

        if (over && same) {
            continue;
        }
        if ((over && shape->in_place) ||
            overlap(in->p, in->bytes, out->p, out->bytes)) {
            return false;
        }
    }
    for (uint32_t other = 0; other < o; other++) {
        if (overlap(op->out[other].p, op->out[other].bytes, out->p,
                    out->bytes)) {
            return false;
        }
    }
    return true;
}

static bool rows_fit(const struct fsdp_op *op, const struct shape *shape)
{
    uint64_t rows = shape->rows != 0 ? op->dim[shape->rows - 'a'] : 0;

    if (op->kind == FSDP_OP_COPY_2D) {
        return op->dim[0] <= 1 || op->dim[2] >= op->dim[1];
    }
    if (shape->grains != 0) {
        uint64_t grains = op->dim[shape->grains - 'a'];

        if (grains == 0 || grains > FSDP_MAX_GRAINS || rows % grains != 0) {
            return false;
        }
    }
    return shape->period == 0 || rows == 0 || op->dim[shape->period - 'a'] > 0;
}

static bool ids_fit(const struct fsdp_op *op, const struct shape *shape)
{
    const int32_t *id = op->in[shape->ids_in].p;
    uint64_t range = shape->ids != 0 ? op->dim[shape->ids - 'a'] : 0;

    for (uint64_t r = 0; shape->ids != 0 && r < op->dim[0]; r++) {
        if (id[r] < 0 || (uint64_t)id[r] >= range) {
            return false;
        }
    }
    return true;
}

/* Whether the dtypes that an operator names are float32 or of 16 bits. */
static bool dtypes_supported(const struct fsdp_op *op)
{
    uint32_t n = says_dtypes(op->kind) ? op->n_in + op->n_out : 0;

    for (uint32_t i = 0; i < n && i < 3; i++) {
        uint32_t dtype = host_range_dtype(op, i);

        if (dtype != FSDP_DTYPE_F32 && dtype != FSDP_DTYPE_BF16 &&
            dtype != FSDP_DTYPE_F16) {
            return false;
        }
    }
    return true;
}

int host_check_shape(const struct fsdp_op *op)
{
    const struct shape *shape;
    uint32_t flags;

    if (!op || op->size < sizeof(*op)) {
        return FSDP_ERR_INVALID;
    }
    if (op->kind >= FSDP_N_OPS || !shapes[op->kind].ranges ||
        !dtypes_supported(op)) {
        return FSDP_ERR_UNSUPPORTED;
    }
    shape = &shapes[op->kind];
    flags = op->kind == FSDP_OP_GEMM ? FSDP_OP_TRANSPOSE_B : 0;
    if ((op->flags & ~flags) != 0 || !ranges_fit(op, shape->ranges)) {
        return FSDP_ERR_INVALID;
    }
    for (uint32_t o = 0; o < op->n_out; o++) {
        if (!placed_well(op, shape, o)) {
            return FSDP_ERR_INVALID;
        }
    }
    return rows_fit(op, shape) ? FSDP_OK : FSDP_ERR_INVALID;
}

int host_check(const struct fsdp_op *op)
{
    FSDP_TRY(host_check_shape(op));
    return ids_fit(op, &shapes[op->kind]) ? FSDP_OK : FSDP_ERR_INVALID;
}
