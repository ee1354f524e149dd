/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_ops.c - the table of operators: checks the shapes of one and hands it
 * to its kernels. Ids are data of the GPU; kernels check them.
 */
#include "cuda_device.h"

#include "host/host_check.h"

static const struct {
    cuda_operator *run;
    const char *name; /* for profilers */
} operators[FSDP_N_OPS] = {
    [FSDP_OP_FILL] = {cuda_op_fill, "fill"},
    [FSDP_OP_SCALE] = {cuda_op_scale, "scale"},
    [FSDP_OP_ADD] = {cuda_op_add, "add"},
    [FSDP_OP_COPY_2D] = {cuda_op_copy_2d, "copy_2d"},
    [FSDP_OP_CAST] = {cuda_op_cast, "cast"},
    [FSDP_OP_GEMM] = {cuda_op_gemm, "gemm"},
    [FSDP_OP_GEMM_GRAD] = {cuda_op_gemm_grad, "gemm_grad"},
    [FSDP_OP_BIAS] = {cuda_op_bias, "bias"},
    [FSDP_OP_COLUMN_SUM] = {cuda_op_column_sum, "column_sum"},
    [FSDP_OP_RELU] = {cuda_op_relu, "relu"},
    [FSDP_OP_RELU_BACKWARD] = {cuda_op_relu_backward, "relu_backward"},
    [FSDP_OP_GELU] = {cuda_op_gelu, "gelu"},
    [FSDP_OP_GELU_BACKWARD] = {cuda_op_gelu_backward, "gelu_backward"},
    [FSDP_OP_NORM] = {cuda_op_norm, "norm"},
    [FSDP_OP_NORM_BACKWARD] = {cuda_op_norm_backward, "norm_backward"},
    [FSDP_OP_NORM_GRAD] = {cuda_op_norm_grad, "norm_grad"},
    [FSDP_OP_EMBEDDING] = {cuda_op_embedding, "embedding"},
    [FSDP_OP_EMBEDDING_GRAD] = {cuda_op_embedding_grad, "embedding_grad"},
    [FSDP_OP_ATTENTION] = {cuda_op_attention, "attention"},
    [FSDP_OP_ATTENTION_BACKWARD] = {cuda_op_attention_backward,
                                    "attention_backward"},
    [FSDP_OP_MSE] = {cuda_op_mse, "mse"},
    [FSDP_OP_CROSS_ENTROPY] = {cuda_op_cross_entropy, "cross_entropy"},
    [FSDP_OP_SGD] = {cuda_op_sgd, "sgd"},
    [FSDP_OP_MOMENTUM] = {cuda_op_momentum, "momentum"},
    [FSDP_OP_ADAMW] = {cuda_op_adamw, "adamw"},
    [FSDP_OP_LINEAR_LOSS] = {cuda_op_linear_loss, "linear_loss"},
};

/* A GPU ends with an error that sticks where a CPU reads a little slower: so an
 * element that does not lie at a multiple of its size is a wrong operator. Rows
 * of bytes may lie anywhere. */
static bool lies_well(const struct fsdp_op *op, uint32_t range, const void *p,
                      uint64_t bytes)
{
    return bytes == 0 ||
           (uintptr_t)p % fsdp_dtype_bytes(host_range_dtype(op, range)) == 0;
}

static bool all_lie_well(const struct fsdp_op *op)
{
    bool well = true;

    for (uint32_t i = 0; i < op->n_in; i++) {
        well = well && lies_well(op, i, op->in[i].p, op->in[i].bytes);
    }
    for (uint32_t o = 0; o < op->n_out; o++) {
        well =
            well && lies_well(op, op->n_in + o, op->out[o].p, op->out[o].bytes);
    }
    return well || op->kind == FSDP_OP_COPY_2D;
}

int cuda_ops_run(const struct fsdp_op *op, const struct cuda_target *target,
                 cudaError_t *error)
{
    FSDP_TRY(host_check_shape(op));
    if (!operators[op->kind].run) {
        return FSDP_ERR_UNSUPPORTED;
    }
    if (!all_lie_well(op)) {
        return FSDP_ERR_INVALID;
    }
    *error = operators[op->kind].run(op, target);
    return *error == cudaSuccess ? FSDP_OK : FSDP_ERR_DEVICE;
}

cudaError_t cuda_ops_load(void)
{
    static cuda_loader *const loaders[] = {
        cuda_load_attention, cuda_load_attention_backward,
        cuda_load_columns,   cuda_load_elementwise,
        cuda_load_embedding, cuda_load_fold,
        cuda_load_gemm,      cuda_load_loss,
        cuda_load_norm,      cuda_load_optimizer};
    cudaError_t status = cudaSuccess;

    for (size_t i = 0; i < sizeof(loaders) / sizeof(loaders[0]); i++) {
        status = status == cudaSuccess ? loaders[i]() : status;
    }
    return status;
}

const char *cuda_ops_name(uint32_t kind)
{
    return kind < FSDP_N_OPS && operators[kind].name ? operators[kind].name
                                                     : "operator";
}
