/* SPDX-License-Identifier: Apache-2.0 */
/*
 * isolation.h - whether a run isolates its ranks, and who is told why not.
 */
#ifndef FSDP_CTS_ISOLATION_H
#define FSDP_CTS_ISOLATION_H

#include "cli/line/arguments.h"
#include "run/supervise.h"

/* Sets `isolate` where ranks can be: where it is asked for, and in a whole run,
 * as its verdict is about what ranks cannot do. Why they cannot is said at once
 * where it was asked for, and else by isolation_tell. */
void isolation_settle(struct arguments *a, const struct case_list *cases);

/* Once something has run. */
void isolation_tell(const struct arguments *a);
/* Of an engine that needs what isolated ranks are refused. */
void isolation_tell_engine(const struct supervise_job *job,
                           const struct supervise_engine *said);

#endif
