/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_expected.h - the part of a trace that is not from the run: what the
 * oracle expects, shown beside what happened. The oracle is asked after the
 * engine has ended, and its answer goes into the trace alone. Internal to
 * trace*.c.
 */
#ifndef FSDP_CTS_TRACE_EXPECTED_H
#define FSDP_CTS_TRACE_EXPECTED_H

#include "judge/oracle/expect.h"
#include "run/witness/trace_marks.h"

/* Writes slices of modules, by their names; the expected window of each unit on
 * its track; the bound. Each event has a comma before it. */
void trace_expected_write(const struct trace_marks *m, const struct expect *e,
                          FILE *f, uint32_t rank);

#endif
