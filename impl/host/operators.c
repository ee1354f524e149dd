/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operators.c - the table of the operators of one level.
 */
#include "operators.h"

host_operator *const HOST_NAME(host_operators)[FSDP_N_OPS] = {
    [FSDP_OP_FILL] = HOST_NAME(host_fill),
    [FSDP_OP_SCALE] = HOST_NAME(host_scale),
    [FSDP_OP_ADD] = HOST_NAME(host_add),
    [FSDP_OP_COPY_2D] = HOST_NAME(host_copy_2d),
    [FSDP_OP_CAST] = HOST_NAME(host_cast),
    [FSDP_OP_GEMM] = HOST_NAME(host_gemm),
    [FSDP_OP_GEMM_GRAD] = HOST_NAME(host_gemm_grad),
    [FSDP_OP_BIAS] = HOST_NAME(host_bias),
    [FSDP_OP_COLUMN_SUM] = HOST_NAME(host_column_sum),
    [FSDP_OP_RELU] = HOST_NAME(host_relu),
    [FSDP_OP_RELU_BACKWARD] = HOST_NAME(host_relu_backward),
    [FSDP_OP_GELU] = HOST_NAME(host_gelu),
    [FSDP_OP_GELU_BACKWARD] = HOST_NAME(host_gelu_backward),
    [FSDP_OP_NORM] = HOST_NAME(host_norm),
    [FSDP_OP_NORM_BACKWARD] = HOST_NAME(host_norm_backward),
    [FSDP_OP_NORM_GRAD] = HOST_NAME(host_norm_grad),
    [FSDP_OP_EMBEDDING] = HOST_NAME(host_embedding),
    [FSDP_OP_EMBEDDING_GRAD] = HOST_NAME(host_embedding_grad),
    [FSDP_OP_ATTENTION] = HOST_NAME(host_attention),
    [FSDP_OP_ATTENTION_BACKWARD] = HOST_NAME(host_attention_backward),
    [FSDP_OP_MSE] = HOST_NAME(host_mse),
    [FSDP_OP_LINEAR_LOSS] = HOST_NAME(host_linear_loss),
    [FSDP_OP_CROSS_ENTROPY] = HOST_NAME(host_cross_entropy),
    [FSDP_OP_SGD] = HOST_NAME(host_sgd),
    [FSDP_OP_MOMENTUM] = HOST_NAME(host_momentum),
    [FSDP_OP_ADAMW] = HOST_NAME(host_adamw),
};
