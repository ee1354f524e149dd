/* SPDX-License-Identifier: Apache-2.0 */
/* meter_internal.h - shared by meter.c and meter_hand_on.c, and by nobody
 * else. */
#ifndef FSDP_CTS_METER_INTERNAL_H
#define FSDP_CTS_METER_INTERNAL_H

#include "run/witness/meter.h"

/* The storage that a range lies in; NULL: none. */
struct meter_block *meter_find_block(struct meter *m, const void *p,
                                     uint64_t bytes);
/* Sets those functions of a handle that neither give storage nor say what is
 * live. */
void meter_hand_on(struct fsdp_device *d);

#endif
