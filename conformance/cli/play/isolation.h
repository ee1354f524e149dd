/* SPDX-License-Identifier: Apache-2.0 */
/*
 * isolation.h - decides whether a run isolates its ranks, and says why not.
 */
#ifndef FSDP_CTS_ISOLATION_H
#define FSDP_CTS_ISOLATION_H

#include "cli/line/arguments.h"
#include "run/supervise.h"

/* Sets `isolate` if ranks can be isolated and it is asked for, or the run is a
 * whole one, whose verdict is about what ranks cannot do. If they cannot be
 * isolated, the reason is printed at once if it was asked for, and else by
 * isolation_tell. */
void isolation_settle(struct arguments *a, const struct case_list *cases);

/* To be called once something has run. */
void isolation_tell(const struct arguments *a);
/* Tells of an engine that needs what isolated ranks are refused. */
void isolation_tell_engine(const struct supervise_job *job,
                           const struct supervise_engine *said);

#endif
