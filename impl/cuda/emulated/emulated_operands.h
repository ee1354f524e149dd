/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated_operands.h - TEST ONLY: takes the place of cuda_ops_run in
 * cuda_device.c.
 */
#ifndef FSDP_CTS_EMULATED_OPERANDS_H
#define FSDP_CTS_EMULATED_OPERANDS_H

#include "cuda/cuda_device.h"

int emulated_ops_run(const struct fsdp_op *op, const struct cuda_target *target,
                     cudaError_t *error);

#endif
