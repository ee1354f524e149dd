/* SPDX-License-Identifier: Apache-2.0 */
/*
 * impl_windows.h - the windows of units in a call sequence (model.h).
 */
#ifndef FSDP_CTS_IMPL_WINDOWS_H
#define FSDP_CTS_IMPL_WINDOWS_H

#include "impl_schedule.h"

enum {
    IMPL_BEGINS = 1,
    IMPL_ENDS = 2, /* not set where a unit is kept for its backward */
    IMPL_BACKWARD = 4,
};

/* Writes these bits for each of the sequence's n points. scratch: two
 * numbers a unit. INVALID: see impl_plan_make. */
int impl_windows(const struct impl_schedule *x,
                 const struct fsdp_sequence *sequence, uint8_t *window,
                 uint32_t *scratch, const char **what);

#endif
