/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_merge.h - makes one trace of the traces of all ranks.
 */
#ifndef FSDP_CTS_TRACE_MERGE_H
#define FSDP_CTS_TRACE_MERGE_H

#include "cases/case.h"

/* Puts the traces that the ranks of a case left in its folder below `records`
 * into one file of Chrome's trace format (open it in Perfetto). It is written
 * as file.partial and renamed. IO: says which file. */
int trace_merge(const char *records, const struct run_case *c,
                const char *engine, const char *file, struct fsdp_error *error);

#endif
