/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_check.h - is an operator what op.h says it is? Asked once, before any of
 * the levels' operators, which then trust it.
 */
#ifndef FSDP_CTS_HOST_CHECK_H
#define FSDP_CTS_HOST_CHECK_H

#include <fsdp/op.h>

/* OK, INVALID, or UNSUPPORTED for a kind or a dtype that there is not. */
int host_check(const struct fsdp_op *op);

/* The same but for ids, for a device whose memory the host does not see. */
int host_check_shape(const struct fsdp_op *op);

/* The dtype of a range, in[] and then out[], of an operator of these kinds. */
uint32_t host_range_dtype(const struct fsdp_op *op, uint32_t range);

#endif
