/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_ops.c - how fast the operators are:
 *
 *     bench_ops [level [part of an operator's name]]
 *
 * GFLOP/s of the matrix operators and, if libopenblas.so.0 is there, the ratio
 * to its sgemm on one thread; GB/s, read and written, of the others. Runs of
 * the two sides alternate and the ratio is the median of the pairs' ratios, so
 * that what else the machine does falls on both.
 */
#include "host_ops.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ROUNDS = 15
};

/* The thread's own time: on a machine that is shared, what others are given
 * does not count. */
static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;

    return (*x > *y) - (*x < *y);
}

static double median(double *x, size_t n)
{
    qsort(x, n, sizeof(*x), ascending);
    return x[n / 2];
}

/* cblas_sgemm, in its own words. */
typedef void sgemm(int order, int trans_a, int trans_b, int m, int n, int k,
                   float alpha, const float *a, int lda, const float *b,
                   int ldb, float beta, float *c, int ldc);
enum {
    ROW_MAJOR = 101,
    NO_TRANS = 111,
    TRANS = 112
};

static sgemm *open_blas(void)
{
    void *library = dlopen("libopenblas.so.0", RTLD_NOW);
    void (*set_threads)(int) = NULL;
    sgemm *function = NULL;
    void *symbol;

    if (library == NULL) {
        return NULL;
    }
    /* ISO C has no cast from an object to a function. */
    symbol = dlsym(library, "openblas_set_num_threads");
    memcpy(&set_threads, &symbol, sizeof(symbol));
    symbol = dlsym(library, "cblas_sgemm");
    memcpy(&function, &symbol, sizeof(symbol));
    if (set_threads != NULL) {
        set_threads(1);
    }
    return function;
}

/* An operator with ranges of its own; words as in host_check.c, =0: in place.
 */
struct bench {
    const char *name;
    uint32_t kind, flags;
    const char *ranges;
    uint64_t dim[5];
    float f[8];
};

static const struct bench benches[] = {
    {"gemm 1024^3", FSDP_OP_GEMM, 0, "ac cb | ab", {1024, 1024, 1024}, {0}},
    {"gemm 2048^3", FSDP_OP_GEMM, 0, "ac cb | ab", {2048, 2048, 2048}, {0}},
    {"gemm qkv", FSDP_OP_GEMM, 0, "ac cb | ab", {1024, 768, 256}, {0}},
    {"gemm up", FSDP_OP_GEMM, 0, "ac cb | ab", {1024, 1024, 256}, {0}},
    {"gemm down", FSDP_OP_GEMM, 0, "ac cb | ab", {1024, 256, 1024}, {0}},
    {"gemm qkv dx", FSDP_OP_GEMM, 1, "ac cb | ab", {1024, 256, 768}, {0}},
    {"gemm up dx", FSDP_OP_GEMM, 1, "ac cb | ab", {1024, 256, 1024}, {0}},
    {"gemm down dx", FSDP_OP_GEMM, 1, "ac cb | ab", {1024, 1024, 256}, {0}},
    {"grad qkv", FSDP_OP_GEMM_GRAD, 0, "ca cb | ab", {256, 768, 1024, 1}, {0}},
    {"grad up", FSDP_OP_GEMM_GRAD, 0, "ca cb | ab", {256, 1024, 1024, 1}, {0}},
    {"grad down",
     FSDP_OP_GEMM_GRAD,
     0,
     "ca cb | ab",
     {1024, 256, 1024, 1},
     {0}},
    {"grad up, 8 grains",
     FSDP_OP_GEMM_GRAD,
     0,
     "ca cb | ab",
     {256, 1024, 1024, 8},
     {0}},
    {"gemm 64^3", FSDP_OP_GEMM, 0, "ac cb | ab", {64, 64, 64}, {0}},
    {"attention",
     FSDP_OP_ATTENTION,
     0,
     "abcd3 | abcd abc2",
     {8, 128, 8, 32},
     {0.2f}},
    {"attention, dim 64",
     FSDP_OP_ATTENTION,
     0,
     "abcd3 | abcd abc2",
     {2, 512, 4, 64},
     {0.1f}},
    {"attention backward",
     FSDP_OP_ATTENTION_BACKWARD,
     0,
     "abcd3 abcd abc2 abcd | abcd3",
     {8, 128, 8, 32},
     {0.2f}},
    {"attention backward, dim 64",
     FSDP_OP_ATTENTION_BACKWARD,
     0,
     "abcd3 abcd abc2 abcd | abcd3",
     {2, 512, 4, 64},
     {0.1f}},
    {"fill", FSDP_OP_FILL, 0, "| a", {1 << 18}, {1.0f}},
    {"scale", FSDP_OP_SCALE, 0, "a | =0", {1 << 18}, {1.0f}},
    {"add", FSDP_OP_ADD, 0, "a a | a", {1 << 18}, {0}},
    {"bias", FSDP_OP_BIAS, 0, "ab b | ab", {1024, 256}, {0}},
    {"column sum", FSDP_OP_COLUMN_SUM, 0, "ab | b", {1024, 768, 1}, {0}},
    {"relu", FSDP_OP_RELU, 0, "a | a", {1 << 18}, {0}},
    {"relu backward", FSDP_OP_RELU_BACKWARD, 0, "a a | a", {1 << 18}, {0}},
    {"gelu", FSDP_OP_GELU, 0, "a | a", {1 << 18}, {0}},
    {"gelu backward", FSDP_OP_GELU_BACKWARD, 0, "a a | a", {1 << 18}, {0}},
    {"norm", FSDP_OP_NORM, 0, "ab b b | ab a2", {1024, 256}, {1e-5f}},
    {"norm backward",
     FSDP_OP_NORM_BACKWARD,
     0,
     "ab b a2 ab | ab",
     {1024, 256},
     {0}},
    {"norm grad", FSDP_OP_NORM_GRAD, 0, "ab a2 ab | b b", {1024, 256, 1}, {0}},
    {"embedding",
     FSDP_OP_EMBEDDING,
     0,
     "a db cb | ab",
     {1024, 256, 128, 256},
     {0}},
    {"embedding grad",
     FSDP_OP_EMBEDDING_GRAD,
     0,
     "a ab | db cb",
     {1024, 256, 128, 256, 1},
     {0}},
    {"mse", FSDP_OP_MSE, 0, "ab ab | a ab", {1024, 256}, {1.0f}},
    {"linear loss",
     FSDP_OP_LINEAR_LOSS,
     0,
     "ab ab | a ab",
     {1024, 256},
     {1.0f}},
    {"cross entropy",
     FSDP_OP_CROSS_ENTROPY,
     0,
     "ab a | a ab",
     {1024, 256},
     {1.0f}},
    {"sgd", FSDP_OP_SGD, 0, "a a | =0", {1 << 18}, {1e-9f, 0.1f}},
    {"momentum",
     FSDP_OP_MOMENTUM,
     0,
     "a a a | =0 =2",
     {1 << 18},
     {1e-9f, 0.1f, 0.9f}},
    {"adamw",
     FSDP_OP_ADAMW,
     0,
     "a a a a | =0 =2 =3",
     {1 << 18},
     {1e-9f, 0.1f, 0.9f, 0.999f, 1e-8f, 0.5f, 0.5f}},
};

static uint64_t numel(const struct bench *b, const char *word)
{
    uint64_t n = 1;

    for (; *word > ' '; word++) {
        n *= *word >= 'a' ? b->dim[*word - 'a'] : (uint64_t)(*word - '0');
    }
    return n;
}

/* Ids are the row's number, in bounds; anything else is in [1/2, 3/2), small
 * enough for every operator to stay finite. */
static void *range(const struct bench *b, const char *word, uint64_t n)
{
    bool ids =
        word[1] == ' ' && word[0] == 'a' &&
        (b->kind == FSDP_OP_EMBEDDING || b->kind == FSDP_OP_EMBEDDING_GRAD ||
         (b->kind == FSDP_OP_CROSS_ENTROPY && word != b->ranges));
    float *p = aligned_alloc(64, (n / 16 + 1) * 64);

    for (uint64_t i = 0; i < n && p != NULL; i++) {
        int32_t id = (int32_t)(i * 7 % 256);

        p[i] = 0.5f + (float)(i * 37 % 101) * 0x1p-7f;
        if (ids) {
            memcpy(&p[i], &id, sizeof(id));
        }
    }
    return p;
}

static int make(const struct bench *b, struct fsdp_op *op)
{
    bool out = false;

    *op = (struct fsdp_op){.size = sizeof(*op),
                           .kind = b->kind,
                           .flags = b->flags,
                           .unit = FSDP_NO_UNIT};
    memcpy(op->dim, b->dim, sizeof(b->dim));
    memcpy(op->f, b->f, sizeof(b->f));
    for (const char *word = b->ranges; *word != '\0';) {
        uint64_t n = strchr("=|", *word) != NULL ? 0 : numel(b, word);
        void *p = NULL;

        if (*word == '|') {
            out = true;
        } else if (*word == '=') {
            const struct fsdp_in *in = &op->in[word[1] - '0'];

            memcpy(&p, &in->p, sizeof(p));
            op->out[op->n_out++] = (struct fsdp_out){p, in->bytes};
        } else if ((p = range(b, word, n)) == NULL) {
            return FSDP_ERR_NOMEM;
        } else if (out) {
            op->out[op->n_out++] = (struct fsdp_out){p, n * 4};
        } else {
            op->in[op->n_in++] = (struct fsdp_in){p, n * 4};
        }
        word += strcspn(word, " ");
        word += strspn(word, " ");
    }
    return FSDP_OK;
}

static void unmake(struct fsdp_op *op)
{
    for (uint32_t o = 0; o < op->n_out; o++) {
        bool in_place = false;

        for (uint32_t i = 0; i < op->n_in; i++) {
            in_place = in_place || op->in[i].p == op->out[o].p;
        }
        if (!in_place) {
            free(op->out[o].p);
        }
    }
    for (uint32_t i = 0; i < op->n_in; i++) {
        void *p;

        memcpy(&p, &op->in[i].p, sizeof(p));
        free(p);
    }
}

/* 2 for each fused multiply and add. 0: measured in bytes. */
static double flops(const struct bench *b)
{
    const uint64_t *d = b->dim;
    double pairs = (double)d[0] * (double)d[1] * (double)(d[1] + 1) / 2 *
                   (double)d[2] * (double)d[3];

    switch (b->kind) {
    case FSDP_OP_GEMM:
    case FSDP_OP_GEMM_GRAD:
        return 2.0 * (double)d[0] * (double)d[1] * (double)d[2];
    case FSDP_OP_ATTENTION:
        return 4.0 * pairs;
    case FSDP_OP_ATTENTION_BACKWARD:
        return 10.0 * pairs;
    default:
        return 0.0;
    }
}

static double bytes(const struct fsdp_op *op)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < op->n_in; i++) {
        sum += op->in[i].bytes;
    }
    for (uint32_t o = 0; o < op->n_out; o++) {
        sum += op->out[o].bytes;
    }
    return (double)sum;
}

static void run_blas(sgemm *blas, const struct fsdp_op *op)
{
    int m = (int)op->dim[0];
    int n = (int)op->dim[1];
    int k = (int)op->dim[2];
    bool grad = op->kind == FSDP_OP_GEMM_GRAD;
    bool turned = (op->flags & FSDP_OP_TRANSPOSE_B) != 0;

    blas(ROW_MAJOR, grad ? TRANS : NO_TRANS, turned ? TRANS : NO_TRANS, m, n, k,
         1.0f, op->in[0].p, grad ? m : k, op->in[1].p, turned ? k : n, 0.0f,
         op->out[0].p, n);
}

/* Seconds of one run, from `repeat` of them; of sgemm if there is `blas`. */
static double seconds(struct host_ops *ops, sgemm *blas,
                      const struct fsdp_op *op, int repeat)
{
    double start = now();

    for (int i = 0; i < repeat; i++) {
        if (blas != NULL) {
            run_blas(blas, op);
        } else if (host_ops_run(ops, op) != FSDP_OK) {
            return -1.0;
        }
    }
    return (now() - start) / repeat;
}

static void measure(const struct bench *b, struct host_ops *ops,
                    enum simd_level level, sgemm *blas)
{
    bool compare = blas != NULL &&
                   (b->kind == FSDP_OP_GEMM || b->kind == FSDP_OP_GEMM_GRAD);
    double time[ROUNDS];
    double ratio[ROUNDS];
    struct fsdp_op op;
    double once;
    int repeat;

    if (make(b, &op) != FSDP_OK) {
        printf("%-9s %-26s no memory\n", simd_name(level), b->name);
        return;
    }
    (void)seconds(ops, NULL, &op, 1); /* warms the caches */
    once = seconds(ops, NULL, &op, 1);
    repeat = once < 0.01 ? (int)(0.01 / once) + 1 : 1;
    for (int i = 0; i < ROUNDS; i++) {
        time[i] = seconds(ops, NULL, &op, repeat);
        ratio[i] = compare ? seconds(NULL, blas, &op, repeat) / time[i] : 0.0;
    }
    once = median(time, ROUNDS);
    printf("%-9s %-26s %7.1f %s", simd_name(level), b->name,
           (flops(b) > 0 ? flops(b) : bytes(&op)) / once * 1e-9,
           flops(b) > 0 ? "GFLOP/s" : "GB/s   ");
    if (compare) {
        printf("  %5.3f of OpenBLAS", median(ratio, ROUNDS));
    }
    printf("\n");
    fflush(stdout);
    unmake(&op);
}

int main(int argc, char **argv)
{
    const char *level_name = argc > 1 ? argv[1] : "";
    const char *part = argc > 2 ? argv[2] : "";
    sgemm *blas = open_blas();

    for (unsigned int i = SIMD_N_LEVELS; i-- > 0;) {
        enum simd_level level = (enum simd_level)i;
        struct host_ops *ops;

        if (strstr(simd_name(level), level_name) == NULL) {
            continue;
        }
        if (host_ops_create(level, &ops) != FSDP_OK) {
            printf("%-9s is not to be had here\n", simd_name(level));
            continue;
        }
        for (size_t b = 0; b < sizeof(benches) / sizeof(benches[0]); b++) {
            if (strstr(benches[b].name, part) != NULL) {
                measure(&benches[b], ops, level, blas);
            }
        }
        host_ops_destroy(ops);
    }
    return 0;
}
