# SPDX-License-Identifier: Apache-2.0
# The sources of the CUDA device, for the real one and for the emulated one.
set(FSDP_CUDA_KERNELS cuda_attention.cu cuda_attention_backward.cu
    cuda_columns.cu cuda_elementwise.cu cuda_embedding.cu cuda_fold.cu
    cuda_gemm.cu cuda_loss.cu cuda_norm.cu cuda_optimizer.cu)
set(FSDP_CUDA_SOURCES cuda_collective.c cuda_comm.c cuda_copy.c cuda_device.c
    cuda_env.c cuda_host.c cuda_ipc.c cuda_nccl.c cuda_ops.c cuda_ring.c cuda_stream.c
    cuda_trace.c cuda_watch.c)
list(TRANSFORM FSDP_CUDA_KERNELS PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
list(TRANSFORM FSDP_CUDA_SOURCES PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
