/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_duration.h - about how long work will take on the host, in nanoseconds.
 * It only decides whether a thread is worth waking, so twice too long or too
 * short does no harm.
 */
#ifndef FSDP_CTS_HOST_DURATION_H
#define FSDP_CTS_HOST_DURATION_H

#include <fsdp/op.h>

/* Its ranges need not have been checked. At most a second. */
uint64_t host_duration_of(const struct fsdp_op *op);

uint64_t host_duration_of_copy(uint64_t bytes);

#endif
