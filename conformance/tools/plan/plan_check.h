/* SPDX-License-Identifier: Apache-2.0 */
/* plan_check.h - compares a record with what was planned for its case. */
#ifndef FSDP_CTS_PLAN_CHECK_H
#define FSDP_CTS_PLAN_CHECK_H

#include "tools/plan/plan_bytes.h"

/* Prints a line for each difference of each rank, or one that says how many
 * ranks agree; *n: how many differences there are. For an engine that runs
 * ahead peaks are bounds; whether the order of a training step is that of the
 * simulation is printed, but is no difference. NOMEM. */
int plan_check(const struct plan_ask *ask, const struct plan_bytes *b,
               const struct record *r, uint32_t *n);

#endif
