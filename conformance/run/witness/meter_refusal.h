/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meter_refusal.h - says in words why a device or a communicator did not do
 * what it was asked, as neither has a place for that. And a range that leaves
 * its allocation, which would damage the heap, is refused before it is used.
 */
#ifndef FSDP_CTS_METER_REFUSAL_H
#define FSDP_CTS_METER_REFUSAL_H

#include <fsdp/engine.h>

struct meter;

/* INVALID, and says in m->env->error which range it is, if a range begins in an
 * allocation and ends beyond it. Ranges that begin in no allocation of this
 * meter are not looked at. */
int refusal_of_operator_ranges(const struct meter *m, bool is_model,
                               const struct fsdp_op *op);
int refusal_of_copy_ranges(const struct meter *m, bool is_model, const void *to,
                           const void *from, uint64_t bytes);
/* `extent`: ranks of the group. A buffer that is NULL is refused, too. */
int refusal_of_collective(const struct meter *m, uint32_t extent,
                          const struct fsdp_collective *c);

/* The device answered INVALID: says what it refused, and why, as far as that
 * can be seen. */
void refusal_by_device(const struct meter *m, bool is_model,
                       const struct fsdp_op *op);
void refusal_of_copy(const struct meter *m, bool is_model, const void *to,
                     const void *from, uint64_t bytes);

#endif
