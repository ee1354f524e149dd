/* SPDX-License-Identifier: Apache-2.0 */
/* own_walk.h - which collectives a pass needs, and which it made. */
#ifndef FSDP_CTS_OWN_WALK_H
#define FSDP_CTS_OWN_WALK_H

#include "tools/check/own_record.h"

struct own_counts {
    uint32_t gathers[2]; /* in the forward, in the backward */
    uint32_t least[2];   /* if units that an evaluation left whole stay so */
    uint32_t reductions;
    uint32_t backwards; /* how often its output got a gradient */
};

/* For each unit in the pass (step, microbatch, rank) of *pass: the collectives
 * that must be there, from the unsharded run; false: out of memory. And those
 * that were there. Both add to `out`. */
bool own_walk_pass(const struct own_set *s, const struct own_event *pass,
                   struct own_counts *out);
void own_count_pass(const struct own_set *s, const struct own_event *pass,
                    struct own_counts *out);

/* Elements of a rank's part of a unit, with its padding: of all parameters, or
 * of those with a gradient. */
uint64_t own_unit_elements(const struct own_set *s,
                           const struct own_event *pass, uint32_t unit,
                           bool gradients);

#endif
