/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_operator_list.h - the operators that are measured.
 */
#ifndef FSDP_CTS_BENCH_OPERATOR_LIST_H
#define FSDP_CTS_BENCH_OPERATOR_LIST_H

#include <fsdp/device.h>
#include <fsdp/op.h>

/* An operator and its ranges: a word for each, a letter for a dimension, digits
 * for numbers; =0: in place. Elements are float32; with ^ behind the word they
 * are bf16, with ~ f16, and the operator's dtypes say so. */
struct bench_operator {
    const char *name;
    uint32_t kind, flags;
    const char *ranges;
    uint64_t dim[5];
    float f[8];
};

/* Ends with a NULL name. */
extern const struct bench_operator bench_operator_list[];

/* Fills in op, with ranges from malloc. NOMEM. */
int bench_operator_make(const struct bench_operator *b, struct fsdp_op *op);
void bench_operator_release(struct fsdp_op *op); /* any state */

/* The same with ranges on the device, which have the same content. */
int bench_operator_give(const struct fsdp_op *op,
                        const struct fsdp_device *device, struct fsdp_op *out);
void bench_operator_take_back(struct fsdp_op *op, /* any state */
                              const struct fsdp_device *device);

/* 2 for each fused multiply-add. 0: the operator is measured in bytes. */
double bench_operator_flops(const struct bench_operator *b);
/* Bytes that are read or written. */
double bench_operator_bytes(const struct fsdp_op *op);

#endif
