/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_kernels.h - what the kernels (*.cu) offer to the device and the
 * communicator (*.c): one function for each operator, and the fold.
 *
 * Each enqueues its work on a stream and returns the launches' status. That the
 * ranges are as op.h says has been checked (cuda_ops.c); only ids are checked
 * on the device, where they are.
 */
#ifndef FSDP_CTS_CUDA_KERNELS_H
#define FSDP_CTS_CUDA_KERNELS_H

#include <cuda_runtime_api.h>
#include <fsdp/comm.h>
#include <fsdp/op.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CUDA_MAX_RANKS = 64, /* ranks that a fold takes */
};

/* Where a kernel runs. */
struct cuda_target {
    cudaStream_t stream;
    unsigned int processors; /* multiprocessors of the GPU */
    /* A word that host and GPU see: a kernel that meets an id out of range
     * sets it to 1, writes nothing for that row, and goes on. */
    int *bad_id;
};

/*
 * tree() of op.h and comm.h as a list: part[to[i]] += part[from[i]] for i
 * ascending leaves the sum in part[0]. Kernels then need no recursion, and no
 * stack.
 */
struct cuda_tree {
    unsigned int n; /* of additions */
    unsigned char to[FSDP_MAX_GRAINS];
    unsigned char from[FSDP_MAX_GRAINS];
};

/* 1 <= parts <= FSDP_MAX_GRAINS. */
void cuda_tree_make(struct cuda_tree *tree, unsigned int parts);

/* The parts that ranks sent, in the order in which they are added: comm.h's
 * folds follow this list, or the tree. */
struct cuda_parts {
    const void *part[CUDA_MAX_RANKS];
    unsigned int n;
    unsigned int balanced; /* 1: tree */
    uint32_t dtype;        /* F32, BF16 or F16 */
    uint32_t sum_dtype;    /* that each addition is rounded to: dtype or F32 */
};

/* out[i] = fold of part[*][i]; out may be one of the parts. */
cudaError_t cuda_fold(const struct cuda_target *target,
                      const struct cuda_parts *parts, void *out, uint64_t n);

typedef cudaError_t cuda_operator(const struct fsdp_op *op,
                                  const struct cuda_target *target);

/* cuda_elementwise.cu */
cuda_operator cuda_op_fill, cuda_op_scale, cuda_op_add, cuda_op_copy_2d,
    cuda_op_cast, cuda_op_bias, cuda_op_relu, cuda_op_relu_backward,
    cuda_op_gelu, cuda_op_gelu_backward;
/* cuda_gemm.cu */
cuda_operator cuda_op_gemm, cuda_op_gemm_grad;
/* cuda_columns.cu */
cuda_operator cuda_op_column_sum, cuda_op_norm_grad;
/* cuda_norm.cu */
cuda_operator cuda_op_norm, cuda_op_norm_backward;
/* cuda_loss.cu */
cuda_operator cuda_op_mse, cuda_op_linear_loss, cuda_op_cross_entropy;
/* cuda_embedding.cu */
cuda_operator cuda_op_embedding, cuda_op_embedding_grad;
/* cuda_attention.cu, cuda_attention_backward.cu */
cuda_operator cuda_op_attention, cuda_op_attention_backward;
/* cuda_optimizer.cu */
cuda_operator cuda_op_sgd, cuda_op_momentum, cuda_op_adamw;

/* Each file brings all of its kernels to the current GPU; an error is what the
 * runtime says of the image. */
typedef cudaError_t cuda_loader(void);
cuda_loader cuda_load_attention, cuda_load_attention_backward,
    cuda_load_columns, cuda_load_elementwise, cuda_load_embedding,
    cuda_load_fold, cuda_load_gemm, cuda_load_loss, cuda_load_norm,
    cuda_load_optimizer;

#ifdef __cplusplus
}
#endif
#endif
