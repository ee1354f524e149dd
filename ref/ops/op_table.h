/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_table.h - what the device has to know of each operator, for each level of
 * instructions (ops.h).
 */
#ifndef FSDP_CTS_OP_TABLE_H
#define FSDP_CTS_OP_TABLE_H

#include <fsdp/op.h>

/*
 * over[o] is a set of inputs, bit i for in[i], that out[o] may be: the same
 * range, to the byte. With `in_place` it has to be.
 */
struct ref_operator {
    int (*run)(const struct fsdp_op *op);
    uint32_t n_in, n_out;
    uint32_t over[FSDP_OP_MAX_OUT];
    bool in_place;
};

/* By kind. One without `run` is missing. */
extern const struct ref_operator ref_operators_plain[FSDP_N_OPS];
extern const struct ref_operator ref_operators_fma[FSDP_N_OPS];

#endif
