/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_ops_testing.h - what the tests of the operators share: a trial is one
 * operator on random data, run on the plain device and at every level; the bits
 * of all memory are compared.
 */
#ifndef FSDP_CTS_HOST_OPS_TESTING_H
#define FSDP_CTS_HOST_OPS_TESTING_H

#include "host_ops.h"

#include <sanitizer/asan_interface.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing/unit_testing.h"

/* The plain device, which gives the bits that are right. */
int ref_device_open(struct fsdp_device *out);

enum {
    GUARD = 64, /* floats before and behind each range */
    BUFFERS = FSDP_OP_MAX_IN + FSDP_OP_MAX_OUT,
};

/* What the data of a trial are like. */
enum data {
    DATA_PLAIN,   /* sums of them depend on their order */
    DATA_SMALL,   /* products underflow, sums of -0 come up */
    DATA_MIXED,   /* some products underflow, some do not */
    DATA_SPECIAL, /* a NaN, infinity, subnormal or zero here and there */
    N_DATA,
};

struct trial {
    struct fsdp_op op;
    const char *ranges; /* as in host_check.c; # for ids, = for in place */
    enum data data;
    bool aligned; /* ranges begin at multiples of 64 bytes */
};

static inline uint32_t random_bits(void)
{
    static uint64_t state = 0x9e3779b97f4a7c15u;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32);
}

static inline float random_value(enum data data)
{
    static const float special[] = {
        0.0f,       -0.0f,    __builtin_inff(), 0x1p-149f,
        -0x1p-130f, 0x1p126f, -0x1p127f,        -__builtin_inff()};
    float x = (float)(int32_t)random_bits() * 0x1p-29f;

    if (data == DATA_MIXED && random_bits() % 2 == 0) {
        return x * 0x1p-140f;
    }
    if (data == DATA_SMALL) {
        return x * 0x1p-74f;
    }
    if (data == DATA_SPECIAL && random_bits() % 64 == 0) {
        uint32_t i = random_bits() % 9;

        return i < 8 ? special[i] : __builtin_nanf("");
    }
    return x;
}

static inline uint64_t range_numel(const struct fsdp_op *op, const char *word)
{
    uint64_t n = 1;

    for (; *word != '\0' && *word != ' '; word++) {
        if (*word >= 'a' && *word <= 'z') {
            n *= op->dim[*word - 'a'];
        } else if (*word >= '0' && *word <= '9') {
            n *= (uint64_t)(*word - '0');
        }
    }
    return n;
}

static inline uint64_t id_range(const struct fsdp_op *op)
{
    return op->kind == FSDP_OP_CROSS_ENTROPY ? op->dim[1] : op->dim[3];
}

static inline void fill(const struct trial *t, float *x, uint64_t n, bool ids)
{
    uint64_t range = id_range(&t->op);

    for (uint64_t i = 0; i < n; i++) {
        int32_t id = range > 0 ? (int32_t)(random_bits() % range) : 0;

        x[i] = random_value(t->data);
        if (ids) {
            memcpy(&x[i], &id, sizeof(id));
        }
    }
}

/* Lays the operator's ranges out in `memory`, one behind the other with guards
 * between them. The same t gives the same places; with `shift` they are aligned
 * to floats only. */
static inline uint64_t lay_out(struct trial *t, float *memory, uint64_t shift)
{
    uint64_t at = GUARD + shift;
    bool out = false;
    const char *word = t->ranges;

    t->op.n_in = t->op.n_out = 0;
    while (*word != '\0') {
        uint64_t n = range_numel(&t->op, word);
        float *p = memory ? memory + at : NULL;

        if (*word == '|') {
            out = true;
        } else if (*word == '=') {
            const struct fsdp_in *in = &t->op.in[word[1] - '0'];
            float *same =
                memory ? memory + ((const float *)in->p - memory) : NULL;

            t->op.out[t->op.n_out++] = (struct fsdp_out){same, in->bytes};
        } else {
            if (out) {
                t->op.out[t->op.n_out++] = (struct fsdp_out){p, n * 4};
            } else {
                t->op.in[t->op.n_in++] = (struct fsdp_in){p, n * 4};
            }
            at += n + GUARD + 1;
            at = t->aligned ? (at + 15) / 16 * 16 : at;
        }
        word += strcspn(word, " ");
        word += strspn(word, " ");
    }
    return at + GUARD;
}

static inline bool same_bits(float a, float b)
{
    uint32_t a_bits;
    uint32_t b_bits;

    memcpy(&a_bits, &a, sizeof(a_bits));
    memcpy(&b_bits, &b, sizeof(b_bits));
    return a_bits == b_bits || (a != a && b != b);
}

static inline void check_same(const struct trial *t, enum simd_level level,
                              const float *got, const float *want, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        if (!same_bits(got[i], want[i])) {
            const uint64_t *d = t->op.dim;

            fail_msg("op %u, %s, data %d, dims %llu %llu %llu %llu %llu: "
                     "float %llu is %a, not %a",
                     t->op.kind, simd_name(level), t->data,
                     (unsigned long long)d[0], (unsigned long long)d[1],
                     (unsigned long long)d[2], (unsigned long long)d[3],
                     (unsigned long long)d[4], (unsigned long long)i,
                     (double)got[i], (double)want[i]);
        }
    }
}

/* Fills the inputs of t, laid out in `memory`. */
static inline void fill_inputs(const struct trial *t, float *memory)
{
    const char *word = t->ranges;

    for (uint32_t i = 0; i < t->op.n_in; i++) {
        fill(t, memory + ((const float *)t->op.in[i].p - memory),
             t->op.in[i].bytes / 4, *word == '#');
        word += strcspn(word, " ");
        word += strspn(word, " ");
    }
}

static inline void run_plain(const struct trial *t)
{
    struct fsdp_device plain;

    assert_int_equal(ref_device_open(&plain), FSDP_OK);
    assert_int_equal(plain.run(plain.self, NULL, &t->op), FSDP_OK);
}

static inline void run_level(const struct trial *t, enum simd_level level)
{
    static struct host_ops *ops[SIMD_N_LEVELS];

    if (!ops[level]) {
        assert_int_equal(host_ops_create(level, &ops[level]), FSDP_OK);
    }
    assert_int_equal(host_ops_run(ops[level], &t->op), FSDP_OK);
}

/* Under the address sanitizer, the gaps between ranges must not even be read;
 * without it these functions do nothing. */
static inline void close_gaps(const struct trial *t, const float *memory,
                              uint64_t n)
{
    ASAN_POISON_MEMORY_REGION(memory, n * sizeof(float));
    for (uint32_t i = 0; i < t->op.n_in; i++) {
        ASAN_UNPOISON_MEMORY_REGION(t->op.in[i].p, t->op.in[i].bytes);
    }
    for (uint32_t o = 0; o < t->op.n_out; o++) {
        ASAN_UNPOISON_MEMORY_REGION(t->op.out[o].p, t->op.out[o].bytes);
    }
    (void)memory;
    (void)n;
}

static inline void open_gaps(const float *memory, uint64_t n)
{
    ASAN_UNPOISON_MEMORY_REGION(memory, n * sizeof(float));
    (void)memory;
    (void)n;
}

/* All memory, guards and inputs too, is as the plain device leaves it. */
static inline void try_op(struct trial *t)
{
    uint64_t shift = random_bits() % 16;
    uint64_t n = lay_out(t, NULL, shift);
    float *before = malloc(n * sizeof(float));
    float *want = malloc(n * sizeof(float));
    float *got = malloc(n * sizeof(float));

    assert_non_null(before);
    assert_non_null(want);
    assert_non_null(got);
    for (uint64_t i = 0; i < n; i++) {
        before[i] = 12345.0f;
    }
    lay_out(t, before, shift);
    fill_inputs(t, before);
    memcpy(want, before, n * sizeof(float));
    lay_out(t, want, shift);
    run_plain(t);
    for (unsigned int level = 0; level < SIMD_N_LEVELS; level++) {
        if (simd_has((enum simd_level)level)) {
            memcpy(got, before, n * sizeof(float));
            lay_out(t, got, shift);
            close_gaps(t, got, n);
            run_level(t, (enum simd_level)level);
            open_gaps(got, n);
            check_same(t, (enum simd_level)level, got, want, n);
        }
    }
    free(before);
    free(want);
    free(got);
}

static inline void try_dims(uint32_t kind, const char *ranges, uint64_t a,
                            uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                            const float *f)
{
    struct trial t = {
        .op = {.size = sizeof(t.op), .kind = kind, .unit = FSDP_NO_UNIT},
        .ranges = ranges};

    t.op.dim[0] = a;
    t.op.dim[1] = b;
    t.op.dim[2] = c;
    t.op.dim[3] = d;
    t.op.dim[4] = e;
    memcpy(t.op.f, f, sizeof(t.op.f));
    for (unsigned int data = 0; data < N_DATA; data++) {
        t.data = (enum data)data;
        try_op(&t);
    }
    if (kind == FSDP_OP_GEMM) {
        t.op.flags = FSDP_OP_TRANSPOSE_B;
        for (unsigned int data = 0; data < N_DATA; data++) {
            t.data = (enum data)data;
            try_op(&t);
        }
    }
}

static const uint64_t sizes[] = {0,  1,  2,  3,  7,  8,  14, 15,  16,
                                 17, 31, 32, 33, 63, 64, 65, 100, 257};
enum {
    N_SIZES = sizeof(sizes) / sizeof(sizes[0])
};

static const float no_f[8] = {0.3f};

#endif
