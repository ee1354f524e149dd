/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_operator_list.c - which operators are measured, in which shapes, on
 * what data.
 */
#include "tools/bench/bench_operator_list.h"

#include <stdlib.h>
#include <string.h>

const struct bench_operator bench_operator_list[] = {
    {"gemm-1024", FSDP_OP_GEMM, 0, "ac cb | ab", {1024, 1024, 1024}, {0}},
    {"gemm-2048", FSDP_OP_GEMM, 0, "ac cb | ab", {2048, 2048, 2048}, {0}},
    {"gemm-qkv", FSDP_OP_GEMM, 0, "ac cb | ab", {1024, 768, 256}, {0}},
    {"gemm-up", FSDP_OP_GEMM, 0, "ac cb | ab", {1024, 1024, 256}, {0}},
    {"gemm-down", FSDP_OP_GEMM, 0, "ac cb | ab", {1024, 256, 1024}, {0}},
    {"gemm-qkv-dx", FSDP_OP_GEMM, 1, "ac cb | ab", {1024, 256, 768}, {0}},
    {"gemm-up-dx", FSDP_OP_GEMM, 1, "ac cb | ab", {1024, 256, 1024}, {0}},
    {"gemm-down-dx", FSDP_OP_GEMM, 1, "ac cb | ab", {1024, 1024, 256}, {0}},
    {"grad-qkv", FSDP_OP_GEMM_GRAD, 0, "ca cb | ab", {256, 768, 1024, 1}, {0}},
    {"grad-up", FSDP_OP_GEMM_GRAD, 0, "ca cb | ab", {256, 1024, 1024, 1}, {0}},
    {"grad-down",
     FSDP_OP_GEMM_GRAD,
     0,
     "ca cb | ab",
     {1024, 256, 1024, 1},
     {0}},
    {"grad-up-grains",
     FSDP_OP_GEMM_GRAD,
     0,
     "ca cb | ab",
     {256, 1024, 1024, 8},
     {0}},
    {"gemm-64", FSDP_OP_GEMM, 0, "ac cb | ab", {64, 64, 64}, {0}},
    {"attention",
     FSDP_OP_ATTENTION,
     0,
     "abcd3 | abcd abc2",
     {8, 128, 8, 32},
     {0.2f}},
    {"attention-dim-64",
     FSDP_OP_ATTENTION,
     0,
     "abcd3 | abcd abc2",
     {2, 512, 4, 64},
     {0.1f}},
    {"attention-backward",
     FSDP_OP_ATTENTION_BACKWARD,
     0,
     "abcd3 abcd abc2 abcd | abcd3",
     {8, 128, 8, 32},
     {0.2f}},
    {"attention-backward-dim-64",
     FSDP_OP_ATTENTION_BACKWARD,
     0,
     "abcd3 abcd abc2 abcd | abcd3",
     {2, 512, 4, 64},
     {0.1f}},
    {"fill", FSDP_OP_FILL, 0, "| a", {1 << 18}, {1.0f}},
    {"scale", FSDP_OP_SCALE, 0, "a | =0", {1 << 18}, {1.0f}},
    {"add", FSDP_OP_ADD, 0, "a a | a", {1 << 18}, {0}},
    {"to-bf16", FSDP_OP_CAST, 0, "a | a^", {1 << 18}, {0}},
    {"from-bf16", FSDP_OP_CAST, 0, "a^ | a", {1 << 18}, {0}},
    {"to-f16", FSDP_OP_CAST, 0, "a | a~", {1 << 18}, {0}},
    {"from-f16", FSDP_OP_CAST, 0, "a~ | a", {1 << 18}, {0}},
    {"add-bf16", FSDP_OP_ADD, 0, "a^ a^ | =0", {1 << 18}, {0}},
    {"add-f16", FSDP_OP_ADD, 0, "a~ a~ | =0", {1 << 18}, {0}},
    {"add-bf16-to-f32", FSDP_OP_ADD, 0, "a a^ | =0", {1 << 18}, {0}},
    {"bias", FSDP_OP_BIAS, 0, "ab b | ab", {1024, 256}, {0}},
    {"column-sum", FSDP_OP_COLUMN_SUM, 0, "ab | b", {1024, 768, 1}, {0}},
    {"relu", FSDP_OP_RELU, 0, "a | a", {1 << 18}, {0}},
    {"relu-backward", FSDP_OP_RELU_BACKWARD, 0, "a a | a", {1 << 18}, {0}},
    {"gelu", FSDP_OP_GELU, 0, "a | a", {1 << 18}, {0}},
    {"gelu-backward", FSDP_OP_GELU_BACKWARD, 0, "a a | a", {1 << 18}, {0}},
    {"norm", FSDP_OP_NORM, 0, "ab b b | ab a2", {1024, 256}, {1e-5f}},
    {"norm-backward",
     FSDP_OP_NORM_BACKWARD,
     0,
     "ab b a2 ab | ab",
     {1024, 256},
     {0}},
    {"norm-grad", FSDP_OP_NORM_GRAD, 0, "ab a2 ab | b b", {1024, 256, 1}, {0}},
    {"embedding",
     FSDP_OP_EMBEDDING,
     0,
     "a db cb | ab",
     {1024, 256, 128, 256},
     {0}},
    {"embedding-grad",
     FSDP_OP_EMBEDDING_GRAD,
     0,
     "a ab | db cb",
     {1024, 256, 128, 256, 1},
     {0}},
    {"mse", FSDP_OP_MSE, 0, "ab ab | a ab", {1024, 256}, {1.0f}},
    {"linear-loss",
     FSDP_OP_LINEAR_LOSS,
     0,
     "ab ab | a ab",
     {1024, 256},
     {1.0f}},
    {"cross-entropy",
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
    {NULL, 0, 0, NULL, {0}, {0}},
};

static uint64_t numel(const struct bench_operator *b, const char *word)
{
    uint64_t n = 1;

    for (; *word > ' ' && !strchr("^~", *word); word++) {
        n *= *word >= 'a' ? b->dim[*word - 'a'] : (uint64_t)(*word - '0');
    }
    return n;
}

/* Ids are the row's number, in bounds; anything else is in [1/2, 3/2), small
 * enough for every operator to stay finite. */
static void *range(const struct bench_operator *b, const char *word, uint64_t n)
{
    bool ids =
        word[1] == ' ' && word[0] == 'a' &&
        (b->kind == FSDP_OP_EMBEDDING || b->kind == FSDP_OP_EMBEDDING_GRAD ||
         (b->kind == FSDP_OP_CROSS_ENTROPY && word != b->ranges));
    float *p = aligned_alloc(64, (n / 16 + 1) * 64);

    for (uint64_t i = 0; i < n && p; i++) {
        int32_t id = (int32_t)(i * 7 % 256);

        p[i] = 0.5f + (float)(i * 37 % 101) * 0x1p-7f;
        if (ids) {
            memcpy(&p[i], &id, sizeof(id));
        }
    }
    return p;
}

static uint32_t dtype_of(const char *word)
{
    size_t length = strcspn(word, " ");

    return word[length - 1] == '^'   ? FSDP_DTYPE_BF16
           : word[length - 1] == '~' ? FSDP_DTYPE_F16
                                     : FSDP_DTYPE_F32;
}

int bench_operator_make(const struct bench_operator *b, struct fsdp_op *op)
{
    bool out = false;

    *op = (struct fsdp_op){.size = sizeof(*op),
                           .kind = b->kind,
                           .flags = b->flags,
                           .unit = FSDP_NO_UNIT};
    memcpy(op->dim, b->dim, sizeof(b->dim));
    memcpy(op->f, b->f, sizeof(b->f));
    for (const char *word = b->ranges; *word != '\0';) {
        uint64_t n = strchr("=|", *word) ? 0 : numel(b, word);
        void *p = NULL;

        if (*word == '|') {
            out = true;
        } else if (*word == '=') {
            const struct fsdp_in *in = &op->in[word[1] - '0'];

            memcpy(&p, &in->p, sizeof(p));
            op->out[op->n_out++] = (struct fsdp_out){p, in->bytes};
        } else if (!(p = range(b, word, n))) {
            return FSDP_ERR_NOMEM;
        } else {
            uint32_t dtype = dtype_of(word);
            uint32_t place = op->n_in + op->n_out;

            n *= fsdp_dtype_bytes(dtype);
            if (place < 2 && strpbrk(b->ranges, "^~")) {
                op->aux[place] = dtype;
            }
            if (out) {
                op->out[op->n_out++] = (struct fsdp_out){p, n};
            } else {
                op->in[op->n_in++] = (struct fsdp_in){p, n};
            }
        }
        word += strcspn(word, " ");
        word += strspn(word, " ");
    }
    return FSDP_OK;
}

/* The input that an output is; n_in: none. */
static uint32_t in_place(const struct fsdp_op *op, uint32_t o)
{
    uint32_t i = 0;

    while (i < op->n_in && op->in[i].p != op->out[o].p) {
        i++;
    }
    return i;
}

void bench_operator_release(struct fsdp_op *op)
{
    for (uint32_t o = 0; o < op->n_out; o++) {
        if (in_place(op, o) == op->n_in) {
            free(op->out[o].p);
        }
    }
    for (uint32_t i = 0; i < op->n_in; i++) {
        void *p;

        memcpy(&p, &op->in[i].p, sizeof(p));
        free(p);
    }
}

int bench_operator_give(const struct fsdp_op *op, const struct fsdp_device *d,
                        struct fsdp_op *out)
{
    *out = *op;
    out->n_in = 0;
    out->n_out = 0;
    for (uint32_t i = 0; i < op->n_in; i++) {
        void *p = NULL;

        FSDP_TRY(d->alloc(d->self, op->in[i].bytes, &p));
        out->in[out->n_in++] = (struct fsdp_in){p, op->in[i].bytes};
        FSDP_TRY(d->copy(d->self, NULL, p, op->in[i].p, op->in[i].bytes));
    }
    for (uint32_t o = 0; o < op->n_out; o++) {
        uint32_t i = in_place(op, o);
        void *p = NULL;

        if (i < op->n_in) {
            memcpy(&p, &out->in[i].p, sizeof(p));
        } else {
            FSDP_TRY(d->alloc(d->self, op->out[o].bytes, &p));
        }
        out->out[out->n_out++] = (struct fsdp_out){p, op->out[o].bytes};
    }
    return FSDP_OK;
}

void bench_operator_take_back(struct fsdp_op *op, const struct fsdp_device *d)
{
    for (uint32_t o = 0; o < op->n_out; o++) {
        if (in_place(op, o) == op->n_in) {
            d->free(d->self, op->out[o].p);
        }
    }
    for (uint32_t i = 0; i < op->n_in; i++) {
        void *p;

        memcpy(&p, &op->in[i].p, sizeof(p));
        d->free(d->self, p);
    }
    op->n_in = 0;
    op->n_out = 0;
}

/* 2 for each fused multiply and add. 0: measured in bytes. */
double bench_operator_flops(const struct bench_operator *b)
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

double bench_operator_bytes(const struct fsdp_op *op)
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
