/* SPDX-License-Identifier: Apache-2.0 */
/*
 * baselines.h - the unsharded runs that records are compared with, which the
 * suite always makes itself.
 */
#ifndef FSDP_CTS_BASELINES_H
#define FSDP_CTS_BASELINES_H

#include "cases/case.h"
#include "cli/arguments.h"

/* Makes those of these cases in records/baseline/. As supervise. */
int baselines_run(const struct arguments *a, const struct case_list *cases,
                  const char *records, struct fsdp_error *error);

#endif
