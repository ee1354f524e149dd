/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_windows.h - the windows of units in a call sequence (model.h).
 */
#ifndef FSDP_CTS_IMPL_WINDOWS_H
#define FSDP_CTS_IMPL_WINDOWS_H

#include "impl_schedule.h"

/* A point of a sequence, for one of the units whose windows it may begin or
 * end; the unit is FSDP_NO_UNIT if there is none. */
struct impl_stop {
    uint32_t point, unit;
};

enum {
    IMPL_BEGINS = 1,
    IMPL_ENDS = 2, /* not set where a unit is kept for its backward */
    IMPL_BACKWARD = 4,
};

/* The stops of a sequence in its order, and those of one point by unit; each
 * point has at least one. *out is malloc'ed, the caller's. INVALID: see
 * impl_plan_make. NOMEM. */
int impl_stops(const struct impl_schedule *x,
               const struct fsdp_sequence *sequence, struct impl_stop **out,
               uint32_t *n, const char **what);

/* Writes these bits for each of n stops. scratch: two numbers a unit. INVALID:
 * see impl_plan_make. */
int impl_windows(const struct impl_schedule *x,
                 const struct fsdp_sequence *sequence,
                 const struct impl_stop *stop, uint32_t n, uint8_t *window,
                 uint32_t *scratch, const char **what);

#endif
