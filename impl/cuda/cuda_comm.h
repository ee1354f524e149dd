/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_comm.h - the communicator on CUDA: collectives of comm.h on streams,
 * over one transport for each dimension of the mesh.
 *
 * Folds are ours: members send each other raw parts, in chunks that fit into
 * staging memory, and a kernel adds them in the order that comm.h names. So the
 * order is that of ranks, whatever the library and the wiring are. Under RING
 * the transport's own reduce-scatter is used where a trial has shown that it
 * has the same order.
 *
 * It does not compare what members ask for. Members that call different
 * collectives hang, and the watch ends that.
 */
#ifndef FSDP_CTS_CUDA_COMM_H
#define FSDP_CTS_CUDA_COMM_H

#include "cuda_transport.h"

/* Collective. `shares`: ranks share GPUs of one host, and CUDA IPC moves what
 * NCCL would move otherwise. FSDP_CUDA_STAGING in the environment is the number
 * of bytes of a dimension's staging memory; without it 32 MiB. */
int cuda_comm_open(const struct fsdp_env *env, struct cuda_device *device,
                   struct cuda_watch *watch, bool shares,
                   struct fsdp_comm *out);
/* All zero is allowed. */
void cuda_comm_close(struct fsdp_comm *comm);

#endif
