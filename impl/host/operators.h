/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operators.h - the operators of one level (op.h), one function each. The
 * operators that they are given have passed host_check().
 */
#ifndef FSDP_CTS_OPERATORS_H
#define FSDP_CTS_OPERATORS_H

#include "level.h"
#include "workspace.h"

#include <fsdp/op.h>

/* OK, or NOMEM if the workspace cannot grow. */
typedef int host_operator(const struct fsdp_op *op, struct workspace *ws);

/* The tables of the levels, by kind; NULL for a kind that is not supported. */
extern host_operator *const host_operators_portable[FSDP_N_OPS];
extern host_operator *const host_operators_avx2[FSDP_N_OPS];
extern host_operator *const host_operators_avx512[FSDP_N_OPS];

/* The functions of the level that is being compiled. */
host_operator HOST_NAME(host_fill);
host_operator HOST_NAME(host_scale);
host_operator HOST_NAME(host_add);
host_operator HOST_NAME(host_copy_2d);
host_operator HOST_NAME(host_cast);
host_operator HOST_NAME(host_gemm);
host_operator HOST_NAME(host_gemm_grad);
host_operator HOST_NAME(host_bias);
host_operator HOST_NAME(host_column_sum);
host_operator HOST_NAME(host_relu);
host_operator HOST_NAME(host_relu_backward);
host_operator HOST_NAME(host_gelu);
host_operator HOST_NAME(host_gelu_backward);
host_operator HOST_NAME(host_norm);
host_operator HOST_NAME(host_norm_backward);
host_operator HOST_NAME(host_norm_grad);
host_operator HOST_NAME(host_embedding);
host_operator HOST_NAME(host_embedding_grad);
host_operator HOST_NAME(host_attention);
host_operator HOST_NAME(host_attention_backward);
host_operator HOST_NAME(host_mse);
host_operator HOST_NAME(host_linear_loss);
host_operator HOST_NAME(host_cross_entropy);
host_operator HOST_NAME(host_sgd);
host_operator HOST_NAME(host_momentum);
host_operator HOST_NAME(host_adamw);

#endif
