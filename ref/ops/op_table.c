/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_table.c - the operators of one level.
 */
#include "op_table.h"

#include "ops.h"

enum {
    IN_0 = 1u << 0,
    IN_1 = 1u << 1,
    IN_2 = 1u << 2,
    IN_3 = 1u << 3
};

/* NORM_SUM is missing. */
const struct ref_operator REF_NAME(ref_operators)[FSDP_N_OPS] = {
    [FSDP_OP_FILL] = {REF_NAME(ref_fill), 0, 1, {0}, false},
    [FSDP_OP_SCALE] = {REF_NAME(ref_scale), 1, 1, {IN_0}, true},
    [FSDP_OP_ADD] = {REF_NAME(ref_add), 2, 1, {IN_0 | IN_1}, false},
    [FSDP_OP_COPY_2D] = {REF_NAME(ref_copy_2d), 1, 1, {0}, false},
    [FSDP_OP_CAST] = {REF_NAME(ref_cast), 1, 1, {0}, false},
    [FSDP_OP_GEMM] = {REF_NAME(ref_gemm), 2, 1, {0}, false},
    [FSDP_OP_GEMM_GRAD] = {REF_NAME(ref_gemm_grad), 2, 1, {0}, false},
    [FSDP_OP_BIAS] = {REF_NAME(ref_bias), 2, 1, {IN_0}, false},
    [FSDP_OP_COLUMN_SUM] = {REF_NAME(ref_column_sum), 1, 1, {0}, false},
    [FSDP_OP_RELU] = {REF_NAME(ref_relu), 1, 1, {IN_0}, false},
    [FSDP_OP_RELU_BACKWARD] =
        {REF_NAME(ref_relu_backward), 2, 1, {IN_1}, false},
    [FSDP_OP_GELU] = {REF_NAME(ref_gelu), 1, 1, {0}, false},
    [FSDP_OP_GELU_BACKWARD] =
        {REF_NAME(ref_gelu_backward), 2, 1, {IN_1}, false},
    [FSDP_OP_NORM] = {REF_NAME(ref_norm), 3, 2, {0}, false},
    [FSDP_OP_NORM_BACKWARD] = {REF_NAME(ref_norm_backward), 4, 1, {0}, false},
    [FSDP_OP_NORM_GRAD] = {REF_NAME(ref_norm_grad), 3, 2, {0}, false},
    [FSDP_OP_EMBEDDING] = {REF_NAME(ref_embedding), 3, 1, {0}, false},
    [FSDP_OP_EMBEDDING_GRAD] = {REF_NAME(ref_embedding_grad), 2, 2, {0}, false},
    [FSDP_OP_ATTENTION] = {REF_NAME(ref_attention), 1, 2, {0}, false},
    [FSDP_OP_ATTENTION_BACKWARD] =
        {REF_NAME(ref_attention_backward), 4, 1, {0}, false},
    [FSDP_OP_MSE] = {REF_NAME(ref_mse), 2, 2, {0}, false},
    [FSDP_OP_CROSS_ENTROPY] =
        {REF_NAME(ref_cross_entropy), 2, 2, {0, IN_0}, false},
    [FSDP_OP_SGD] = {REF_NAME(ref_sgd), 2, 1, {IN_0}, true},
    [FSDP_OP_MOMENTUM] = {REF_NAME(ref_momentum), 3, 2, {IN_0, IN_2}, true},
    [FSDP_OP_ADAMW] = {REF_NAME(ref_adamw), 4, 3, {IN_0, IN_2, IN_3}, true},
    [FSDP_OP_LINEAR_LOSS] = {REF_NAME(ref_linear_loss), 2, 2, {0}, false},
};
