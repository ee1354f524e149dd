/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulated_operands.c - TEST ONLY: stands before cuda_ops_run. A kernel of the
 * emulation could read all memory of the process; one of a GPU ends with an
 * illegal address where a range of its operator is the host's. So operators are
 * looked at before they are given out.
 */
#include "emulated_operands.h"

#include "emulated.h"

#include <stdio.h>

static bool on_device(const void *p, uint64_t bytes)
{
    return bytes == 0 || emulated_place(p, bytes) == EMULATED_DEVICE;
}

static bool all_on_device(const struct fsdp_op *op)
{
    bool all = true;

    for (uint32_t i = 0; i < op->n_in && i < FSDP_OP_MAX_IN; i++) {
        all = all && on_device(op->in[i].p, op->in[i].bytes);
    }
    for (uint32_t o = 0; o < op->n_out && o < FSDP_OP_MAX_OUT; o++) {
        all = all && on_device(op->out[o].p, op->out[o].bytes);
    }
    return all;
}

int emulated_ops_run(const struct fsdp_op *op, const struct cuda_target *target,
                     cudaError_t *error)
{
    if (!all_on_device(op)) {
        fprintf(stderr,
                "emulated CUDA: operator %u has a range that is in no "
                "allocation of the device\n",
                op->kind);
        emulated_break(cudaErrorIllegalAddress);
    }
    return cuda_ops_run(op, target, error);
}
