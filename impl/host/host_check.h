/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_check.h - checks an operator against op.h, once, before the operators of
 * a level run, which then trust it.
 */
#ifndef FSDP_CTS_HOST_CHECK_H
#define FSDP_CTS_HOST_CHECK_H

#include <fsdp/op.h>

/* OK, INVALID, or UNSUPPORTED for an unknown kind or dtype. */
int host_check(const struct fsdp_op *op);

/* The same except for ids, for a device whose memory the host cannot read. */
int host_check_shape(const struct fsdp_op *op);

/* The dtype of a range, counted through in[] and then out[], of operators that
 * take several dtypes. */
uint32_t host_range_dtype(const struct fsdp_op *op, uint32_t range);

#endif
