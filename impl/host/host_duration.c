/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_duration.c - an operator's time is estimated from two things: the bytes
 * that it reads and writes, and the products that it sums up.
 */
#include "host_duration.h"

enum {
    CALL_NS = 100,
    BYTES_A_NS = 10,
    PRODUCTS_A_NS = 30,
    LONGEST_NS = 1000000000,
};

/* Computed in double, where no product of dimensions overflows. */
static uint64_t whole(double ns)
{
    return ns < LONGEST_NS ? (uint64_t)ns : LONGEST_NS;
}

static double products_of(const struct fsdp_op *op)
{
    const uint64_t *d = op->dim;

    switch (op->kind) {
    case FSDP_OP_GEMM:
    case FSDP_OP_GEMM_GRAD:
        return (double)d[0] * (double)d[1] * (double)d[2];
    case FSDP_OP_ATTENTION: /* two products, each over a triangle */
        return (double)d[0] * (double)d[1] * (double)d[1] * (double)d[2] *
               (double)d[3];
    case FSDP_OP_ATTENTION_BACKWARD: /* five of them */
        return 2.5 * (double)d[0] * (double)d[1] * (double)d[1] * (double)d[2] *
               (double)d[3];
    default:
        return 0;
    }
}

uint64_t host_duration_of(const struct fsdp_op *op)
{
    double bytes = 0;

    for (uint32_t i = 0; i < op->n_in && i < FSDP_OP_MAX_IN; i++) {
        bytes += (double)op->in[i].bytes;
    }
    for (uint32_t i = 0; i < op->n_out && i < FSDP_OP_MAX_OUT; i++) {
        bytes += (double)op->out[i].bytes;
    }
    return whole(CALL_NS + bytes / BYTES_A_NS +
                 products_of(op) / PRODUCTS_A_NS);
}

uint64_t host_duration_of_copy(uint64_t bytes)
{
    return whole(CALL_NS + 2 * (double)bytes / BYTES_A_NS);
}
