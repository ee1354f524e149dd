/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_comm.h - a communicator that takes the streams of the host device, made
 * of one that takes no streams.
 */
#ifndef FSDP_CTS_HOST_COMM_H
#define FSDP_CTS_HOST_COMM_H

#include <fsdp/comm.h>

/* Borrows `real`, which must lie on the host and take no streams: else
 * UNSUPPORTED. NOMEM. */
int host_comm_open(const struct fsdp_comm *real, struct fsdp_comm *out);

/* All collectives must have finished: the streams that were given some are
 * closed, or synchronised. All zero is allowed. */
void host_comm_close(struct fsdp_comm *comm);

/* Blocks until all collectives that were given so far have finished; returns
 * the first failure of those on streams. */
int host_comm_drain(const struct fsdp_comm *comm);

#endif
