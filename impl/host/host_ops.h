/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_ops.h - the operators of profile "f32-fma" (op.h) on the host.
 *
 * Bits do not depend on the level, nor on where the ranges lie. All state is in
 * struct host_ops; threads that run at once need one each.
 */
#ifndef FSDP_CTS_HOST_OPS_H
#define FSDP_CTS_HOST_OPS_H

#include "simd.h"

#include <fsdp/op.h>

struct host_ops;

/* UNSUPPORTED for a level that this build or processor does not have, NOMEM. */
int host_ops_create(enum simd_level level, struct host_ops **out);

/* NULL is allowed. */
void host_ops_destroy(struct host_ops *ops);

/*
 * Runs an operator; it has finished when this returns. INVALID, before
 * anything is written, if the ranges are not what op.h says; UNSUPPORTED for
 * NORM_SUM and for dtypes that CAST, ADD and SCALE do not have; NOMEM if
 * scratch memory cannot grow.
 */
int host_ops_run(struct host_ops *ops, const struct fsdp_op *op);

#endif
